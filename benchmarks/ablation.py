#!/usr/bin/env python
"""What each part of the training brings: verifiers that differ in one thing, on the same rows, against the first of them.

The difference of mean ROC-AUC over the twelve sets of `verifier.py` has an interval by a paired bootstrap: sources are drawn
again within every set, the same for both. "Held out" is the mean over sources of the training files that no training reads;
choices are made by that column, since the twelve sets are test sets. Scores are kept by
the hash of the weights (`--scores`), so a variant is scored once.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, auc, redrawn, write_results
from verifier import SETS, sampled, scores

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.io.fitted_files import weights_hash
from knowhalu.training.holdout import HeldOutRows, score_recipes

HELD = "held out: "
FEWEST = 30
"""Examples below which a held-out part tells nothing."""


def scored(folder: Path, rows: Mapping[str, Sequence[EvalRow]], held: HeldOutRows, kept: Path) -> dict[str, Array]:
    """Return P(supported) of all rows of the sets, and the ROC-AUC of the held-out parts; read again where they are kept."""
    if kept.exists():
        with np.load(kept) as file:
            return {k: file[k] for k in file.files}
    backend = EncoderBackend(folder)
    found = {name: scores(backend, part) for name, part in rows.items()}
    parts = score_recipes(Verifier.load(folder), PairTokenizer.load(folder), held.of, limit=200, fewest=FEWEST)
    found |= {f"{HELD}{p.name}": np.array(p.auc) for p in parts}
    kept.parent.mkdir(parents=True, exist_ok=True)
    beside = kept.with_name(f"new-{kept.name}")
    np.savez(beside, **found)  # type: ignore[arg-type]
    os.replace(beside, kept)
    return found


def compared(found: Mapping[str, Mapping[str, Array]], rows: Mapping[str, Sequence[EvalRow]], count: int) -> dict[str, Any]:
    """Compare every verifier with the first one."""
    rng, first = np.random.default_rng(0), next(iter(found))
    gold = {name: np.array([r.faithful for r in part]) for name, part in rows.items()}
    drawn = {name: list(redrawn([r.group for r in part], count, rng)) for name, part in rows.items()}
    again = {variant: np.array([[auc(gold[n][d], s[n][d]) for d in drawn[n]] for n in rows]) for variant, s in found.items()}
    parts = [n for n in found[first] if n.startswith(HELD) and all(n in v and not np.isnan(v[n]) for v in found.values())]
    result: dict[str, Any] = {}
    for variant, values in found.items():
        each = {name: auc(gold[name], values[name]) for name in rows}
        gain = np.nanmean(again[variant] - again[first], axis=0)
        low, high = np.nanpercentile(gain, [2.5, 97.5])
        result[variant] = {
            "held_out": float(np.mean([values[n] for n in parts])), "mean": float(np.mean(list(each.values()))),
            "low": float(low), "high": float(high), "sets": each,
        }  # fmt: skip
    return result


def table(result: Mapping[str, Mapping[str, Any]], rows: Mapping[str, Sequence[EvalRow]], notes: Mapping[str, str]) -> str:
    """Lay out one line a verifier, and their sets below."""
    first = next(iter(result.values()))
    lines = [
        f"Means of ROC-AUC of P(supported), verifier alone, {sum(map(len, rows.values())):,} rows of {len(rows)} test sets, the",
        "same for all. *Gain*: against the first line, with the 95 % interval of a paired bootstrap over sources. *Held out*:",
        "mean over the held-out parts of the training files.", "",
        "| verifier | what differs | held out | mean | gain |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in result.items():
        gain = "" if r is first else f"{r['mean'] - first['mean']:+.3f} [{r['low']:+.3f}, {r['high']:+.3f}]"
        lines.append(f"| {name} | {notes.get(name, '')} | {r['held_out']:.3f} | {r['mean']:.3f} | {gain} |")
    lines += ["", f"| set | {' | '.join(result)} |", "|---|" + "---|" * len(result)]
    for name in rows:
        cells = [f"{r['sets'][name]:.3f}" for r in result.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files, for the held-out parts")
    parser.add_argument("--folder", action="append", required=True, help="NAME=FOLDER of a verifier; the first is the reference")
    parser.add_argument("--note", action="append", default=[], help="NAME=WHAT DIFFERS")
    parser.add_argument("--rows", type=int, default=200, help="rows taken of a set, the same for every verifier")
    parser.add_argument("--draws", type=int, default=400, help="bootstrap draws")
    parser.add_argument("--scores", type=Path, default=Path(".runs/ablation"), help="folder where scores are kept")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ablation.json"))
    args = parser.parse_args()
    rows = {name: sampled(args.data, name, args.rows) for name in SETS}
    held, found = HeldOutRows(args.training, args.data), {}
    for name, folder in (f.split("=", 1) for f in args.folder):
        kept = args.scores / f"{weights_hash(Path(folder))}-{args.rows}.npz"
        found[name] = scored(Path(folder), rows, held, kept)
        print(f"{name:24} scored", flush=True)
    result = compared(found, rows, args.draws)
    write_results(args.out, result, table(result, rows, dict(n.split("=", 1) for n in args.note)))
    for name, r in result.items():
        print(f"{name:24} held out {r['held_out']:.3f}  mean {r['mean']:.3f}  [{r['low']:+.3f}, {r['high']:+.3f}]", flush=True)


if __name__ == "__main__":
    main()
