#!/usr/bin/env python
"""Artefacts of the training data: label cues, and the scores of a verifier on sources that it has and has not seen."""

import argparse
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from common import table_line, write_results

from knowhalu.encoder.backend import PACKAGED_VERIFIER
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.training.examples import SUPPORTED, TrainingExample
from knowhalu.training.holdout import CUES, HeldOutRows, RecipeRows, RecipeScore, cue_aucs, draw_examples, score_recipes
from knowhalu.training.recipes import RECIPES, read_recipe_rows

READ = 6000
"""Rows of a part that are read, of which the examples are drawn."""


def cue_table(results: dict[str, dict[str, float]]) -> str:
    """Return a table with one line for each part."""
    lines = [
        "ROC-AUC of supported against the rest by one number alone: 0.5 tells nothing, less speaks against the claim.",
        "*Overlap*: the share of the claim's content words that its source has. *All*: every part by its share of the",
        "draws; the parts without a source, of which only question and answer are shown, are left out.", "",
        f"| part | examples | supported | {' | '.join(CUES)} |", "|---|---|---|" + "---|" * len(CUES),
    ]  # fmt: skip
    for name, r in results.items():
        lines.append(table_line([name, f"{r['examples']:.0f}", f"{r['supported']:.0%}", *(f"{r[cue]:.2f}" for cue in CUES)]))
    return "\n".join(lines) + "\n"


def measure_cues(training: Path, limit: int) -> dict[str, dict[str, float]]:
    """Measure the cues of every recipe with a source, and of all draws together."""
    results: dict[str, dict[str, float]] = {}
    every: list[TrainingExample] = []
    weights: list[float] = []
    for recipe in RECIPES:
        drawn = draw_examples(recipe, lambda r: islice(read_recipe_rows(r, training, held=False), READ))
        examples = [e for e in islice(drawn, limit) if e.premise]
        cues = cue_aucs(examples)
        if len(examples) < limit / 10 or any(np.isnan(v) for v in cues.values()):
            continue
        every += examples
        weights += [recipe.share / len(examples)] * len(examples)
        supported = float(np.mean([e.target == SUPPORTED for e in examples]))
        results[recipe.name] = {"examples": len(examples), "supported": supported, **cues}
    supported = float(np.average([e.target == SUPPORTED for e in every], weights=weights))
    results["all"] = {"examples": len(every), "supported": supported, **cue_aucs(every, weights)}
    return results


def compare_sources(folder: Path, data: Path, limit: int) -> dict[str, dict[str, Any]]:
    """Return the ROC-AUC on seen and on held-out sources of every part that has both classes."""
    model, vocabulary = Verifier.load(folder), PairTokenizer.load(folder)
    rows: tuple[RecipeRows, RecipeRows] = (partial(read_recipe_rows, folder=data, held=False), HeldOutRows(data).of)
    seen, held = ({p.name: p for p in score_recipes(model, vocabulary, some, limit=limit)} for some in rows)
    both = {n: (seen[n], p) for n, p in held.items() if n in seen and p.auc == p.auc and seen[n].auc == seen[n].auc}
    return {name: {"seen": shown(a), "held_out": shown(b)} for name, (a, b) in both.items()}


def shown(part: RecipeScore) -> dict[str, float]:
    """Return the reported numbers of a part."""
    return {"examples": part.examples, "auc": part.auc, "accuracy": part.accuracy}


def source_table(result: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table with its explanation."""
    lines = [
        "ROC-AUC of P(supported) and accuracy over the three classes, verifier alone, on examples of sources that were trained",
        "on (*seen*) and of those that were held out.", "",
        "| part | seen: examples | ROC-AUC | accuracy | held out: examples | ROC-AUC | accuracy | more when seen |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in result.items():
        cells = " | ".join(f"{r[k]['examples']} | {r[k]['auc']:.3f} | {r[k]['accuracy']:.3f}" for k in ("seen", "held_out"))
        lines.append(f"| {name} | {cells} | {r['seen']['auc'] - r['held_out']['auc']:+.3f} |")
    means = {k: fmean(r[k]["auc"] for r in result.values()) for k in ("seen", "held_out")}
    lines.append(
        f"| **mean** | | {means['seen']:.3f} | | | {means['held_out']:.3f} | | {means['seen'] - means['held_out']:+.3f} |"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cues", "seen"), help="label cues, or seen and held-out sources")
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files")
    parser.add_argument("--folder", type=Path, default=PACKAGED_VERIFIER, help="verifier; default: the packaged one")
    parser.add_argument("--limit", type=int, help="examples of a recipe; default: 1,500 for cues, else 400")
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/cues.json or seen.json")
    args = parser.parse_args()
    if args.what == "cues":
        result = measure_cues(args.training, args.limit or 1500)
        text = cue_table(result)
    else:
        result = compare_sources(args.folder, args.training, args.limit or 400)
        text = source_table(result)
    write_results(args.out or Path(f"benchmarks/results/{args.what}.json"), result, text)
    print(text, end="")


if __name__ == "__main__":
    main()
