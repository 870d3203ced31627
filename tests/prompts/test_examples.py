"""Worked examples: the required cases, faulty files of a user, and the hash."""

from functools import partial
from pathlib import Path

import pytest

from knowhalu.errors import PromptError
from knowhalu.methods.common.attribution import ground_statements
from knowhalu.prompts import format as layout
from knowhalu.prompts.book import KnowHaluPromptBook, demonstrate_judgments, knowhalu_family
from knowhalu.prompts.examples import TASK_FIELDS, examples_file, load_examples, prompt_family_hash
from knowhalu.prompts.format import ENTITY, GENERAL, LABEL, SPECIFIC, THOUGHT
from knowhalu.prompts.replies import read_extraction, read_label, read_next_step, read_sentences, read_triplets, split_sections
from knowhalu.prompts.template import SECTION, load_prompt, prompt_names
from knowhalu.settings import LLMOptions
from knowhalu.types import NO_INFORMATION, KnowledgeForm, Label, Sample, Task

EVERY = [(task, example) for task in Task for example in load_examples(task)]
WORKED = [(task, example) for task, example in EVERY if example.steps]
CLAIM = '[[examples]]\nshows = "correct"\nclaim = "Snow is white."\nfinish = "f"\nrationale = "r"\nlabel = "CORRECT"\n'
STEP = '[[examples.steps]]\nthought = "t"\nspecific = "s"\ngeneral = "g"\npassages = [{ text = "p" }]\n'


def name_of(case):
    return case[1].fields(case[0])[TASK_FIELDS[case[0]][-1]][:40]


@pytest.mark.parametrize("task", list(Task))
def test_every_task_shows_all_kinds_and_all_labels(task):
    examples = load_examples(task)
    assert {e.shows for e in examples if e.steps} >= {"correct", "hallucinated", "missing", "multi-hop"}
    assert {e.label for e in examples if e.steps} == set(Label)
    assert 4 <= sum(bool(e.steps) for e in examples) <= 8


def test_the_off_target_check_shows_pieces_nothing_and_refusals():
    found = [e.extraction.entity for e in load_examples(Task.QA) if e.extraction]
    assert len(found) >= 10 and found.count("NONE") >= 4 and found.count("REFUSAL") >= 1


@pytest.mark.parametrize(("task", "example"), EVERY, ids=map(name_of, EVERY))
def test_what_an_example_shows_fits_its_label(task, example):
    if example.extraction:
        assert (example.extraction.entity == "NONE") == (example.shows == "off-target")
        if example.extraction.entity not in ("NONE", "REFUSAL"):
            assert example.extraction.entity.lower() in example.answer.lower()
    if example.steps:
        expected = {"correct": Label.CORRECT, "hallucinated": Label.INCORRECT, "missing": Label.INCONCLUSIVE}
        assert example.label is expected.get(example.shows, example.label)
        assert example.shows != "multi-hop" or len(example.steps) > 1
        empty = [step.knowledge == NO_INFORMATION for step in example.steps]
        assert any(empty) == (example.label is Label.INCONCLUSIVE)


@pytest.mark.parametrize(("task", "example"), WORKED, ids=map(name_of, WORKED))
@pytest.mark.parametrize("form", list(KnowledgeForm))
def test_the_knowledge_of_an_example_is_supported_by_its_passages(task, example, form):
    part = Sample(response=example.fields(task)[TASK_FIELDS[task][-1]])
    for step in (s.shown(form) for s in example.steps):
        triplets = step.knowledge.triplets
        told = [str(t) for t in triplets] or read_sentences(step.knowledge.text, "")
        made = ground_statements(form, told, triplets, part, step.query, step.passages)
        assert (made.text, made.unsupported) == (step.knowledge.text, "")
        texts = {p.id: p.text for p in step.passages}
        assert all(texts[q.passage][q.start : q.end] == q.text for q in made.quotes)


@pytest.mark.parametrize(("task", "example"), WORKED, ids=map(name_of, WORKED))
def test_a_reply_like_an_example_is_read_as_the_example(task, example):
    for step in example.steps:
        reply = f" {step.thought}\n### {SPECIFIC} 1: {step.specific}\n### {GENERAL} 1: {step.general}"
        hop = read_next_step(split_sections(reply, THOUGHT, (SPECIFIC, GENERAL)), (SPECIFIC, GENERAL), reply)
        assert (hop.thought, hop.query) == (step.thought, step.shown(KnowledgeForm.UNSTRUCTURED).query)
        shown = step.shown(KnowledgeForm.STRUCTURED).knowledge
        assert tuple(read_triplets(f" {shown.text}", "")) == shown.triplets
    end = f" {example.finish}\n### {SPECIFIC} 2: {layout.END_OF_QUERIES}"
    assert read_next_step(split_sections(end, THOUGHT, (SPECIFIC, GENERAL)), (SPECIFIC, GENERAL), end).query is None
    assert read_label(str(example.label), "") is example.label


def test_extractions_of_the_examples_are_read():
    for example in (e for e in load_examples(Task.QA) if e.extraction):
        entity = example.extraction.entity
        expected = (None if entity in ("NONE", "REFUSAL") else entity, entity == "REFUSAL")
        assert read_extraction(f" {entity}", example.answer, "") == expected


def test_a_judgment_ends_with_its_label_on_a_line_of_its_own():
    shown = demonstrate_judgments(None, Task.CLAIM, KnowledgeForm.STRUCTURED, "combined")
    for part in shown.split("\n\n"):
        assert part.split("\n")[-2] == f"### {LABEL}:" and part.split("\n")[-1] in set(Label)
        assert SECTION.findall(part)[-2:] == ["Judgment", "Label"] and "Thought" not in part
    assert ENTITY not in shown


@pytest.mark.parametrize("form", list(KnowledgeForm))
@pytest.mark.parametrize("formulation", ["specific", "general", "combined"])
def test_prompts_show_one_form_and_the_chosen_formulations_only(form, formulation):
    book = KnowHaluPromptBook(None, formulation)
    prompt = book.query(Sample(question="q", response="a"), [], form).prompt
    assert ("### Specific query 1" in prompt) == (formulation != "general")
    assert ("### General query 1" in prompt) == (formulation != "specific")
    assert ("### Knowledge 1: (" in prompt) == (form is KnowledgeForm.STRUCTURED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[examples]\n", r"claim\.toml: not TOML .*line 1"),
        (CLAIM + STEP + CLAIM + STEP.replace("thought", "thougt"), r"claim\.toml, line 12: example 2\.steps\.1\.thought: Field"),
        (CLAIM, r"line 1: example 1: Value error, steps, finish, rationale and label belong together"),
        (CLAIM + STEP + 'knowledge = "Snow is white."\n', "knowledge and triplets must both be given"),
        (CLAIM.replace("claim", "summary") + STEP, r"line 1: example 1 needs claim, and has \['summary'\]"),
        (CLAIM.replace("CORRECT", "RIGHT") + STEP, r"example 1\.label"),
        ("", "examples"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_named_with_line_and_fault(tmp_path, text, said):
    (tmp_path / "knowhalu/examples").mkdir(parents=True)
    (tmp_path / "knowhalu/examples/claim.toml").write_text(text)
    with pytest.raises(PromptError, match=said):
        load_examples(Task.CLAIM, tmp_path)


def test_a_users_examples_win_and_change_the_hash(tmp_path):
    before = prompt_family_hash(tmp_path)
    assert before == prompt_family_hash(None)
    (tmp_path / "knowhalu/examples").mkdir(parents=True)
    (tmp_path / "knowhalu/examples/claim.toml").write_text(CLAIM + STEP)
    assert len(load_examples(Task.CLAIM, tmp_path)) == 1
    assert examples_file(Task.QA, tmp_path) == examples_file(Task.QA)
    assert prompt_family_hash(tmp_path) != before
    prompt = KnowHaluPromptBook(LLMOptions(prompts=tmp_path)).query(Sample(response="x"), [], KnowledgeForm.UNSTRUCTURED).prompt
    assert prompt.count("### Claim:") == 2 and "### Claim: Snow is white." in prompt


def test_a_users_folder_that_is_not_there_is_named(tmp_path):
    for find in (prompt_family_hash, partial(load_prompt, "knowhalu/judge"), partial(examples_file, Task.QA), prompt_names):
        with pytest.raises(PromptError, match=r"llm\.prompts: there is no folder .*my_promts; name the folder"):
            find(tmp_path / "my_promts")


def test_a_users_folder_may_lie_under_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine/knowhalu/examples").mkdir(parents=True)
    (tmp_path / "mine/knowhalu/examples/claim.toml").write_text(CLAIM + STEP)
    assert len(load_examples(Task.CLAIM, Path("~/mine"))) == 1
    assert prompt_family_hash(Path("~/mine")) == prompt_family_hash(tmp_path / "mine")


def test_a_users_prompt_with_other_holes_is_refused_before_a_run(tmp_path):
    bad, good = tmp_path / "bad", tmp_path / "good"
    for folder, holes, body in ((bad, '"sample"', "$sample"), (good, '"sample", "steps"', "$sample\n$steps")):
        (folder / "knowhalu").mkdir(parents=True)
        text = f"+++\nholes = [{holes}]\n+++\nJudge.\n{body}\n### Judgment:"
        (folder / "knowhalu/judge.txt").write_text(text)
    with pytest.raises(PromptError, match=r"judge\.txt: no hole \$steps"):
        KnowHaluPromptBook(LLMOptions(prompts=bad))
    request = KnowHaluPromptBook(LLMOptions(prompts=good)).judge(Sample(response="x"), [], KnowledgeForm.STRUCTURED)
    assert request.prompt.startswith("Judge.\n### Claim: x") and request.fixed == len("Judge.\n")


def test_every_prompt_keeps_its_holes_at_its_end():
    for name, spec in knowhalu_family().prompts.items():
        assert load_prompt(f"knowhalu/{name}").holes == ("demonstrations", *spec.holes)
