#!/usr/bin/env python
"""Whether 95 % intervals hold the truth 95 % of the time: rows in groups are drawn from a world whose figures are known.

A row's score is normal, with a part that its group shares; the probability is that of a hallucination given the score, and
some detectors are sharper or bolder than that. The truth of each figure is that of three million rows.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals, percentile_interval, resample_metrics
from knowhalu.evaluation.metrics import Predictions

FIGURES = ("tpr", "tnr", "average", "balanced", "macro_f1", "accuracy", "inconclusive", "auc", "pr_auc", "brier", "coverage_area",
           "span_f1", "wrong_hallucinated")  # fmt: skip
ECE = "ece (none is given)"
"""The interval that ECE would have: chance makes it larger, so that it misses the truth; `metrics_with_intervals` gives none."""
TRUTH_ROWS = 3_000_000


class World(NamedTuple):
    """How rows come about: groups, rows of each, shift between the labels, what a group shares, and how bold a detector is.

    `bold` multiplies the log-odds: at 1 the probabilities are calibrated, over it they are too sure. Scores that are nearer to
    the border than `open` abstain.
    """

    groups: int
    size: int
    shift: float = 1.5
    shared: float = 0.7
    bold: float = 1.0
    open: float = 0.15


WORLDS = {
    "50 pairs": World(50, 2), "100 pairs": World(100, 2), "1,000 pairs": World(1000, 2), "100 groups of 8": World(100, 8),
    "100 pairs, too sure": World(100, 2, bold=2.5),
}  # fmt: skip


def drawn_from(world: World, groups: int, rng: np.random.Generator) -> tuple[Predictions, NDArray[np.intp]]:
    """Draw groups of rows, hallucinated and faithful in turn."""
    number = np.repeat(np.arange(groups), world.size)
    gold = np.arange(len(number)) % 2 == 0
    common = rng.normal(size=groups)[number] * world.shared
    score = common + rng.normal(size=len(number)) * np.sqrt(1 - world.shared**2) + np.where(gold, 0.5, -0.5) * world.shift
    probability = 1 / (1 + np.exp(-world.bold * world.shift * score))
    length = rng.integers(1, 20, len(number)) * gold
    marked = rng.binomial(20, np.where(gold, 0.6, 0.1))
    both = np.minimum(length, rng.binomial(marked, 0.7))
    said = Predictions(
        gold,
        score > 0,
        np.abs(score) < world.open,
        probability,
        rng.poisson(np.where(gold, 1.2, 0.3)).astype(float),
        np.stack([both, marked, length], axis=1).astype(float),
    )
    return said, number


def truth(world: World, rng: np.random.Generator) -> dict[str, float]:
    """Return the figures of so many rows that they hardly vary."""
    said, _ = drawn_from(world, TRUTH_ROWS // world.size, rng)
    found = metrics_with_intervals(said, np.zeros(len(said.gold), dtype=np.intp), draw_resamples(1, times=1), (*FIGURES, "ece"))
    return {ECE if name == "ece" else name: float(figure.value or 0.0) for name, figure in found.items()}


def coverage(world: World, times: int, seed: int = 0, resamples: int = 1000) -> dict[str, dict[str, float]]:
    """Draw a world again and again; return of every figure the share of intervals under, around and over the truth."""
    rng = np.random.default_rng(seed)
    known, times_drawn = truth(world, rng), draw_resamples(world.groups, times=resamples, seed=seed + 1)
    under, over = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
    for _ in range(times):
        said, groups = drawn_from(world, world.groups, rng)
        ece = Estimate(None, *percentile_interval(resample_metrics(said, groups, times_drawn)["ece"]))
        for name, figure in {**metrics_with_intervals(said, groups, times_drawn, FIGURES), ECE: ece}.items():
            under[name] += figure.high is None or figure.high < known[name]
            over[name] += figure.low is None or figure.low > known[name]
    return {
        name: {"truth": round(known[name], 5), "covered": round(1 - (under[name] + over[name]) / times, 4),
               "under": under[name] / times, "over": over[name] / times}
        for name in known
    }  # fmt: skip


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Lay out how often intervals hold the truth, figures against worlds."""
    head = f"| | {' | '.join(found)} |\n|---|{'---:|' * len(found)}"
    shares = {name: [f"{100 * world[name]['covered']:.1f}" for world in found.values()] for name in (*FIGURES, ECE)}
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in shares.items()]
    return "\n".join([head, *lines])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000, help="simulations of each world")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/interval_coverage.json"))
    args = parser.parse_args()
    found = {}
    for name, world in WORLDS.items():
        found[name] = coverage(world, args.times)
        print(name, {k: round(v["covered"], 3) for k, v in found[name].items()}, flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"times": args.times, "worlds": found}, indent=1) + "\n", encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
