#!/usr/bin/env python
"""Mine examples with a verifier for its next training: hard ones, or long premises with probabilities of their short form."""

import argparse
import gzip
import json
from functools import partial
from itertools import islice
from pathlib import Path

from rich.progress import track

from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.training.data_files import Leakage, run_script
from knowhalu.training.holdout import mine_hard_examples, mine_soft_targets, predict_probabilities
from knowhalu.training.recipes import RECIPES, SYNTHETIC_RECIPES, draw_rows


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: training sources that overlap are left out")
    parser.add_argument("--kind", choices=("hard", "views"), required=True)
    parser.add_argument("--count", type=int, default=6000, help="examples to write")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, gzipped; train with --mined FILE")
    args = parser.parse_args()
    leakage = Leakage.of_folder(args.leave_out) if args.leave_out else None
    score = partial(predict_probabilities, Verifier.load(args.folder), PairTokenizer.load(args.folder))
    recipes = tuple(r for r in RECIPES if r.name in SYNTHETIC_RECIPES) if args.kind == "hard" else RECIPES
    mine = mine_hard_examples if args.kind == "hard" else mine_soft_targets
    mined = mine(draw_rows(args.data, args.seed, recipes, leakage), score, seed=args.seed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    draft = args.out.with_suffix(".tmp")
    with gzip.open(draft, "wt", encoding="utf-8") as file:
        for row in track(islice(mined, args.count), f"{args.kind} examples", args.count):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    draft.replace(args.out)
    print(f"wrote {args.count} examples to {args.out}")


if __name__ == "__main__":
    run_script(main)
