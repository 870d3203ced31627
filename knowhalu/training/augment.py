"""Examples seen again in another form with the same label, so that rows that are read many times are not learnt by heart."""

import random

from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.triplets import extract_triplets, triplets_to_text
from knowhalu.training.examples import TrainingExample
from knowhalu.training.paraphrase import detokenize, rewrite_date, rewrite_number, swap_synonym

MAX_WORD_OVERLAP = 0.5
"""Sentences of another source with this share of the claim's words may speak of it, and are not put beside its premise."""
REWORDINGS = (swap_synonym, swap_synonym, rewrite_number, rewrite_date)
"""Ways to say the same that leave nothing out: a detail that is gone may have been the wrong one."""


TRIPLET_SHARE = 0.3
"""How many of the texts that are said otherwise are said as triplets."""


def vary_example(example: TrainingExample, other: str, share: float, rng: random.Random) -> TrainingExample:
    """With probability `share` each: say the premise otherwise, say the claim otherwise, put another source's sentences beside.

    Claims with marked words stay as they are, and so do questions, and examples without a premise.
    """
    if not example.premise:
        return example
    if rng.random() < share:
        example = example._replace(premise=_reword(example.premise, rng))
    if rng.random() < share and not example.wrong and not example.question:
        example = example._replace(claim=_reword(example.claim, rng))
    return _add_distractors(example, other, rng) if rng.random() < share else example


def say_as_triplets(text: str) -> str | None:
    """Say a text as its triplets, the form of structured knowledge; None where a word would be lost, or nothing changes."""
    facts = [fact for s in sentences(text) for fact in extract_triplets(s.text)]
    said = triplets_to_text(facts)
    whole = set(content_words(text)) <= set(content_words(said)) and all(f.predicate != "states" for f in facts)
    return said if whole and said.rstrip(".") != text.rstrip(".") else None


def _reword(text: str, rng: random.Random) -> str:
    if rng.random() < TRIPLET_SHARE and (said := say_as_triplets(text)) is not None:
        return said
    for way in rng.sample(REWORDINGS, 2):
        text = way(text, rng)
    return text


def _add_distractors(example: TrainingExample, other: str, rng: random.Random) -> TrainingExample:
    """Put one or two sentences of another source before or after the premise."""
    found = [s.text for s in sentences(detokenize(other)) if len(s.text.split()) <= 40]
    start = rng.randrange(max(1, len(found)))
    beside = " ".join(found[start : start + rng.randint(1, 2)])
    wanted = set(content_words(f"{example.question} {example.claim}"))
    if not beside or len(wanted.intersection(content_words(beside))) >= MAX_WORD_OVERLAP * len(wanted):
        return example
    before = rng.random() < 0.5
    return example._replace(premise=f"{beside} {example.premise}" if before else f"{example.premise} {beside}")
