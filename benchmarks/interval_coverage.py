#!/usr/bin/env python
"""Coverage of 95 % intervals: how often they contain the true value, for grouped rows simulated from known distributions.

A row's score is normal, with a part that its group shares; the probability is that of a hallucination given the score, and
some detectors are overconfident. The true value of each metric is that of three million rows.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from common import make_parser, table_lines, write_results
from numpy.typing import NDArray

from knowhalu.evaluation.bootstrap import Estimate, draw_resamples, metrics_with_intervals, percentile_interval, resample_metrics
from knowhalu.evaluation.metrics import Predictions

FIGURES = ("tpr", "tnr", "average", "balanced", "macro_f1", "accuracy", "inconclusive", "auc", "pr_auc", "brier", "coverage_area",
           "span_f1", "wrong_hallucinated")  # fmt: skip
ECE = "ece (none is given)"
"""The interval that ECE would have: noise increases ECE, so the interval misses the true value, and none is reported."""
TRUTH_ROWS = 3_000_000


class World(NamedTuple):
    """A simulation: groups, rows of each, shift between the labels, correlation in a group, and confidence of the detector.

    `bold` multiplies the log-odds: at 1 the probabilities are calibrated, above 1 they are overconfident. Scores nearer to
    the threshold than `open` abstain.
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
    errors, characters = rng.poisson(np.where(gold, 1.2, 0.3)), np.stack([both, marked, length], axis=1)
    abstained = np.abs(score) < world.open
    return Predictions(gold, score > 0, abstained, probability, errors.astype(float), characters.astype(float)), number


def truth(world: World, rng: np.random.Generator) -> dict[str, float]:
    """Return the metrics of so many rows that they hardly vary."""
    rows, _ = drawn_from(world, TRUTH_ROWS // world.size, rng)
    metrics = metrics_with_intervals(rows, np.zeros(len(rows.gold), dtype=np.intp), draw_resamples(1, times=1), (*FIGURES, "ece"))
    return {ECE if name == "ece" else name: float(figure.value or 0.0) for name, figure in metrics.items()}


def coverage(world: World, times: int, seed: int = 0, resamples: int = 1000) -> dict[str, dict[str, float]]:
    """Repeat a simulation; return for every metric the share of intervals below, around and above the true value."""
    rng = np.random.default_rng(seed)
    known, times_drawn = truth(world, rng), draw_resamples(world.groups, times=resamples, seed=seed + 1)
    under, over = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
    for _ in range(times):
        rows, groups = drawn_from(world, world.groups, rng)
        ece = Estimate(None, *percentile_interval(resample_metrics(rows, groups, times_drawn)["ece"]))
        for name, figure in {**metrics_with_intervals(rows, groups, times_drawn, FIGURES), ECE: ece}.items():
            under[name] += figure.high is None or figure.high < known[name]
            over[name] += figure.low is None or figure.low > known[name]
    return {
        name: {"truth": round(known[name], 5), "covered": round(1 - (under[name] + over[name]) / times, 4),
               "under": under[name] / times, "over": over[name] / times}
        for name in known
    }  # fmt: skip


def table(worlds: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Return a table of how often intervals contain the true value: metrics as lines, simulations as columns."""
    rows = ((name, *(f"{100 * world[name]['covered']:.1f}" for world in worlds.values())) for name in (*FIGURES, ECE))
    return "\n".join(table_lines(["", *worlds], rows, names=1))


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "interval_coverage.json")
    parser.add_argument("--times", type=int, default=1000, help="simulations of each world")
    args = parser.parse_args()
    worlds = {}
    for name, world in WORLDS.items():
        worlds[name] = coverage(world, args.times)
        print(name, {k: round(v["covered"], 3) for k, v in worlds[name].items()}, flush=True)
    write_results(args.out, {"times": args.times, "worlds": worlds})
    print(table(worlds))


if __name__ == "__main__":
    main()
