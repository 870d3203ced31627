"""Examples seen again in another form with the same label, so that rows that are read many times are not learnt by heart."""

import random

from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.triplets import as_text, triplets
from knowhalu.training.examples import Example
from knowhalu.training.paraphrase import other_date, other_digits, other_word, tidy

ALIKE = 0.5
"""Sentences of another source with this share of the claim's words may speak of it, and are not put beside its premise."""
SAME = (other_word, other_word, other_digits, other_date)
"""Ways to say the same that leave nothing out: a detail that is gone may have been the wrong one."""


SHAPED = 0.3
"""How many of the texts that are said otherwise are said as triplets."""


def varied(example: Example, other: str, share: float, rng: random.Random) -> Example:
    """With probability `share` each: say the premise otherwise, say the claim otherwise, put another source's sentences beside.

    Claims with marked words stay as they are, and so do questions, and examples without a premise.
    """
    if not example.premise:
        return example
    if rng.random() < share:
        example = example._replace(premise=_reworded(example.premise, rng))
    if rng.random() < share and not example.wrong and not example.question:
        example = example._replace(claim=_reworded(example.claim, rng))
    return _among(example, other, rng) if rng.random() < share else example


def shaped(text: str) -> str | None:
    """Say a text as its triplets, the form of structured knowledge; None where a word would be lost, or nothing changes."""
    facts = [fact for s in sentences(text) for fact in triplets(s.text)]
    said = as_text(facts)
    whole = set(content_words(text)) <= set(content_words(said)) and all(f.predicate != "states" for f in facts)
    return said if whole and said.rstrip(".") != text.rstrip(".") else None


def _reworded(text: str, rng: random.Random) -> str:
    if rng.random() < SHAPED and (said := shaped(text)) is not None:
        return said
    for way in rng.sample(SAME, 2):
        text = way(text, rng)
    return text


def _among(example: Example, other: str, rng: random.Random) -> Example:
    """Put one or two sentences of another source before or after the premise."""
    found = [s.text for s in sentences(tidy(other)) if len(s.text.split()) <= 40]
    start = rng.randrange(max(1, len(found)))
    beside = " ".join(found[start : start + rng.randint(1, 2)])
    wanted = set(content_words(f"{example.question} {example.claim}"))
    if not beside or len(wanted.intersection(content_words(beside))) >= ALIKE * len(wanted):
        return example
    before = rng.random() < 0.5
    return example._replace(premise=f"{beside} {example.premise}" if before else f"{example.premise} {beside}")
