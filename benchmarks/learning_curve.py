#!/usr/bin/env python
"""Draw the learning curve of the verifier, ROC-AUC of every set over the tokens seen, from what `verifier.py` found of snapshots.

Names of the verifiers are the million tokens that each has seen, such as `52.3`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure
from verifier import SETS

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Told apart by all eyes (Okabe and Ito)."""


def draw(found: dict[float, Any], path: Path) -> None:
    """Draw a line for each set, and a thick one for their mean."""
    rcParams.update({"svg.hashsalt": "knowhalu", "svg.fonttype": "none"})  # the same bytes each time, and text as text
    seen = sorted(found)
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    panel = figure.subplots()
    for i, name in enumerate(SETS):
        values = [found[t]["sets"][name]["auc"] for t in seen]
        style = "-" if i < len(COLOURS) else "--"
        panel.plot(seen, values, style, color=COLOURS[i % len(COLOURS)], marker="o", markersize=3, linewidth=1, label=name)
    panel.plot(seen, [found[t]["mean_auc"] for t in seen], color="black", linewidth=2.5, marker="s", label="mean of the twelve")
    panel.set_xlabel("million tokens seen, padding included")
    panel.set_ylabel("ROC-AUC of the verifier alone")
    panel.grid(color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw the chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--found", type=Path, default=Path("benchmarks/results/learning_curve.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/learning_curve.svg"))
    args = parser.parse_args()
    draw({float(name): result for name, result in json.loads(args.found.read_text(encoding="utf-8")).items()}, args.out)


if __name__ == "__main__":
    main()
