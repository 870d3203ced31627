#!/usr/bin/env python
"""What length, word overlap and negations alone tell of the labels that are trained on, part by part and in all draws."""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
from tables import write_results

from knowhalu.training.examples import SUPPORTED, TrainingExample
from knowhalu.training.holdout import draw_examples
from knowhalu.training.leakage import CUES, cue_aucs
from knowhalu.training.recipes import RECIPES, read_recipe_rows

READ = 6000
"""Rows of a part that are read, of which the examples are drawn."""


def table(found: dict[str, dict[str, float]]) -> str:
    """Lay out one line a part."""
    lines = [
        "ROC-AUC of supported against the rest by one number alone: 0.5 tells nothing, less speaks against the claim.",
        "*Overlap*: the share of the claim's content words that its source has. *All*: every part by its share of the",
        "draws; the parts without a source, of which only question and answer are shown, are left out.", "",
        f"| part | examples | supported | {' | '.join(CUES)} |", "|---|---|---|" + "---|" * len(CUES),
    ]  # fmt: skip
    for name, r in found.items():
        lines.append(f"| {name} | {r['examples']:.0f} | {r['supported']:.0%} | {' | '.join(f'{r[cue]:.2f}' for cue in CUES)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files")
    parser.add_argument("--examples", type=int, default=1500, help="examples drawn of a part at most")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cues.json"))
    args = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    every: list[TrainingExample] = []
    weights: list[float] = []
    for recipe in RECIPES:
        drawn = draw_examples(recipe, lambda r: islice(read_recipe_rows(r, args.training, held=False), READ))
        examples = [e for e in islice(drawn, args.examples) if e.premise]
        cues = cue_aucs(examples)
        if len(examples) < args.examples / 10 or any(np.isnan(v) for v in cues.values()):
            continue
        every += examples
        weights += [recipe.share / len(examples)] * len(examples)
        found[recipe.name] = {"examples": len(examples), "supported": _supported(examples), **cues}
    share = float(np.average([e.target == SUPPORTED for e in every], weights=weights))
    found["all"] = {"examples": len(every), "supported": share, **cue_aucs(every, weights)}
    write_results(args.out, found, table(found))
    print(table(found))


def _supported(examples: list[TrainingExample]) -> float:
    return float(np.mean([e.target == SUPPORTED for e in examples]))


if __name__ == "__main__":
    main()
