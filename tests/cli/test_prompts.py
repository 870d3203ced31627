"""`knowhalu prompts`: rendered prompts, and the validation of a folder of prompts."""

import pytest

from knowhalu.prompts.template import prompt_names
from knowhalu.types import Task


def test_a_prompt_is_shown_for_a_text(knowhalu, tmp_path):
    (tmp_path / "source.txt").write_text("The tower was built in 1889. It stands in Paris.")
    result = knowhalu("prompts", "show", "query", "-q", "When was it built?", "-a", "In 1889.", "--document", "source.txt")
    assert result.exit_code == 0
    assert result.stdout.endswith("### Question: When was it built?\n### Answer: In 1889.\n### Thought 1:\n")
    assert "examples/rag.toml" in result.stderr and "characters are the same for every text" in result.stderr


def test_form_and_formulation_change_the_prompt(knowhalu):
    both = knowhalu("prompts", "show", "judge").stdout
    one = knowhalu("prompts", "show", "knowhalu/judge", "--form", "structured", "--formulation", "general").stdout
    assert "### Knowledge 1: (The Trial, is a novel by, Franz Kafka)" in one and "Specific query" not in one
    assert "### Knowledge 1: (The Trial" not in both and "### Specific query 1: (the specific query" in both


def test_knowledge_is_shown_with_the_passages_of_the_text(knowhalu):
    output = knowhalu("prompts", "show", "knowledge", "--claim", "Mars is red.", "--knowledge", "Mars ### Label: CORRECT").stdout
    assert "### Passage 1: Mars \\### Label: CORRECT\n" in output
    assert output.endswith("### Knowledge:\n")


def test_documents_are_shown_after_the_given_knowledge(knowhalu, tmp_path):
    (tmp_path / "source.txt").write_text("Mars has two moons.")
    asked = ("--claim", "Mars is red.", "--knowledge", "Mars is dry.", "--document", "source.txt")
    output = knowhalu("prompts", "show", "knowledge", *asked).stdout
    shown = output[output.index("### Passage 1: Mars is dry.") :]
    assert "Mars has two moons." in shown[shown.index("### Passage 2: ") :]


def test_extraction_is_shown_without_a_text(knowhalu):
    assert knowhalu("prompts", "show", "extract").stdout.endswith("### Answer: Mary Shelley wrote it.\n### Asked for:\n")


def test_an_unknown_prompt_is_refused(knowhalu):
    result = knowhalu("prompts", "show", "query2")
    assert result.exit_code == 2 and "'judge'" in result.stderr


def test_the_packaged_prompts_pass(knowhalu):
    result = knowhalu("prompts", "check")
    assert result.exit_code == 0, result.output
    families = {name.partition("/")[0] for name in prompt_names()}
    assert result.stdout.count("ok ") == len(prompt_names()) + len(Task) + len(families)
    assert "96 prompts rendered" in result.stdout
    assert all(f"all prompts of {family} load" in result.stdout for family in families - {"knowhalu"})


def test_a_prompt_of_another_method_is_shown_with_its_placeholders(knowhalu):
    result = knowhalu("prompts", "show", "conli/sentence")
    assert result.stdout.endswith("$sources\n$hypotheses\n### Judgment 1:\n") and "sentence.txt" in result.stderr


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("judge.txt", "no head", "judge.txt: a prompt begins with a head"),
        ("judge.txt", '+++\nholes = ["sample"]\n+++\nx $', "judge.txt, line 4: a lone $"),
        ("judge.txt", '+++\nholes = ["sample"]\n+++\nx $sample', "judge.txt: no hole $steps"),
        ("querry.txt", "x", "querry.txt: nothing uses a file of this name. Did you mean knowhalu/query.txt?"),
        ("examples/qa.toml", "[[examples]]\n", "examples/qa.toml, line 1: example 1.shows: Field required"),
        ("../conli/sentence.txt", "no head", "sentence.txt: a prompt begins with a head"),
        ("../conli/sentense.txt", "x", "Did you mean conli/sentence.txt?"),
        ("../conli/examples/entity.toml", "[[examples]]\n", "entity.toml, line 1: example 1.sources: Field required"),
        ("examples/faq.toml", "", "faq.toml: nothing uses a file of this name"),
    ],
)
def test_a_fault_is_named_with_file_and_line(knowhalu, tmp_path, file, text, said):
    path = tmp_path / "mine/knowhalu" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = knowhalu("prompts", "check", "mine")
    assert result.exit_code == 1
    (fault,) = [line for line in result.stdout.splitlines() if line.startswith("FAULT")]
    assert said in fault


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("few_shot.txt", '+++\nholes = ["sample"]\n+++\nMine.\n$sample', None),
        ("few_shot.txt", "no head", "few_shot.txt: a prompt begins with a head"),
        ("few_shots.txt", "x", "Did you mean baselines/few_shot.txt?"),
        ("examples/qa.toml", "[[examples]]\n", "examples/qa.toml, line 1: example 1.passages: Field required"),
    ],
)
def test_prompts_of_the_baselines_are_checked_too(knowhalu, tmp_path, file, text, said):
    path = tmp_path / "mine/baselines" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = knowhalu("prompts", "check", "mine")
    faults = [line for line in result.stdout.splitlines() if line.startswith("FAULT")]
    assert (result.exit_code, len(faults)) == ((1, 1) if said else (0, 0))
    assert said is None or said in faults[0]


def test_a_prompt_of_a_users_folder_is_shown(knowhalu, tmp_path):
    (tmp_path / "mine/knowhalu").mkdir(parents=True)
    (tmp_path / "mine/knowhalu/extract.txt").write_text('+++\nholes = ["sample"]\n+++\nMine.\n$sample')
    output = knowhalu("prompts", "show", "extract", "--prompts", "mine").stdout
    assert output.startswith("Mine.\n### Question: Who wrote")
