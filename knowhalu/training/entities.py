"""Draw entities with gold labels, to fit the encoder's judgment of single entities.

They come from written claims, edited summaries and own sentences of held-out sources that overlap with nothing the verifier has
seen. Entities that an edit changed or a writer marked as wrong are unsupported, those of true statements are supported, and other
entities of false statements are left out.
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from knowhalu.text.entities import find_entities
from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import TrainingRow, read_training_rows, text_of
from knowhalu.training.edits import detokenize, find_details, rephrase, swap_listed, swap_name, swap_number, swap_roles
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import CLAIMS_FILE, SYNTHETIC_PAIRS_FILE, WIKIPEDIA_FILE, locate_file
from knowhalu.types import Entity

ENTITY_SWAPS = (swap_number, swap_listed, swap_name, swap_name, swap_roles)
SENTENCES_PER_DOCUMENT = 4
"""Sentences sampled from a document."""


class EntityRow(NamedTuple):
    """An entity of a sentence, its source, and whether the source supports it."""

    source: str
    text: str
    entity: Entity
    supported: bool
    origin: str


def entity_rows(held: HeldOutRows, seed: int = 0, documents: int = 250) -> Iterator[EntityRow]:
    """Yield the distinct labelled entities of all parts."""
    yield from dict.fromkeys(_rows(held, seed, documents))


def _rows(held: HeldOutRows, seed: int, documents: int) -> Iterator[EntityRow]:
    for row in held.among(read_training_rows(locate_file(CLAIMS_FILE, held.data))):
        yield from _written(row)
    for row in held.among(read_training_rows(held.data / SYNTHETIC_PAIRS_FILE)):
        if row.get("dataset") == "xsum":  # the other summaries are in small letters, so they show no names
            yield from _edited_summary(row)
    rng = random.Random(seed)
    for file in (WIKIPEDIA_FILE, SYNTHETIC_PAIRS_FILE):
        cased = (r for r in held.among(read_training_rows(held.data / file)) if r.get("dataset") != "cnn_dm")
        for row in islice(cased, documents):
            yield from _own_sentences(detokenize(text_of(row)), rng)


def _written(row: TrainingRow) -> Iterator[EntityRow]:
    for claim in row["claims"]:
        text, wrong = claim["text"], claim["wrong"] or ""
        at = text.find(wrong) if wrong else -1
        for entity in find_entities(text):
            if claim["label"] == "supported":
                yield EntityRow(row["document"], text, entity, True, "written claims")
            elif at >= 0 and entity.start < at + len(wrong) and at < entity.end:
                yield EntityRow(row["document"], text, entity, False, "written claims")


def _edited_summary(row: TrainingRow) -> Iterator[EntityRow]:
    source = detokenize(row["document"])
    right, wrong = detokenize(row["right_summary"]), detokenize(row["hallucinated_summary"])
    for text, supported in ((right, True), (wrong, False)):
        for entity in find_entities(text):
            if supported or entity.text not in right:
                yield EntityRow(source, text, entity, supported, "FIB summaries, edited")


def _own_sentences(document: str, rng: random.Random) -> Iterator[EntityRow]:
    """Yield entities of paraphrased sentences of a document, half of them with one detail changed."""
    pieces = [s.text for s in sentences(document) if 5 <= len(s.text.split()) <= 40]
    for piece in rng.sample(pieces, min(SENTENCES_PER_DOCUMENT, len(pieces))):
        text = rephrase(piece, rng)
        changed = rng.choice(ENTITY_SWAPS)(text, rng, find_details(document)) if rng.random() < 0.5 else None
        if changed is None or changed.text == text:
            yield from (EntityRow(document, text, e, True, "own sentences") for e in find_entities(text))
            continue
        for entity in find_entities(changed.text):
            if entity.start < changed.end and changed.start < entity.end and entity.text not in text:
                yield EntityRow(document, changed.text, entity, False, "own sentences")
