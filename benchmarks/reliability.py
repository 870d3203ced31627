#!/usr/bin/env python
"""Calibration of the probabilities: the shipped verifier on held-out sources, as fitted, and on the twelve test sets.

It reads the outcomes that `knowhalu eval all` left in a folder. The weights were fitted with equal weights for both labels, so as
many faithful as hallucinated rows of every set are drawn; with other shares of the labels, probabilities are biased.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from common import DEVELOPMENT, Array, interval, make_parser, ranged, rows_of, table_line, write_results
from numpy.typing import NDArray
from quality import is_checked, judged
from verifier import SETS

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.evaluation.curves import ReliabilityBins, reliability_bins
from knowhalu.report.charts import method_styles, reliability_chart

MOST = 300
"""Rows of each label that are drawn of a set at most, so that large sets do not dominate."""
SURE = 0.1
"""P(hallucinated) below which a text counts as surely faithful."""


def even(wrong: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """Draw equally many rows of both labels."""
    draw = np.random.default_rng(0)
    sides = [draw.permutation(np.flatnonzero(wrong == side)) for side in (False, True)]
    return np.concatenate([side[: min(most, *map(len, sides))] for side in sides])


def fitted(folder: Path) -> dict[str, ReliabilityBins]:
    """Return the bins stored in a judgment: of rows of held-out sources, by weights of the other folds."""
    data = json.loads((folder / "judgment.json").read_text(encoding="utf-8"))["reliability"]
    bins = {}
    for task in ("claim", "answer"):
        known = data[f"{task}.unstructured"]
        rows, probability, share = np.array(known["bins"], float).T
        bins[f"held-out {task}s"] = ReliabilityBins(probability, probability, rows, probability, share, known["ece"])
    return bins


def measured(wrong: NDArray[np.bool_], probability: Array, groups: list[str]) -> dict[str, Any]:
    """Return the ECE with its interval, and for flagged and passed rows their number, mean probability and share of errors."""
    low, high = interval(lambda i: reliability_bins(wrong[i], probability[i]).ece or 0.0, groups)
    flagged = probability >= 0.5
    result = {"rows": len(wrong), "ece": reliability_bins(wrong, probability).ece, "low": low, "high": high}
    for name, some in (("flagged", flagged), ("passed", ~flagged)):
        result[name] = [int(some.sum()), float(probability[some].mean()), float(wrong[some].mean())] if some.any() else None
    sure = probability < SURE
    result["sure"] = [int(sure.sum()), float(wrong[sure].mean()) if sure.any() else None]
    return result


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return a table with one line for each set."""
    lines = [
        "P(hallucinated) of the whole judgment, as many hallucinated as faithful rows of every set. *ECE*: expected calibration",
        "error, ten bins of equal width; it cannot be below some .03 on few rows. In brackets: 95 % bootstrap interval, rows of",
        "one source or claim drawn together. *Flagged*: rows from .5 on, and what they are said to be and are on average.",
        f"*Below {SURE}*: rows that are said to be surely faithful, and the share of them that is hallucinated.", "",
        f"| set | rows | ECE | flagged | said | true | others | said | true | below {SURE} | true |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in results.items():
        cells = [name, str(r["rows"]), ranged(r["ece"], r["low"], r["high"])]
        for side in ("flagged", "passed"):
            cells += [str(r[side][0]), f"{r[side][1]:.2f}", f"{r[side][2]:.2f}"] if r[side] else ["0", "-", "-"]
        rows, share = r["sure"]
        cells += [str(rows), "-" if share is None else f"{share:.2f}"]
        lines.append(table_line(cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "reliability.json", "data", "runs")
    parser.add_argument("--plot", type=Path, default=Path("docs/reliability.svg"))
    parser.add_argument(
        "--folder", type=Path, default=PACKAGED_VERIFIER, help="folder of the verifier's judgment.json, for the chart"
    )
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    pooled: list[tuple[NDArray[np.bool_], Array, list[str]]] = []
    for name in (*SETS, *(n for n in DEVELOPMENT if is_checked(args.runs, rows_of(args.data, n)))):
        rows, verdicts = judged(args.runs, name, rows_of(args.data, name))
        wrong, probability = np.array([not r.faithful for r in rows]), np.array([v.probability for v in verdicts])
        drawn = even(wrong, MOST)
        part = (wrong[drawn], probability[drawn], [f"{name}:{rows[i].group}" for i in drawn])
        results[name] = measured(*part)
        if name in SETS:
            pooled.append(part)
    wrong, probability = (np.concatenate([p[i] for p in pooled]) for i in (0, 1))
    results["all twelve"] = measured(wrong.astype(bool), probability, [g for _, _, groups in pooled for g in groups])
    write_results(args.out, results, table(results))
    lines = fitted(args.folder) | {"twelve test sets": reliability_bins(wrong.astype(bool), probability)}
    chart = reliability_chart("reliability", lines, method_styles(lines, ()))
    root = '<svg xmlns="http://www.w3.org/2000/svg" style="background: white" font-family="sans-serif" '
    args.plot.write_text(chart.replace("<svg ", root, 1), encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
