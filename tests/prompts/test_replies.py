"""Replies as models write them: parsing, retries and failures."""

import pytest

from knowhalu.errors import ReplyError
from knowhalu.prompts.format import GENERAL, SPECIFIC, THOUGHT
from knowhalu.prompts.replies import (
    complete_sentences,
    is_end_of_queries,
    read_extraction,
    read_label,
    read_next_step,
    read_sentences,
    read_triplets,
    split_sections,
)
from knowhalu.requests import Completion
from knowhalu.results import Failure
from knowhalu.types import Label, Sample
from tests.support.thinking import Hop, Thinker, check

BOTH = (SPECIFIC, GENERAL)
WANTED = (THOUGHT, SPECIFIC, GENERAL, "Query")


def hop(reply, asked=BOTH):
    return read_next_step(split_sections(reply, THOUGHT, WANTED), asked, reply)


@pytest.mark.parametrize(
    ("specific", "general"),
    [
        ("Is C# a language?", "What is C#?"),
        ("Did X [band] do Y?", "Who [band or not] did Y?"),
        ('Did "The Beatles" record "Help!"?', 'Who recorded "Help!"?'),
        ("Is it (a) or (b)?", "Which: (a) or (b)?"),
        ("#MeToo: did it begin in 2006?", "# 1: when did it begin?"),
        ("What does it cost: $5?", "What does `x: y` mean?"),
    ],
)
def test_a_query_may_hold_any_mark(specific, general):
    found = hop(f" Look it up.\n### Specific query 1: {specific}\n### General query 1: {general}")
    assert (found.thought, found.query.specific, found.query.general) == ("Look it up.", specific, general)


@pytest.mark.parametrize(
    "reply",
    [
        "### Thought 2: A thought.\n### Specific query 2: Is it so?\n### General query 2: How is it?",
        "A thought.\n\n**Specific query 2:** Is it so?\n**General query 2:** How is it?",
        "Thought: A thought.\nSpecific query: Is it so?\nGeneral query: How is it?",
        "A thought.\n## Specific Query:\nIs it\n  so?\n## General Query:\nHow\nis it?\n\n### Knowledge 2: It is so.",
        "A thought.\n### Query 2: Is it so?\n### General query 2: How is it?",
        "A thought.\r\n### Specific query 2: Is it so?\r\n### General query 2: How is it?\r\n### Thought 3: Next.",
    ],
)
def test_headings_are_read_as_models_write_them(reply):
    found = hop(reply)
    assert (found.thought, found.query.specific, found.query.general) == ("A thought.", "Is it so?", "How is it?")


@pytest.mark.parametrize(
    "reply",
    [
        " All is settled.\n### Specific query 3: Done",
        "All is settled.\n### Specific query 3: done.\n### General query 3: Done.",
        "All is settled.\n### Specific query 3: **Done**",
        "All is settled.\n### Specific query 3: Done. Every detail has been looked up.",
        "All is settled.\n### Specific query 3: No further query is needed.",
        "All is settled.\n### Specific query 3: None",
        "All is settled, so no further queries are needed.",
    ],
)
def test_a_stop_word_ends_the_chain(reply):
    assert hop(reply).query is None


@pytest.mark.parametrize("text", ["Done deal: was it signed?", "Is no more information left?", "Are there no further queries?"])
def test_a_question_does_not_end_the_chain(text):
    assert not is_end_of_queries(text)


@pytest.mark.parametrize(
    "reply", ["", "  \n", "I cannot help with that.", "### Specific query 1:", "A thought.\n### General query 1: X?"]
)
def test_a_reply_without_its_queries_cannot_be_read(reply):
    with pytest.raises(ReplyError) as caught:
        hop(reply)
    assert caught.value.reply == reply


def test_copied_shields_are_removed():
    found = hop("Say <\\|im_end|>.\n### Specific query 1: What is \\### in Markdown?\n### General query 1: What is \\##?")
    assert (found.thought, found.query.specific) == ("Say <|im_end|>.", "What is ### in Markdown?")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("CORRECT", Label.CORRECT),
        (" incorrect.", Label.INCORRECT),
        ("**INCONCLUSIVE**", Label.INCONCLUSIVE),
        ("It looks CORRECT at first, but it is INCORRECT", Label.INCORRECT),
        ("INCORRECT? No: CORRECT.", Label.CORRECT),
        ("CORRECT\nINCONCLUSIVE\n", Label.INCONCLUSIVE),
    ],
)
def test_the_last_label_wins(text, label):
    assert read_label(text, text) is label


@pytest.mark.parametrize(
    "text", ["", "yes", "the answer is correct", "not CORRECT", "It isn't INCORRECT", "CORRECTED", "RICHTIG"]
)
def test_text_without_a_label_has_none(text):
    with pytest.raises(ReplyError):
        read_label(text, text)


@pytest.mark.parametrize(
    ("text", "answer", "entity", "refusal"),
    [
        (" Oslo", "In Oslo", "Oslo", False),
        ("NONE", "In a city", None, False),
        ("None.", "In a city", None, False),
        ("The entity is NONE", "In a city", None, False),
        ("None", "None of them survived", "None", False),
        ("REFUSAL", "I do not know", None, True),
        ("Refusal", "I do not know", None, True),
        ("Nonesuch Palace", "Nonesuch Palace", "Nonesuch Palace", False),
    ],
)
def test_the_piece_of_an_answer_is_read(text, answer, entity, refusal):
    assert read_extraction(text, answer, text) == (entity, refusal)


def test_knowledge_of_several_lines_is_kept_whole():
    text = " Brahms was born in Hamburg.\n- He wrote four symphonies.\n2. He died in Vienna."
    assert read_sentences(text, text) == ["Brahms was born in Hamburg.", "He wrote four symphonies.", "He died in Vienna."]
    assert read_sentences("Knowledge: First line.\n\nQuestion: part of the text?", "") == [
        "First line.",
        "Question: part of the text?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "No specific information is available.",
        "no specific information is available",
        "**No specific information is available.**",
        "No specific information is available about the lute.",
        "There is a note. No specific information is available.",
        "The passages do not mention the lute.",
        "(No specific information is available.)",
    ],
)
def test_statements_that_nothing_is_available_are_recognised(text):
    assert read_sentences(text, text) == (["There is a note."] if "note" in text else [])
    if "note" not in text:
        assert read_triplets(text, text) == []


def test_a_statement_after_but_counts():
    assert len(read_sentences("No information on the lute is given, but he played the organ.", "")) == 1


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (" (Brahms, was born in, Hamburg)", [("Brahms", "was born in", "Hamburg")]),
        ("(a, is, b), (c, is, d)\n(e, is, f)", [("a", "is", "b"), ("c", "is", "d"), ("e", "is", "f")]),
        ("(Java (language), was released in, 1995)", [("Java (language)", "was released in", "1995")]),
        ("(Washington, D.C., is the capital of, the USA)", [("Washington, D.C.", "is the capital of", "the USA")]),
        ("(games, were held in, Athens, Greece)", [("games", "were held in", "Athens, Greece")]),
        ('("Help!, the film", was made by, "Lester, Richard")', [('"Help!, the film"', "was made by", '"Lester, Richard"')]),
        ("(a; b; c, d)", [("a", "b", "c, d")]),
        ("(a | b | c, d)", [("a", "b", "c, d")]),
        ("(a, is, b\n(c, is, d)", [("a", "is", "b"), ("c", "is", "d")]),
        ("Knowledge 1: (a, is, b). That is all (really).", [("a", "is", "b")]),
    ],
)  # fmt: skip
def test_triplets_are_parsed_with_commas_and_brackets_inside(text, facts):
    assert [(t.subject, t.predicate, t.object) for t in read_triplets(text, text)] == facts


@pytest.mark.parametrize("text", ["", "Brahms was born in Hamburg.", "(Brahms)", "(a, b)", "((((", "()", "(,,)"])
def test_a_reply_without_a_triplet_cannot_be_read(text):
    with pytest.raises(ReplyError):
        read_triplets(text, text)


def test_a_cut_off_text_ends_with_its_last_whole_sentence():
    assert complete_sentences("One is so. Two is") == "One is so."
    assert complete_sentences("One is") == ""


# how a stage goes on after a reply that cannot be read

PAGES = {"Vienna": "Vienna lies on the Danube. It is the capital of Austria."}
SAMPLE = Sample(id="1", response="Vienna lies on the Danube.")
HOP = Hop(
    "Look.",
    "Does Vienna lie on the Danube?",
    "Where does Vienna lie?",
    "Vienna lies on the Danube.",
    "(Vienna, lies on, the Danube)",
)


def run(raw, **options):
    thinker = Thinker([HOP], raw=raw)
    return thinker, check(thinker, SAMPLE, PAGES, **{"delta1": 0.5} | options)


def cut(text):
    return Completion(text, finish_reason="length")


def test_a_missing_query_is_retried_with_the_readable_part_of_the_reply():
    thinker, verdict = run({
        ("query", 0): " Look first.\n### Specific query 1: Does Vienna lie on the Danube?",
        ("query", 1): " Where does Vienna lie?",
    })  # fmt: skip
    again = thinker.requests("query")[1]
    assert (
        again.prefill
        == " Begin with the first detail.\n### Specific query 1: Does Vienna lie on the Danube?\n### General query 1:"
    )
    assert verdict.segments[0].base.steps[0].query.general == "Where does Vienna lie?"


def test_a_model_that_makes_no_query_is_given_the_beginning_of_one():
    thinker, verdict = run({
        ("query", 0): " The claim needs no check.\n### Specific query 1: Done",
        ("query", 1): " Does Vienna lie on the Danube?\n### General query 1: Where does Vienna lie?",
    })  # fmt: skip
    assert thinker.requests("query")[1].prefill.endswith("### Specific query 1:")
    assert verdict.hallucinated is False


def test_a_reply_that_repeats_its_given_beginning_is_read():
    _, verdict = run({
        ("query", 0): "Sure!",
        ("query", 1): "### Thought 1: Look.\n### Specific query 1: Does Vienna lie on the Danube?\n### General query 1: Where?",
    })  # fmt: skip
    assert verdict.segments[0].base.steps[0].thought == "Look."


def test_a_query_that_is_cut_off_is_not_searched():
    thinker, verdict = run({
        ("query", 0): cut(" Look.\n### Specific query 1: Does Vienna lie on the Danube?\n### General query 1: Where does Vie"),
        ("query", 1): " Where does Vienna lie?",
    })  # fmt: skip
    assert verdict.segments[0].base.steps[0].query.general == "Where does Vienna lie?"
    assert thinker.requests("query")[1].prefill.endswith("### General query 1:")


def test_cut_off_knowledge_keeps_its_whole_statements():
    _, verdict = run({("knowledge", 0): cut(" Vienna lies on the Danube. It is the capital of Hun")})
    assert verdict.segments[0].base.steps[0].knowledge.text == "Vienna lies on the Danube."
    _, verdict = run(
        {("knowledge", 0): cut(" (Vienna, lies on, the Danube) (Vienna, is, the capital of Hun")}, base_form="structured"
    )
    assert verdict.segments[0].base.steps[0].knowledge.text == "(Vienna, lies on, the Danube)"


def test_a_model_that_writes_sentences_is_given_the_beginning_of_a_triplet():
    thinker, verdict = run(
        {("knowledge", 0): "Vienna lies on the Danube.", ("knowledge", 1): "Vienna, lies on, the Danube)"}, base_form="structured"
    )
    assert thinker.requests("knowledge")[1].prefill == " ("
    assert str(verdict.segments[0].base.steps[0].knowledge.triplets[0]) == "(Vienna, lies on, the Danube)"


def test_a_label_without_constraint_is_retried_in_other_words():
    thinker, verdict = run({("label", 0): "Yes, it fits.", ("label", 1): "It is INCORRECT? No, it is CORRECT."})
    assert thinker.requests("label")[1].prefill.endswith("### Label:\nOne of CORRECT, INCORRECT, INCONCLUSIVE:\n")
    assert verdict.hallucinated is False


def test_an_entity_that_cannot_be_read_is_retried():
    thinker = Thinker([HOP], raw={("entity", 0): " \n", ("entity", 1): Completion(" Danube", logprobs=(-0.5,))})
    verdict = check(thinker, SAMPLE.model_copy(update={"question": "On which river?"}), PAGES, delta1=0.5)
    assert verdict.extraction.entity == "Danube"
    assert thinker.requests("entity")[1].prefill.endswith("### Entity (the answer's own words, NONE or REFUSAL):")


@pytest.mark.parametrize(
    ("raw", "stage", "said"),
    [
        ({("extract", 0): "gibberish", ("extract", 1): ""}, "extract", "no reason"),
        ({("entity", 0): "", ("entity", 1): "..."}, "extract", "names no entity"),
        ({("query", 0): "gibberish", ("query", 1): "..."}, "query", "no specific query"),
        ({("query", 0): cut(" Look"), ("query", 1): cut(" and look")}, "query", "cut off after 200 tokens"),
        ({("query", 0): " Fine.\n### Specific query 1: Done", ("query", 1): " Done"}, "query", "asked nothing"),
        ({("knowledge", 0): "", ("knowledge", 1): " "}, "knowledge", "empty"),
        ({("judge", 0): "", ("judge", 1): "?"}, "judge", "no reasons"),
        ({("label", 0): "yes", ("label", 1): "richtig"}, "judge", "no label"),
        ({("label", 0): "yes", ("label", 1): "not CORRECT"}, "judge", "denies"),
    ],
)  # fmt: skip
def test_two_unreadable_replies_are_a_failure_with_stage_and_raw_reply(raw, stage, said):
    thinker = Thinker([HOP], raw=raw)
    failure = check(thinker, SAMPLE.model_copy(update={"question": "On which river does it lie?"}), PAGES)
    assert isinstance(failure, Failure)
    assert failure.stage == stage and said in failure.reason and "asked again" in failure.reason
    last = list(raw.values())[-1]
    assert failure.reply == (last.text if isinstance(last, Completion) else last)
