"""Make claims of which the subject decides: a sentence that needs the one before, and a fact that belongs to another subject."""

import random
import re

from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import TrainingRow, text_of
from knowhalu.training.edits import detokenize, find_details, rephrase
from knowhalu.training.examples import (
    NEUTRAL,
    SUPPORTED,
    UNSUPPORTED,
    TrainingExample,
    edit_example,
    own_sentence_example,
)

_PRONOUN_OPENING = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|Here|There)\b")
_BRACKET = re.compile(r"\s*\([^()]*\)")
MIN_WORDS, MAX_WORDS = 5, 40


def followed_sentence_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Make a claim of a sentence that opens with a pronoun, with the sentence before it as its context.

    The claim is right, edited, or follows a sentence of another text, so that the pronoun means somebody else.
    """
    document = detokenize(text_of(row))
    pieces = [s.text for s in sentences(document)]
    places = [i for i, p in enumerate(pieces) if i and _PRONOUN_OPENING.match(p) and MIN_WORDS <= len(p.split()) <= MAX_WORDS]
    if not places:
        return own_sentence_example(row, other, rng)
    i = rng.choice(places)
    claim = rephrase(pieces[i], rng) if rng.random() < 0.7 else pieces[i]
    premise = " ".join(pieces[max(0, i - rng.randint(1, 3)) : i + rng.randint(1, 3)])
    roll = rng.random()
    if roll < 0.2:
        elsewhere = [s.text for s in sentences(detokenize(text_of(other)))[:2]]
        if elsewhere and elsewhere[0] != pieces[i - 1]:
            both = f"{elsewhere[0]} {premise}" if rng.random() < 0.5 else f"{premise} {elsewhere[0]}"
            return TrainingExample(both, elsewhere[0], claim, UNSUPPORTED)
    if roll < 0.35:
        kept = [p for p in pieces[: i + 3] if p != pieces[i]]
        return TrainingExample(" ".join(kept), pieces[i - 1], claim, NEUTRAL)
    example = TrainingExample(premise, pieces[i - 1], claim, SUPPORTED)
    return edit_example(example, find_details(document), rng) if roll < 0.65 else example


def exchanged_subject_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Make a claim of a sentence that names the subject of its text, or put the subject of another text in its place.

    Both texts are in the premise more often than not, so that every word of a wrong claim is there, too.
    """
    title, foreign = (_BRACKET.sub("", str(r.get("title") or "")) for r in (row, other))
    document, beside = detokenize(text_of(row)), detokenize(text_of(other))
    naming = [
        s.text for s in sentences(document)[:6] if title and title in s.text and MIN_WORDS <= len(s.text.split()) <= MAX_WORDS
    ]
    if not naming or not foreign or foreign == title or foreign not in beside:
        return own_sentence_example(row, other, rng)
    claim = rng.choice(naming)
    claim = rephrase(claim, rng) if rng.random() < 0.7 else claim
    if title not in claim:
        return own_sentence_example(row, other, rng)
    premise = document if rng.random() < 0.4 else f"{document} {beside}" if rng.random() < 0.5 else f"{beside} {document}"
    if rng.random() < 0.5:
        return TrainingExample(premise, "", claim, SUPPORTED)
    at = claim.index(title)
    wrong = claim[:at] + foreign + claim[at + len(title) :]
    both = premise if premise != document else f"{document} {beside}"
    return TrainingExample(both, "", wrong, UNSUPPORTED, ((at, at + len(foreign)),))
