"""Questions on the details of a text, made from its sentences, with right, wrong and unfitting answers."""

import random
import re
from typing import NamedTuple

from knowhalu.text import sentences
from knowhalu.training.edits import MONTHS, NAME, NUMBER
from knowhalu.training.examples import CONTRADICTED, NEUTRAL, SUPPORTED, UNSUPPORTED, Example, extracted
from knowhalu.training.rephrase import tidy
from knowhalu.training.rows import Row, text_of

_DETAIL = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b|{NUMBER.pattern}|{NAME.pattern}")


class Asked(NamedTuple):
    """A question on a detail of a sentence, its answer, and the other details of the text: of the same kind, and of others."""

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


def question_on(document: str, rng: random.Random) -> Asked | None:
    """Ask for a name or number of one of the first sentences; None where they hold none."""
    places = [(s, m) for s in sentences(document)[:8] for m in _DETAIL.finditer(s.text) if m.start() > 0]
    if not places:
        return None
    sentence, match = rng.choice(places)
    right, kind = match.group(), _kind(match.group())
    question = f"{sentence.text[: match.start()]}{kind}{sentence.text[match.end() :].rstrip('.')}?"
    others = sorted({m.group() for _, m in places if m.group() not in right and right not in m.group()})
    alike = tuple(d for d in others if _kind(d) == kind)
    unlike = tuple(d for d in others if _kind(d) != kind)
    return Asked(document, sentence.text, question, right, kind, alike, unlike)


def asked(row: Row, other: Row, rng: random.Random) -> Example:
    """Ask for a name or number of a document; the answer is it, another of its kind, or of another kind."""
    document = tidy(text_of(row))
    made = question_on(document, rng)
    if made is None:
        return extracted(row, other, rng)
    roll = rng.random()
    if roll < 0.4 and made.alike:
        answer = rng.choice(made.alike)
        target = UNSUPPORTED if made.kind == "who or what" else CONTRADICTED
        return Example(document, made.question, answer, target, ((0, len(answer)),))
    if roll < 0.5 and made.unlike:
        return Example(document, made.question, rng.choice(made.unlike), NEUTRAL)
    if roll < 0.6 and len(sentences(document)) > 1:
        rest = " ".join(s.text for s in sentences(document) if made.right not in s.text)
        return Example(rest or tidy(text_of(other)), made.question, made.right, NEUTRAL)
    return Example(document, made.question, made.sentence if rng.random() < 0.15 else made.right, SUPPORTED)
