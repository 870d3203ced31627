"""Make questions on a text with correct, wrong and off-target answers (KnowHalu, section 3.1), and refusals."""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from knowhalu.text.sentences import sentences
from knowhalu.text.wordlists import MONTHS
from knowhalu.training.data_files import TrainingRow, text_of
from knowhalu.training.edits import NAME, NUMBER, detokenize, rephrase
from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, UNSUPPORTED, TrainingExample, own_sentence_example

_DETAIL = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b|{NUMBER.pattern}|{NAME.pattern}")


class DetailQuestion(NamedTuple):
    """A question on a detail of a sentence, its answer, and other details of the text, of the same kind and of others."""

    document: str
    sentence: str
    question: str
    right: str
    kind: str
    alike: tuple[str, ...]
    unlike: tuple[str, ...]


def _kind(detail: str) -> str:
    if detail in MONTHS:
        return "which month"
    if not detail[0].isdigit():
        return "who or what"
    return "which year" if re.fullmatch(r"1\d{3}|20\d\d", detail) else "how many"


def ask_detail(document: str, rng: random.Random) -> DetailQuestion | None:
    """Make a question on a name or number in one of the first sentences; None where they have none."""
    places = [(s, m) for s in sentences(document)[:8] for m in _DETAIL.finditer(s.text) if m.start() > 0]
    if not places:
        return None
    sentence, match = rng.choice(places)
    right, kind = match.group(), _kind(match.group())
    question = f"{sentence.text[: match.start()]}{kind}{sentence.text[match.end() :].rstrip('.')}?"
    others = sorted({m.group() for _, m in places if m.group() not in right and right not in m.group()})
    alike = tuple(d for d in others if _kind(d) == kind)
    unlike = tuple(d for d in others if _kind(d) != kind)
    return DetailQuestion(document, sentence.text, question, right, kind, alike, unlike)


def detail_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Make a question on a name or number of a document; the answer is that detail, or another of the same or another kind."""
    document = detokenize(text_of(row))
    detail = ask_detail(document, rng)
    if detail is None:
        return own_sentence_example(row, other, rng)
    roll = rng.random()
    if roll < 0.4 and detail.alike:
        answer = rng.choice(detail.alike)
        target = UNSUPPORTED if detail.kind == "who or what" else CONTRADICTED
        return TrainingExample(document, detail.question, answer, target, ((0, len(answer)),))
    if roll < 0.5 and detail.unlike:
        return TrainingExample(document, detail.question, rng.choice(detail.unlike), NEUTRAL)
    if roll < 0.6 and len(sentences(document)) > 1:
        rest = " ".join(s.text for s in sentences(document) if detail.right not in s.text)
        return TrainingExample(rest or detokenize(text_of(other)), detail.question, detail.right, NEUTRAL)
    return TrainingExample(document, detail.question, detail.sentence if rng.random() < 0.15 else detail.right, SUPPORTED)


_CATEGORIES = {
    "which year": (
        "in the past", "during the last century", "some time ago", "in a later year", "after a number of years",
        "a year that is on record", "in the early part of the period", "at some point in history",
    ),
    "which month": ("during the year", "at some time of the year", "in one of the seasons", "that same year"),
    "how many": (
        "a number of them", "quite a few", "several", "a certain amount", "more than some others", "a quantity worth mentioning",
    ),
    "who or what": (
        "a person", "a well-known figure", "someone who worked in that field", "an organisation", "a place", "a group of people",
        "something of that kind", "a notable name", "one of those involved", "an institution", "a European one", "a local one",
    ),
}  # fmt: skip
_LEADS = ("", "", "It was ", "That would be ", "The answer is ", "This was ")
_GENERAL = (
    "There are many opinions on this, and much depends on the context.",
    "This is a subject that has drawn attention over the years.",
    "Such things differ from place to place and from time to time.",
    "It played a role of some importance in its field.",
    "Many factors were involved, as is often the case.",
    "It is known for a variety of reasons.",
    "People have long been interested in this kind of thing.",
    "It has had a long and eventful history.",
)  # fmt: skip
_REFUSALS = (
    "I do not have enough information to answer this.",
    "I'm sorry, but I cannot say from what I have been given.",
    "The passage does not tell.",
    "There is not enough detail here to know.",
    "I am not able to find this in the text.",
    "Unfortunately that is not something I can determine.",
    "I don't know.",
    "It is unclear from the sources.",
)  # fmt: skip
_REPEATS = ("{}.", "The question of {} is a good one.", "{}, as the question says.", "As asked, {}.")
_NEGATIONS = ("It was not {}.", "Not {}.", "It is not {}, at any rate.", "Certainly not {}.", "{} is not the answer.")


def name_category(detail: DetailQuestion, rng: random.Random) -> str:
    """Answer with a category instead of an instance."""
    text = rng.choice(_LEADS) + rng.choice(_CATEGORIES[detail.kind])
    return text[:1].upper() + text[1:] + ("." if rng.random() < 0.5 else "")


def repeat_question(detail: DetailQuestion, rng: random.Random) -> str:
    """Repeat the question as if it were an answer."""
    vague = rng.choice(("someone", "something", "that", "a certain one"))
    plain = re.sub(rf"\b{detail.kind}\b", vague, detail.question.rstrip("?"))
    return rng.choice(_REPEATS).format(plain[:1].lower() + plain[1:] if rng.random() < 0.5 else plain)


def answer_other_question(detail: DetailQuestion, rng: random.Random) -> str:
    """Answer a neighbouring question: another sentence of the text, or a detail of another kind."""
    others = [s.text for s in sentences(detail.document) if s.text != detail.sentence and detail.right not in s.text]
    if detail.unlike and (not others or rng.random() < 0.5):
        return rng.choice(detail.unlike)
    return rephrase(rng.choice(others), rng) if others else rng.choice(_GENERAL)


def negate_answer(detail: DetailQuestion, rng: random.Random) -> str:
    """Answer with a negation."""
    return rng.choice(_NEGATIONS).format(rng.choice(detail.alike or detail.unlike or ("that",)))


def overgeneralise(detail: DetailQuestion, rng: random.Random) -> str:
    """Answer with a generality that is true of nearly everything."""
    return rng.choice(_GENERAL)


def refuse_answer(detail: DetailQuestion, rng: random.Random) -> str:
    """Decline to answer."""
    return rng.choice(_REFUSALS)


EVASIONS: tuple[Callable[[DetailQuestion, random.Random], str], ...] = (
    name_category,
    repeat_question,
    answer_other_question,
    negate_answer,
    overgeneralise,
    refuse_answer,
)


def evasion_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Answer a made question or evade it, without a source: a wrong answer of the right kind counts as on target."""
    detail = ask_detail(detokenize(text_of(row)), rng)
    if detail is None:
        return own_sentence_example(row, other, rng)
    if rng.random() < 0.5:
        answer = rng.choice(detail.alike) if detail.alike and rng.random() < 0.5 else detail.right
        lead = rng.choice(_LEADS) if rng.random() < 0.5 else ""
        whole = detail.sentence if answer == detail.right and rng.random() < 0.25 else f"{lead}{answer}{'.' if lead else ''}"
        return TrainingExample("", detail.question, whole, SUPPORTED)
    return TrainingExample("", detail.question, rng.choice(EVASIONS)(detail, rng), NEUTRAL)
