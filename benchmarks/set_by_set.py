#!/usr/bin/env python
"""The whole judgment of two verifiers on the rows that both checked, such as `small` and `base`: quality, and the paired gain.

Both runs are folders that `knowhalu eval all` left, of all rows or of a sample (`--limit`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import DEVELOPMENT, Array, EvalRow, auc, balanced, make_parser, ranged, rows_of, table_line, write_results
from quality import is_checked, judged
from verifier import SETS, gains


def checked_by_both(
    data: Path, runs: Sequence[Path], names: Sequence[str]
) -> tuple[dict[str, list[EvalRow]], list[dict[str, Array]]]:
    """Return the rows of every set that both runs have, and 1 - P(hallucinated) of each by either run."""
    tested, scores = {}, [dict[str, Array]() for _ in runs]
    for name in names:
        rows = rows_of(data, name)
        for run in runs:
            rows, _ = judged(run, name, rows)
        tested[name] = rows
        for run, found in zip(runs, scores, strict=True):
            found[name] = np.array([1 - v.probability for v in judged(run, name, rows)[1]])
    return tested, scores


def compared(tested: Mapping[str, list[EvalRow]], before: Mapping[str, Array], now: Mapping[str, Array]) -> dict[str, Any]:
    """Return ROC-AUC and balanced accuracy of both on every set, and the paired gain of the second in ROC-AUC."""
    gain, results = gains(tested, before, now), {}
    for name, rows in tested.items():
        gold = np.array([r.faithful for r in rows])
        results[name] = {
            "rows": len(rows), "before": auc(gold, before[name]), "now": auc(gold, now[name]), "gain": gain[name],
            "balanced_before": balanced(gold, before[name] >= 0.5), "balanced": balanced(gold, now[name] >= 0.5),
        }  # fmt: skip
    mean = {key: float(np.mean([r[key] for r in results.values()])) for key in ("before", "now", "balanced_before", "balanced")}
    return {"sets": results, "mean": {**mean, "rows": sum(map(len, tested.values())), "gain": gain["mean"]}}


def table(results: Mapping[str, Any], others: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return a table with one line for each set, the means of the twelve, and the development sets."""
    one, other = names
    lines = [
        f"The whole judgment on the same rows. *Gain*: of {other} over {one} in ROC-AUC, with its 95 % interval (paired",
        "bootstrap, rows of one source or claim drawn together).", "",
        f"| set | rows | {one} | {other} | gain | balanced accuracy: {one} | {other} |", "|---|---:|---:|---:|---|---:|---:|",
    ]  # fmt: skip
    every = {**results["sets"], f"**mean of {len(results['sets'])}**": results["mean"], **others["sets"]}
    for name, r in every.items():
        figures = [f"{r[key]:.3f}" for key in ("before", "now")] + [ranged(*r["gain"], spec="+.3f")]
        lines.append(table_line([name, str(r["rows"]), *figures, f"{r['balanced_before']:.3f}", f"{r['balanced']:.3f}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "set_by_set.json", "data", "runs")
    parser.add_argument("--before", type=Path, required=True, help="run of the first verifier")
    parser.add_argument("--names", nargs=2, default=["small", "base"], help="names of both, the first one first")
    args = parser.parse_args()
    parts = []
    for names in (SETS, DEVELOPMENT):
        there = [n for n in names if all(is_checked(run, rows_of(args.data, n)) for run in (args.before, args.runs))]
        tested, (before, now) = checked_by_both(args.data, (args.before, args.runs), there)
        parts.append(compared(tested, before, now) if there else {"sets": {}})
    twelve, others = parts
    write_results(args.out, {"twelve": twelve, "development": others}, table(twelve, others, args.names))
    print(table(twelve, others, args.names))


if __name__ == "__main__":
    main()
