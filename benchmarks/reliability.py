#!/usr/bin/env python
"""Whether a probability means what it says: the shipped verifier on held-out sources, as fitted, and on the twelve test sets.

It reads the outcomes that `knowhalu eval all` left in a folder. Weights were fitted as if both labels were as frequent, so of
every set as many faithful as hallucinated rows are drawn; where a set has other shares, probabilities are off by these.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, interval, make_parser, rows_of, write_results
from numpy.typing import NDArray
from quality import judged
from verifier import SETS

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.evaluation.curves import ReliabilityBins, reliability_bins
from knowhalu.report.charts import method_styles, reliability_chart

MOST = 300
"""Rows of each label that are drawn of a set at most, so that large sets do not stand for all."""


def even(wrong: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """Draw as many rows of the one label as of the other."""
    draw = np.random.default_rng(0)
    sides = [draw.permutation(np.flatnonzero(wrong == side)) for side in (False, True)]
    return np.concatenate([side[: min(most, *map(len, sides))] for side in sides])


def fitted(folder: Path) -> dict[str, ReliabilityBins]:
    """Return the bins that stand in a judgment: of rows of held-out sources, by weights of the other folds."""
    data = json.loads((folder / "judgment.json").read_text(encoding="utf-8"))["reliability"]
    found = {}
    for task in ("claim", "answer"):
        known = data[f"{task}.unstructured"]
        rows, probability, share = np.array(known["bins"], float).T
        found[f"held-out {task}s"] = ReliabilityBins(probability, probability, rows, probability, share, known["ece"])
    return found


def measured(wrong: NDArray[np.bool_], said: Array, groups: list[str]) -> dict[str, Any]:
    """Return the ECE with its interval, and what is said and true on average of all rows that are called hallucinated or not."""
    low, high = interval(lambda i: reliability_bins(wrong[i], said[i]).ece or 0.0, groups)
    flagged = said >= 0.5
    found = {"rows": len(said), "ece": reliability_bins(wrong, said).ece, "low": low, "high": high}
    for name, some in (("flagged", flagged), ("passed", ~flagged)):
        found[name] = [int(some.sum()), float(said[some].mean()), float(wrong[some].mean())] if some.any() else None
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Lay out one line a set."""
    lines = [
        "P(hallucinated) of the whole judgment, as many hallucinated as faithful rows of every set. *ECE*: expected calibration",
        "error, ten bins of equal width; it cannot be below some .03 on few rows. In brackets: 95 % bootstrap interval, rows of",
        "one source or claim drawn together. *Flagged*: rows from .5 on, and what they are said to be and are on average.", "",
        "| set | rows | ECE | flagged | said | true | others | said | true |", "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in found.items():
        sides = [
            f"{n} | {p:.2f} | {t:.2f}" if r[s] else "0 | - | -" for s in ("flagged", "passed") for n, p, t in [r[s] or (0, 0, 0)]
        ]
        lines.append(f"| {name} | {r['rows']} | {r['ece']:.3f} [{r['low']:.3f}, {r['high']:.3f}] | {' | '.join(sides)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "reliability.json", "data", "runs")
    parser.add_argument("--plot", type=Path, default=Path("docs/reliability.svg"))
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    pooled: list[tuple[NDArray[np.bool_], Array, list[str]]] = []
    for name in SETS:
        rows = rows_of(args.data, name)
        verdicts = judged(args.runs, name, rows)
        wrong, said = np.array([not r.faithful for r in rows]), np.array([v.probability for v in verdicts])
        drawn = even(wrong, MOST)
        pooled.append((wrong[drawn], said[drawn], [f"{name}:{rows[i].group}" for i in drawn]))
        found[name] = measured(*pooled[-1])
    wrong, said = (np.concatenate([p[i] for p in pooled]) for i in (0, 1))
    found["all twelve"] = measured(wrong.astype(bool), said, [g for _, _, groups in pooled for g in groups])
    write_results(args.out, found, table(found))
    lines = fitted(PACKAGED_VERIFIER) | {"twelve test sets": reliability_bins(wrong.astype(bool), said)}
    picture = reliability_chart("reliability", lines, method_styles(lines, ()))
    alone = picture.replace(
        "<svg ", '<svg xmlns="http://www.w3.org/2000/svg" style="background: white" font-family="sans-serif" ', 1
    )
    args.plot.write_text(alone, encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
