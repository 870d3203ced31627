"""Answers that do not deliver what is asked for, made in the five ways of the KnowHalu paper (section 3.1), and refusals.

The verifier sees question and answer without any source, so it learns what an answer gives, never whether it is true.
"""

import random
import re
from collections.abc import Callable

from knowhalu.text import sentences
from knowhalu.training.asked import Asked, question_on
from knowhalu.training.examples import NEUTRAL, SUPPORTED, Example, extracted
from knowhalu.training.rephrase import rephrase, tidy
from knowhalu.training.rows import Row, text_of

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


def too_broad(made: Asked, rng: random.Random) -> str:
    """Name a category in place of the instance."""
    text = rng.choice(_LEADS) + rng.choice(_CATEGORIES[made.kind])
    return text[:1].upper() + text[1:] + ("." if rng.random() < 0.5 else "")


def parroting(made: Asked, rng: random.Random) -> str:
    """Say the question again as if it were an answer."""
    plain = re.sub(rf"\b{made.kind}\b", rng.choice(("someone", "something", "that", "a certain one")), made.question.rstrip("?"))
    return rng.choice(_REPEATS).format(plain[:1].lower() + plain[1:] if rng.random() < 0.5 else plain)


def misread(made: Asked, rng: random.Random) -> str:
    """Answer a neighbouring question: another sentence of the text, or a detail of another kind."""
    others = [s.text for s in sentences(made.document) if s.text != made.sentence and made.right not in s.text]
    if made.unlike and (not others or rng.random() < 0.5):
        return rng.choice(made.unlike)
    return rephrase(rng.choice(others), rng) if others else rng.choice(_GENERAL)


def negation(made: Asked, rng: random.Random) -> str:
    """Say what it is not."""
    return rng.choice(_NEGATIONS).format(rng.choice(made.alike or made.unlike or ("that",)))


def overgeneral(made: Asked, rng: random.Random) -> str:
    """Say something that is true of nearly everything."""
    return rng.choice(_GENERAL)


def refusal(made: Asked, rng: random.Random) -> str:
    """Decline to answer."""
    return rng.choice(_REFUSALS)


WAYS: tuple[Callable[[Asked, random.Random], str], ...] = (too_broad, parroting, misread, negation, overgeneral, refusal)


def evading(row: Row, other: Row, rng: random.Random) -> Example:
    """Answer a made question or evade it, without a source: a wrong answer of the right kind delivers as a right one does."""
    made = question_on(tidy(text_of(row)), rng)
    if made is None:
        return extracted(row, other, rng)
    if rng.random() < 0.5:
        answer = rng.choice(made.alike) if made.alike and rng.random() < 0.5 else made.right
        lead = rng.choice(_LEADS) if rng.random() < 0.5 else ""
        whole = made.sentence if answer == made.right and rng.random() < 0.25 else f"{lead}{answer}{'.' if lead else ''}"
        return Example("", made.question, whole, SUPPORTED)
    return Example("", made.question, rng.choice(WAYS)(made, rng), NEUTRAL)
