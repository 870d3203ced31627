#!/usr/bin/env python
"""Verifiers on held-out rows as they are, and with the source or the claim said as triplets, the form of structured knowledge.

Only rows whose text changes by it and loses no word, and that overlap with nothing that was trained on.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from metrics import auc
from tables import write_results

from knowhalu.encoder.backend import PACKAGED_VERIFIER, EncoderBackend
from knowhalu.requests import EntailmentPair
from knowhalu.training.examples import SUPPORTED, TrainingExample, say_as_triplets
from knowhalu.training.holdout import HeldOutRows, draw_examples
from knowhalu.training.recipes import RECIPES

PARTS = (
    "written plain claims on real passages", "written claims on real passages", "FEVER dev claims", "written claims",
    "MNLI (TaxiNLI's 10k)",
)  # fmt: skip
FEWEST = 30
SIDES: dict[str, Callable[[TrainingExample], TrainingExample | None]] = {
    "source": lambda e: e._replace(premise=said) if (said := say_as_triplets(e.premise)) else None,
    "claim": lambda e: e._replace(claim=said) if (said := say_as_triplets(e.claim)) else None,
}


def pairs(held: HeldOutRows, name: str, side: str, most: int) -> list[tuple[TrainingExample, TrainingExample]]:
    """Return examples of a part as they are, each beside itself with one side said as triplets."""
    recipe = next(r for r in RECIPES if r.name == name)
    drawn = (e for e in islice(draw_examples(recipe, held.of), 5 * most) if e.premise and not e.question)
    return list(islice(((e, other) for e in drawn if (other := SIDES[side](e)) is not None), most))


def measured(backend: EncoderBackend, found: Sequence[tuple[TrainingExample, TrainingExample]]) -> list[float]:
    """Return ROC-AUC of the verifier alone on the rows as they are, and as triplets."""
    gold = np.array([e.target == SUPPORTED for e, _ in found])
    asked = [[EntailmentPair(e.premise, e.claim) for e in column] for column in zip(*found, strict=True)]
    return [auc(gold, np.array([p.supported for p in backend.score(column)])) for column in asked]


def table(found: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Lay out one line a part and side, and the means of both sides."""
    head = "".join(f" {name}: as they are | as triplets |" for name in names)
    lines = [f"| part | as triplets | rows |{head}", "|---|---|---|" + "---|---|" * len(names)]
    for side in SIDES:
        some = [r for r in found if r["side"] == side]
        for r in some:
            lines.append(f"| {r['part']} | {side} | {r['rows']} | {' | '.join(f'{v:.3f}' for n in names for v in r[n])} |")
        means = [np.mean([r[n][i] for r in some]) for n in names for i in (0, 1)]
        lines.append(f"| **mean** | {side} | | {' | '.join(f'{v:.3f}' for v in means)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files, whose texts are left out")
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files")
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER of a verifier; default: the shipped one")
    parser.add_argument("--rows", type=int, default=300, help="rows of a part and side at most")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/triplet_form.json"))
    args = parser.parse_args()
    folders = dict(f.split("=", 1) for f in args.folder) or {"shipped": str(PACKAGED_VERIFIER)}
    held, backends = HeldOutRows(args.training, args.data), {n: EncoderBackend(Path(f)) for n, f in folders.items()}
    found: list[dict[str, Any]] = []
    for side in SIDES:
        for name in PARTS:
            if len(some := pairs(held, name, side, args.rows)) >= FEWEST:
                by = {n: measured(backend, some) for n, backend in backends.items()}
                found.append({"part": name, "side": side, "rows": len(some), **by})
                print(found[-1], flush=True)
    write_results(args.out, found, table(found, list(folders)))


if __name__ == "__main__":
    main()
