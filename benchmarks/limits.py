#!/usr/bin/env python
"""Draw what more layers, more sources and more tokens bring, a panel each, from what `ablation.py` found of such verifiers.

A panel is `TITLE=X:NAME,X:NAME,...`: its points are verifiers by their names there, at a number each. All panels have one scale
of ROC-AUC, and a step to the right is always as many times more, so that steep is what limits.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure

LINES = (("mean", "mean of the twelve sets", "#000000", "s"), ("held_out", "held-out training sources", "#0072B2", "o"))
Panel = tuple[str, list[tuple[float, str]]]


def panel(text: str) -> Panel:
    """Read TITLE=X:NAME,X:NAME."""
    title, _, points = text.partition("=")
    return title, [(float(x), name) for x, name in (p.split(":", 1) for p in points.split(","))]


def draw(found: dict[str, Any], panels: list[Panel], path: Path) -> None:
    """Draw the panels beside each other."""
    rcParams.update({"svg.hashsalt": "knowhalu", "svg.fonttype": "none"})  # the same bytes each time, and text as text
    figure = Figure(figsize=(3.2 * len(panels) + 0.6, 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, points) in zip(axes, panels, strict=True):
        xs = [x for x, _ in points]
        for key, label, colour, marker in LINES:
            values = [found[name][key] for _, name in points]
            axis.plot(xs, values, color=colour, marker=marker, linewidth=1.8, label=label if axis is axes[0] else None)
            for x, value in zip(xs, values, strict=True):
                axis.annotate(
                    f"{value:.3f}", (x, value), (0, 6), textcoords="offset points", ha="center", fontsize=8, color=colour
                )
        axis.set_xscale("log", base=2)
        axis.set_xticks(xs, [f"{x:g}" for x in xs])
        axis.set_xlim(min(xs) / 1.5, max(xs) * 1.5)
        axis.margins(y=0.12)
        axis.set_xlabel(title)
        axis.grid(color="#dddddd", linewidth=0.6)
    axes[0].set_ylabel("ROC-AUC of the verifier alone")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw the chart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--found", type=Path, default=Path("benchmarks/results/limits.json"))
    parser.add_argument("--panel", type=panel, action="append", required=True, metavar="TITLE=X:NAME,...")
    parser.add_argument("--out", type=Path, default=Path("docs/limits.svg"))
    args = parser.parse_args()
    draw(json.loads(args.found.read_text(encoding="utf-8")), args.panel, args.out)


if __name__ == "__main__":
    main()
