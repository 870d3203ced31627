#!/usr/bin/env python
"""Fit the weights by which the encoder judges a single entity, or with --cut the threshold for these weights, and print them.

The weights belong in knowhalu/methods/conli/encoder.py. The threshold is fitted after them on whole claims, because a claim has
several entities, and one unsupported entity fails its sentence.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from knowhalu.api import Checker
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.options import PACKAGED_VERIFIER, EncoderOptions
from knowhalu.methods.common.judgment_model import MAX_LOGIT, logit
from knowhalu.methods.conli.encoder import ENTITY_WEIGHTS, judge_entities
from knowhalu.methods.conli.entity_support import sentences_in_context
from knowhalu.methods.options import ConliOptions
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.text.entities import find_entities
from knowhalu.text.probabilities import require_measured
from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import TrainingRow, read_training_rows, run_script, text_of
from knowhalu.training.edits import detokenize, find_details, rephrase, swap_listed, swap_name, swap_number, swap_roles
from knowhalu.training.fit_rows import claim_rows, read_held_rows
from knowhalu.training.fitting import fit_signed_logistic
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import CLAIMS_FILE, SYNTHETIC_PAIRS_FILE, WIKIPEDIA_FILE
from knowhalu.types import Entity, Judgment, Passage

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
    """Yield the distinct labelled entities of all parts.

    Entities that an edit changed or a writer marked as wrong are unsupported, those of true statements are supported, and other
    entities of false statements are left out.
    """
    yield from dict.fromkeys(_entity_rows(held, seed, documents))


def _entity_rows(held: HeldOutRows, seed: int, documents: int) -> Iterator[EntityRow]:
    for row in read_held_rows(held, CLAIMS_FILE):
        yield from _written_entities(row)
    for row in held.among(read_training_rows(held.data / SYNTHETIC_PAIRS_FILE)):
        if row.get("dataset") == "xsum":  # the other summaries are in small letters, so they show no names
            yield from _edited_summary(row)
    rng = random.Random(seed)
    for file in (WIKIPEDIA_FILE, SYNTHETIC_PAIRS_FILE):
        cased = (r for r in held.among(read_training_rows(held.data / file)) if r.get("dataset") != "cnn_dm")
        for row in islice(cased, documents):
            yield from _own_sentences(detokenize(text_of(row)), rng)


def _written_entities(row: TrainingRow) -> Iterator[EntityRow]:
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


def features(rows: list[EntityRow], backend: EncoderBackend) -> list[dict[str, float]]:
    """Judge all rows in batches and return their features."""
    read: list[dict[str, float]] = []
    for i in range(0, len(rows), 64):
        some = rows[i : i + 64]
        conversations = [
            judge_entities([(r.text, r.entity)], sentences_in_context([Passage(id="d", text=r.source)])) for r in some
        ]
        requests: list[Any] = [next(conversation) for conversation in conversations]
        replies = backend.answer_many(requests)
        for conversation, reply in zip(conversations, replies, strict=True):
            read.append(_sent(conversation, reply).features)
    return read


def _sent(conversation: Any, reply: Any) -> Judgment:
    try:
        conversation.send(reply)
    except StopIteration as end:
        (judgment,) = end.value
        return judgment  # type: ignore[no-any-return]
    raise RuntimeError("the judgment of an entity takes one request")


def cut(held: HeldOutRows, folder: Path, threads: int) -> None:
    """Print the average accuracy of both levels on held-out claims by threshold; the first line uses sentences alone."""
    rows = list(claim_rows(held))
    settings = Settings(
        method="conli", encoder=EncoderOptions(verifier=str(folder), threads=threads), conli=ConliOptions(select=False)
    )
    judged = []
    for row, outcome in zip(rows, Checker(settings).stream(r.sample for r in rows), strict=True):
        assert isinstance(outcome, Verdict), outcome
        passes = all(require_measured(s.base.p_supported) >= 0.5 for s in outcome.segments)
        scores = [require_measured(f.p_supported) for s in outcome.segments for f in s.findings]
        worst = min((logit(p) + ENTITY_WEIGHTS.cut for p in scores), default=MAX_LOGIT)
        judged.append((passes, worst, row.supported, row.weight))
    for threshold in (-MAX_LOGIT, *np.arange(-4.0, 2.01, 0.25)):
        right = {gold: [(p and w >= threshold) == gold for p, w, g, _ in judged if g is gold] for gold in (True, False)}
        shares = [sum(hits) / len(hits) for hits in right.values()]
        print(f"{threshold:5.2f}  true {shares[0]:.3f}  false {shares[1]:.3f}  average {sum(shares) / 2:.4f}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: rows that overlap with them are left out")
    parser.add_argument("--folder", type=Path, default=PACKAGED_VERIFIER, help="verifier folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cut", action="store_true", help="fit the threshold for the weights in the code")
    args = parser.parse_args()
    held = HeldOutRows(args.data, args.leave_out)
    if args.cut:
        cut(held, args.folder, args.threads)
        return
    rows = list(entity_rows(held))
    read = features(rows, EncoderBackend(args.folder, threads=args.threads))
    gold = [r.supported for r in rows]
    sizes = Counter(r.origin for r in rows)
    fitted = fit_signed_logistic(read, gold, [1 / sizes[r.origin] for r in rows])
    print(json.dumps(fitted, indent=1))
    weights: Any = fitted["weights"]
    scores = [sum(w * f[n] for n, w in weights.items()) for f in read]
    for origin in sizes:
        some = [i for i, r in enumerate(rows) if r.origin == origin]
        auc = roc_auc_score([gold[i] for i in some], [scores[i] for i in some])
        print(f"{origin:24} entities {len(some):5}  wrong {sum(not gold[i] for i in some):4}  ROC-AUC {auc:.3f}")


if __name__ == "__main__":
    run_script(main)
