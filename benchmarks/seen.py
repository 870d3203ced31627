#!/usr/bin/env python
"""A verifier on sources that it was trained on beside those that were held out, part by part of the training.

Where it knows the seen ones by heart and not the others, more data would help; where it does not learn even the seen ones, the
model is too small for them. Made examples (edits, questions on details) are made anew from the sources, so none was seen so.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from tables import write_results

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.training.holdout import HeldOutRows, RecipeRows, RecipeScore, score_recipes
from knowhalu.training.recipes import read_recipe_rows


def compared(folder: Path, data: Path, limit: int) -> dict[str, dict[str, Any]]:
    """Return the ROC-AUC on seen and on held-out sources of every part that has both classes."""
    model, vocabulary = Verifier.load(folder), PairTokenizer.load(folder)
    rows: tuple[RecipeRows, RecipeRows] = (partial(read_recipe_rows, folder=data, held=False), HeldOutRows(data).of)
    seen, held = ({p.name: p for p in score_recipes(model, vocabulary, some, limit=limit)} for some in rows)
    both = {n: (seen[n], p) for n, p in held.items() if n in seen and p.auc == p.auc and seen[n].auc == seen[n].auc}
    return {name: {"seen": shown(a), "held_out": shown(b)} for name, (a, b) in both.items()}


def shown(part: RecipeScore) -> dict[str, float]:
    """Return what is kept of a part."""
    return {"examples": part.examples, "auc": part.auc, "accuracy": part.accuracy}


def markdown(result: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay out the table."""
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
    parser.add_argument("--training", type=Path, required=True, help="folder with the training files")
    parser.add_argument("--folder", type=Path, default=PACKAGED_VERIFIER, help="verifier; default: the shipped one")
    parser.add_argument("--limit", type=int, default=400, help="examples of a part")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/seen.json"))
    args = parser.parse_args()
    result = compared(args.folder, args.training, args.limit)
    write_results(args.out, result, markdown(result))
    print(markdown(result), end="")


if __name__ == "__main__":
    main()
