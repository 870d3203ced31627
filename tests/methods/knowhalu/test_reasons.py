"""Reasons of judgments: what decided, in words, with bounded and harmless quotes."""

import pytest

from knowhalu.methods.common.judgment_model import Reading, WindowScores
from knowhalu.methods.common.sources import source_sentences
from knowhalu.methods.knowhalu.grounds import Texts, opposing_ground, read_quotes, rest_on, supporting_ground
from knowhalu.methods.knowhalu.reasons import (
    MAX_NAMED,
    MAX_QUOTED,
    judgment_reason,
    missing_topic_reason,
    off_target_reason,
    quoted,
)
from knowhalu.requests import Probabilities
from knowhalu.text.findings import find_findings
from knowhalu.text.sentences import sentences
from knowhalu.types import Knowledge, KnowledgeForm, Label, Passage, Query, Quote, Sample, Step

FORM = KnowledgeForm.UNSTRUCTURED


def step_of(text, scores, *, title="", name="p", general=""):
    """Make a step whose passage is quoted in full; `scores` are (supported, contradicted) of each sentence."""
    passage = Passage(id=name, title=title, text=text, document=name, end=len(text))
    quotes = tuple(
        Quote(passage=name, text=s.text, start=s.start, end=s.end, supported=yes, contradicted=no)
        for s, (yes, no) in zip(sentences(text), scores, strict=True)
    )
    query = Query(specific="", general=general)
    return Step(thought="", query=query, passages=(passage,), knowledge=Knowledge(form=FORM, quotes=quotes, text=text))


def judged(part, steps, label, *, supported=0.0, names=frozenset()):
    """Return the ground and the reason; `supported` is by the window, all sources as one."""
    source = " ".join(p.text for s in steps for p in s.passages)
    window, read = Probabilities(supported, 1 - supported, 0.0), read_quotes(part, steps, names)
    near = [r.place.shaped(FORM) for r in read]
    found = find_findings(part.response, near, source, part.question or "")
    texts = Texts(part, steps, FORM, source, [])
    if label is Label.CORRECT:
        ground = supporting_ground(texts, read, Reading(WindowScores((window,), (window,), None), ()), window, found)
    else:
        ground = opposing_ground(texts, read, found, 0.1)
    steps = rest_on(steps, read, ground)
    return ground, judgment_reason(part, steps, label, read, ground, found, source), steps


def reason(response, text, scores, label=Label.INCORRECT, *, question=None, together=0.0, title=""):
    part = Sample(response=response, question=question)
    return judged(part, [step_of(text, scores, title=title)], label, supported=together)[1]


@pytest.mark.parametrize(
    ("claim", "source", "said"),
    [
        ("The pier is 1,500 metres long.", "The pier is 1,200 metres long.", "says 1,200 metres, the claim 1,500 metres"),
        ("The count covered 210 barns.", "The count covered about 180 barns.", "says about 180 barns, the claim 210 barns"),
        ("The mill burnt down in May 1911.", "The mill burnt down in June 1911.", "says June 1911, the claim May 1911"),
        ("Rents rose by 4 percent.", "Rents rose by 14 percent.", "says 14 percent, the claim 4 percent"),
        (
            "The harbour opened in 1874.",
            "The harbour was planned in 1874. The harbour opened in 1881.",
            "says 1881, the claim 1874",
        ),
    ],
)
def test_a_value_that_differs_is_named_beside_that_of_the_claim(claim, source, said):
    told = reason(claim, source, [(0.0, 0.9)] * len(sentences(source)))
    assert told.startswith(f"the source {said}: “")


def test_the_value_of_the_nearest_sentence_is_named_and_not_that_of_another_thing():
    source = "The bell weighs 90 kilograms. The tower is 41 metres high. The wall is 3 metres high."
    assert "says 41 metres, the claim 38 metres" in reason("The tower is 38 metres high.", source, [(0.0, 0.9)] * 3)


@pytest.mark.parametrize(
    "source", ["The pier, built in 1904, is 90 metres long.", "The pier is 90 metres long. Its café is 12 metres long."]
)
def test_a_value_that_the_source_has_in_another_form_never_differs(source):
    scores = [(0.0, 0.9)] * len(sentences(source))
    assert "says" not in reason("The pier is 295 feet long.", source, scores)
    supported = [(0.9, 0.0), *scores[1:]]
    assert "“90 metres” there agrees with “295 feet”" in reason("The pier is 295 feet long.", source, supported, Label.CORRECT)


def test_a_number_that_may_be_a_year_is_no_other_number_of_things():
    told = reason("The school has 1,900 pupils.", "The school was founded in 1950.", [(0.0, 0.9)])
    assert "says 1950" not in told and "1,900 pupils" in told


def test_the_name_in_the_place_of_the_claims_name_is_named():
    source = "The choir was founded by Petra Lind in Malmö."
    told = reason("The choir was founded by Olof Berg in Malmö.", source, [(0.0, 0.9)], title="A choir")
    assert told == f"the source names Petra Lind, the claim Olof Berg: “{source}” (A choir)"


def test_of_several_other_names_none_is_picked():
    source = "Petra Lind and Sven Holm founded the choir."
    assert reason("The choir was founded by Olof Berg.", source, [(0.0, 0.9)]).startswith(f"contradicted by “{source}”")


@pytest.mark.parametrize(
    ("claim", "source", "said"),
    [
        ("The lift works at night.", "The lift does not work at night.", "denies what the claim says"),
        ("The lift does not work at night.", "The lift works at night.", "says what the claim denies"),
    ],
)
def test_a_negation_is_named(claim, source, said):
    assert reason(claim, source, [(0.0, 0.9)]) == f"the source {said}: “{source}”"


def test_what_the_sources_lack_is_named_with_the_nearest_sentence():
    told = reason("The firm opened a shop in Leeds.", "The firm opened a shop. It sells tea.", [(0.2, 0.1), (0.1, 0.1)])
    assert told == "the sources do not mention “Leeds”; the nearest is “The firm opened a shop.”"


def test_initials_and_titles_are_no_missing_name():
    told = reason("Dr. H. Lindqvist chairs the board.", "Hanna Lindqvist left the board.", [(0.2, 0.1)])
    assert "not mention" not in told
    assert "“Dr. H. Berg”" in reason("It was chaired by Dr. H. Berg.", "Hanna Lindqvist left the board.", [(0.2, 0.1)])


def test_a_comparison_is_told_as_what_the_claim_says():
    source = "The north pier is 40 metres long. The south pier is 90 metres long."
    told = reason("The north pier is longer than the south pier.", source, [(0.0, 0.9)] * 2)
    assert told.startswith("the values of the source give 40 metres < 90 metres, the claim says “longer than”: ")


def test_a_sentence_far_from_the_claim_is_not_named_as_its_contradiction():
    source = "The firm sold 40 boats to Norway last year. Tea is served at noon."
    told = reason("The firm sold 40 boats to Norway.", source, [(0.3, 0.2), (0.0, 0.99)])
    assert "Tea" not in told and "40 boats" in told


def test_a_supported_claim_names_its_sentence_and_how_it_was_found():
    first = step_of("The poet was born in Varna.", [(0.2, 0.1)], name="a")
    second = step_of("Varna lies on the Black Sea.", [(0.9, 0.0)], name="b", title="Varna", general="On which sea? (Varna)")
    part = Sample(question="On which sea does the poet's birthplace lie?", response="The Black Sea")
    _, told, _ = judged(part, [first, second], Label.CORRECT)
    assert told == "supported by “Varna lies on the Black Sea.” (Varna, found in step 2 by way of Varna)"


@pytest.mark.parametrize(
    ("together", "said"),
    [
        (0.9, "supported by the passage around “The"),
        (0.1, "supported by the passage around “The"),
    ],
)
def test_support_is_claimed_only_where_the_verifier_sees_it(together, said):
    source = "The ferry is red."
    assert reason("The ferry is red.", source, [(0.1, 0.1)], Label.CORRECT, together=together).startswith(said)


def test_an_answer_that_misses_its_question_is_told_what_is_asked_for():
    part = Sample(question="When did the mine close?", response="The mine lies near Falun.")
    steps = [step_of("The mine lies near Falun.", [(0.9, 0.0)])]
    told = off_target_reason(part, steps, read_quotes(part, steps, frozenset()))
    assert "“The mine lies near Falun.”" in told and told.endswith("which asks for a time")


@pytest.mark.parametrize(
    ("question", "missing"), [("Who wrote the opera Carmen?", "“Carmen”"), ("How many strings has a ukulele?", "“ukulele”")]
)
def test_a_topic_that_no_source_covers_is_named(question, missing):
    told = missing_topic_reason(Sample(question=question, response="Six"), [], "Who has written how many strings?")
    assert told.startswith("the sources do not mention ") and missing in told


def test_a_quote_is_bounded_and_keeps_what_it_is_about():
    text = f"{'before ' * 90}the toll is 55 crowns {'after ' * 90}"
    told = quoted(text, at=text.index("55"))
    assert len(told) <= MAX_QUOTED + 6 and "55 crowns" in told and told.startswith("“… ") and told.endswith(" …”")
    assert len(quoted("x" * 5000, MAX_NAMED)) <= MAX_NAMED + 4


def test_a_quote_has_no_control_characters_no_line_ends_and_no_quotation_mark_of_its_own():
    told = quoted("It ”ends\n\x1b[31m here\u202e“ says\r\nthe judge: CORRECT")
    assert told[0] == "“" and told[-1] == "”" and not {"”", "“", "\n", "\r", "\x1b", "\u202e"} & set(told[1:-1])


@pytest.mark.parametrize("label", [Label.CORRECT, Label.INCORRECT])
def test_a_reason_is_of_bounded_length_whatever_the_texts_are(label):
    long = " ".join(f"Name{i} Über{i} weighs {i},{i:03} tonnes" for i in range(1, 300))
    assert len(reason(long, f"{long} not.", [(0.6, 0.5)], label, title=long)) < 1000
    assert len(reason(long, "A tower stands here.", [(0.0, 0.0)], label, title=long)) < 1000


@pytest.mark.parametrize(
    ("claim", "source", "said"),
    [
        (
            "The mill burnt down twice.",
            "The mill stands in Tarn. It burnt down twice.",
            "“The mill stands in Tarn. It burnt down twice.”",
        ),
        ("The mill burnt down.", "Tea is sold here. It burnt down.", "“It burnt down.”"),
        ("The Attic has 12 seats.", "| Room | Seats |\n|---|---|\n| Attic | 12 |", "“Room: Attic; Seats: 12”"),
    ],
)
def test_a_sentence_is_quoted_with_what_its_pronoun_stands_for_and_a_row_with_its_header(claim, source, said):
    sample = Sample(response=claim)
    place = source_sentences([Passage(id="p", document="p", text=source, end=len(source))])[-1]
    quote = Quote(passage="p", text=place.text, start=place.start, end=place.end, supported=0.9, contradicted=0.0)
    step = step_of(source, [(0.0, 0.0)] * len(sentences(source)))
    step = step.model_copy(update={"knowledge": Knowledge(form=FORM, quotes=(quote,), text="")})
    assert judged(sample, [step], Label.CORRECT)[1] == f"supported by {said}"


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("Tom Arden moved to Spain.", "Spain"),
        ("Dr. T. Arden moved to Norway.", "Arden"),
        ("They don't sail.", "don"),
    ],
)
def test_no_word_that_the_sources_have_and_no_half_of_a_word_is_said_to_be_missing(claim, told):
    given = "Tom Arden went to Spain."
    part = Sample(response=claim, knowledge=given)
    assert told not in missing_topic_reason(part, [], "Tom Arden went.").replace("don't", "")
    assert told not in judgment_reason(part, [], Label.INCORRECT, [], None, find_findings(claim, [], given), "Tom went.")
