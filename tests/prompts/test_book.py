"""The prompts of the baselines and their judged examples: balanced, consistent with their passages, and readable."""

from collections import Counter

import pytest

from knowhalu.errors import PromptError, ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.baselines.judge import judge_request, read_claim_list, read_judged_claims
from knowhalu.methods.common.labels import THREE_LABEL_SCHEME
from knowhalu.prompts.book import BASELINES, PromptBook
from knowhalu.prompts.examples import load_judged_examples
from knowhalu.prompts.format import JudgedClaim, format_judged_claims
from knowhalu.requests import Completion
from knowhalu.text.sentences import content_words
from knowhalu.types import Label, Sample, Task

BOOK = PromptBook(BASELINES)
EVERY = [(task, example) for task in Task for example in load_judged_examples(task)]
SAMPLE = {
    Task.QA: Sample(question="q", response="a"), Task.RAG: Sample(question="q", response="a", documents="d"),
    Task.SUMMARY: Sample(response="a", documents="d"), Task.CLAIM: Sample(response="a"),
}  # fmt: skip


@pytest.mark.parametrize("task", list(Task))
def test_labels_are_balanced_and_in_no_fixed_order(task):
    labels = [e.label for e in load_judged_examples(task)]
    assert Counter(labels) == dict.fromkeys(Label, 2)
    assert labels[:3] != labels[3:]


@pytest.mark.parametrize("task", list(Task))
@pytest.mark.parametrize(
    ("name", "each"),
    [("halueval", (2, 2, 0)), ("halueval_knowledge", (2, 2, 0)), ("halueval_cot", (2, 2, 0)), ("few_shot", (2, 2, 2)),
     ("factored_single", (2, 2, 2)), ("zero_shot_cot", (0, 0, 0))],
)  # fmt: skip
def test_a_prompt_shows_as_many_examples_of_each_label(task, name, each):
    request = judge_request(BOOK, name, SAMPLE[task], ())
    lines = request.prompt[: request.fixed].split("\n")
    assert tuple(lines.count(str(label)) for label in (Label.CORRECT, Label.INCORRECT, Label.INCONCLUSIVE)) == each


@pytest.mark.parametrize("name", ["halueval", "halueval_cot"])
@pytest.mark.parametrize("task", list(Task))
def test_passages_are_shown_from_memory_only_where_a_text_was_made_from_them(name, task):
    request = judge_request(BOOK, name, SAMPLE[task], ())
    shown = "passage" in request.prompt[: request.fixed].lower()
    assert shown == (task in (Task.RAG, Task.SUMMARY))


@pytest.mark.parametrize(("task", "example"), EVERY)
def test_the_label_of_an_example_follows_from_its_claims(task, example):
    labels = {c.label for c in example.claims}
    order = (Label.INCORRECT, Label.INCONCLUSIVE, Label.CORRECT)
    assert example.label is next(one for one in order if one in labels)
    assert set(order) == set(THREE_LABEL_SCHEME.ties)


@pytest.mark.parametrize(("task", "example"), EVERY)
def test_correct_claims_of_an_example_are_in_its_passages(task, example):
    told = {w for p in example.passages for w in content_words(f"{p.title} {p.text}")}
    for claim in (c for c in example.claims if c.label is Label.CORRECT):
        wanted = set(content_words(claim.text))
        assert len(wanted & told) >= 0.4 * len(wanted), claim.text
        figures = {w for w in wanted if w.isdigit() and len(w) > 2}
        assert figures <= told | {w for w in figures if any(w in t for t in told)}


@pytest.mark.parametrize(("task", "example"), EVERY)
def test_lists_of_claims_of_the_examples_are_read(task, example):
    claims = [JudgedClaim(c.text.rstrip("."), c.label) for c in example.claims]
    assert read_judged_claims(Completion(f"\n{format_judged_claims(claims)}")) == claims
    plain = "\n".join(f"{i}. {c.text}" for i, c in enumerate(example.claims, 1))
    assert read_claim_list(Completion(plain)) == [c.text for c in example.claims]


@pytest.mark.parametrize(
    ("line", "text", "label"),
    [
        ("- **Paris is big**: **CORRECT**", "**Paris is big**", "CORRECT"),
        ("1) It opened at 8:30 - INCORRECT.", "It opened at 8:30", "INCORRECT"),
        ("(1) The film (1927) is old (INCONCLUSIVE)", "The film (1927) is old", "INCONCLUSIVE"),
        ("1. The word CORRECT is written: INCORRECT", "The word CORRECT is written", "INCORRECT"),
        ("1. He won => CORRECT", "He won", "CORRECT"),
    ],
)
def test_claims_are_read_as_models_write_them(line, text, label):
    assert read_judged_claims(Completion(f"Here they are:\n{line}\n")) == [(text, Label(label))]


def test_numbers_may_be_bold():
    assert read_claim_list(Completion("1. It is old.\n**2.** It is new.\n__3__. It won.")) == [
        "It is old.",
        "It is new.",
        "It won.",
    ]


@pytest.mark.parametrize("text", [
    "It is old.\n2. It is new.", "2. It is new.", "1. It is old.\n2 It is new.\n3. It won.", "1. It is old.\n2. -\n3. It won.",
    "1. It is old.\n1. It is new.",
])  # fmt: skip
def test_a_list_that_lacks_a_number_is_refused(text):
    with pytest.raises(ReplyError, match=r"has number \d where \d is due"):
        read_claim_list(Completion(text))


def test_every_request_ends_in_its_open_section_and_keeps_its_examples_fixed():
    for name in ("halueval", "halueval_knowledge", "few_shot"):
        assert judge_request(BOOK, name, SAMPLE[Task.QA], ()).prompt.endswith("\n### Label:")
    for task in Task:
        request = judge_request(BOOK, "factored_single", SAMPLE[task], ())
        assert request.fixed > 1000 and request.prompt[request.fixed :].startswith("### ")
        assert "$" not in request.prompt


def test_a_users_prompts_override_the_packaged_ones_and_faulty_ones_are_refused_when_loaded(tmp_path):
    (tmp_path / "baselines/examples").mkdir(parents=True)
    (tmp_path / "baselines/few_shot.txt").write_text('+++\nholes = ["sample"]\n+++\nMine.\n$sample\n### Label:')
    book = PromptBook(BASELINES, LLMOptions(prompts=tmp_path), ("few_shot",))
    assert judge_request(book, "few_shot", SAMPLE[Task.CLAIM], ()).prompt == "Mine.\n### Claim: a\n### Label:"
    (tmp_path / "baselines/supported.txt").write_text('+++\nholes = ["text"]\n+++\n$text')
    with pytest.raises(PromptError, match=r"supported\.txt: no value for \$text"):
        PromptBook(BASELINES, LLMOptions(prompts=tmp_path), ("supported",))
    (tmp_path / "baselines/examples/claim.toml").write_text('[[examples]]\nclaim = "x"\nlabel = "CORRECT"\n')
    with pytest.raises(PromptError, match=r"claim\.toml, line 1: example 1\.passages"):
        PromptBook(BASELINES, LLMOptions(prompts=tmp_path), ("claims",))
