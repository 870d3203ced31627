#!/usr/bin/env python
"""Draw what `benchmarks/methods.py` found: ROC-AUC with its interval, methods against sets, trivial rules apart."""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure

COLOURS = {"method": "#0072B2", "trivial": "#D55E00"}
MARKS = {"method": "o", "trivial": "s"}


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw one panel for each set; the vertical line is chance."""
    rcParams.update({"svg.hashsalt": "knowhalu", "svg.fonttype": "none"})  # the same bytes each time, and text as text
    names = [r["name"] for r in next(iter(found.values()))["results"]][::-1]
    figure = Figure(figsize=(11, 6.2), layout="constrained")
    panels = figure.subplots(2, 3, sharey=True).flat
    for panel, (title, comparison) in zip(panels, found.items(), strict=True):
        for result in comparison["results"]:
            kind = "trivial" if result["name"].startswith(("trivial", "response-only")) else "method"
            auc, y = result["figures"]["auc"], names.index(result["name"])
            panel.plot([auc["low"], auc["high"]], [y, y], color=COLOURS[kind], linewidth=2)
            panel.plot(auc["value"], y, MARKS[kind], color=COLOURS[kind], markersize=5)
        panel.axvline(0.5, color="#777777", linewidth=0.8, linestyle=":")
        panel.set_title(f"{title} ({comparison['rows']:,})", fontsize=10)
        panel.set_yticks(range(len(names)), names, fontsize=8)
        panel.set_xlim(0.4, 1.0)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    figure.supxlabel("ROC-AUC, 95 % bootstrap interval; squares: rules on length, overlap and novelty alone", fontsize=9)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw the chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--found", type=Path, default=Path("benchmarks/results/methods.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/methods.svg"))
    args = parser.parse_args()
    draw(json.loads(args.found.read_text(encoding="utf-8"))["methods"], args.out)


if __name__ == "__main__":
    main()
