#!/usr/bin/env python
"""What each part of the training contributes: verifiers that differ in one thing, on the same rows, against the first of them.

The difference of mean ROC-AUC over the twelve sets of `verifier.py` has an interval by a paired bootstrap: sources are resampled
within every set, the same for both. "Held out" is the mean over sources of the training files that no training reads;
choices are made by that column, since the twelve sets are test sets. Scores are stored by
the hash of the weights (`--scores`), so a variant is scored once.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, auc, make_parser, ranged, redrawn, table_line, table_lines, write_results
from verifier import SETS, sampled, scores

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.io.fitted_files import weights_hash
from knowhalu.training.holdout import HeldOutRows, score_recipes

HELD = "held out: "
FEWEST = 30
"""Examples that a held-out part needs at least."""


def scored(folder: Path, rows: Mapping[str, Sequence[EvalRow]], held: HeldOutRows, stored: Path) -> dict[str, Array]:
    """Return P(supported) of all rows of the sets, and the ROC-AUC of the held-out parts; read from `stored` if it exists."""
    if stored.exists():
        with np.load(stored) as file:
            return {k: file[k] for k in file.files}
    backend = EncoderBackend(folder)
    values = {name: scores(backend, part) for name, part in rows.items()}
    parts = score_recipes(Verifier.load(folder), PairTokenizer.load(folder), held.of, limit=200, fewest=FEWEST)
    values |= {f"{HELD}{p.name}": np.array(p.auc) for p in parts}
    stored.parent.mkdir(parents=True, exist_ok=True)
    temporary = stored.with_name(f"new-{stored.name}")
    np.savez(temporary, **values)  # type: ignore[arg-type]
    os.replace(temporary, stored)
    return values


def compared(variants: Mapping[str, Mapping[str, Array]], rows: Mapping[str, Sequence[EvalRow]], count: int) -> dict[str, Any]:
    """Compare every verifier with the first one."""
    rng, first = np.random.default_rng(0), next(iter(variants))
    gold = {name: np.array([r.faithful for r in part]) for name, part in rows.items()}
    drawn = {name: list(redrawn([r.group for r in part], count, rng)) for name, part in rows.items()}
    resampled = {name: np.array([[auc(gold[n][d], s[n][d]) for d in drawn[n]] for n in rows]) for name, s in variants.items()}
    parts = [n for n in variants[first] if n.startswith(HELD) and all(n in v and not np.isnan(v[n]) for v in variants.values())]
    result: dict[str, Any] = {}
    for variant, values in variants.items():
        each = {name: auc(gold[name], values[name]) for name in rows}
        gain = np.nanmean(resampled[variant] - resampled[first], axis=0)
        low, high = np.nanpercentile(gain, [2.5, 97.5])
        result[variant] = {
            "held_out": float(np.mean([values[n] for n in parts])), "mean": float(np.mean(list(each.values()))),
            "low": float(low), "high": float(high), "sets": each,
        }  # fmt: skip
    return result


def table(result: Mapping[str, Mapping[str, Any]], rows: Mapping[str, Sequence[EvalRow]], notes: Mapping[str, str]) -> str:
    """Return a table with one line for each verifier, and one of their sets."""
    first = next(iter(result.values()))
    lines = [
        f"Means of ROC-AUC of P(supported), verifier alone, {sum(map(len, rows.values())):,} rows of {len(rows)} test sets, the",
        "same for all. *Gain*: against the first line, with the 95 % interval of a paired bootstrap over sources. *Held out*:",
        "mean over the held-out parts of the training files.", "",
        "| verifier | what differs | held out | mean | gain |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in result.items():
        gain = "" if r is first else ranged(r["mean"] - first["mean"], r["low"], r["high"], "+.3f")
        lines.append(table_line([name, notes.get(name, ""), f"{r['held_out']:.3f}", f"{r['mean']:.3f}", gain]))
    by_set = ((name, *(f"{r['sets'][name]:.3f}" for r in result.values())) for name in rows)
    return "\n".join([*lines, "", *table_lines(["set", *result], by_set)]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "ablation.json", "data", "training")
    parser.add_argument("--folder", action="append", required=True, help="NAME=FOLDER of a verifier; the first is the reference")
    parser.add_argument("--note", action="append", default=[], help="NAME=WHAT DIFFERS")
    parser.add_argument("--rows", type=int, default=200, help="rows taken of a set, the same for every verifier")
    parser.add_argument("--draws", type=int, default=400, help="bootstrap draws")
    parser.add_argument("--scores", type=Path, default=Path(".runs/ablation"), help="folder of the stored scores")
    args = parser.parse_args()
    rows = {name: sampled(args.data, name, args.rows) for name in SETS}
    held, variants = HeldOutRows(args.training, args.data), {}
    for name, folder in (f.split("=", 1) for f in args.folder):
        stored = args.scores / f"{weights_hash(Path(folder))}-{args.rows}.npz"
        variants[name] = scored(Path(folder), rows, held, stored)
        print(f"{name:24} scored", flush=True)
    result = compared(variants, rows, args.draws)
    write_results(args.out, result, table(result, rows, dict(n.split("=", 1) for n in args.note)))
    for name, r in result.items():
        print(f"{name:24} held out {r['held_out']:.3f}  mean {r['mean']:.3f}  [{r['low']:+.3f}, {r['high']:+.3f}]", flush=True)


if __name__ == "__main__":
    main()
