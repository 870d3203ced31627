#!/usr/bin/env python
"""Average the weights of verifiers that were trained on from the same start, such as runs of several seeds."""

import argparse
from pathlib import Path

from knowhalu.encoder.verifier import Vocabulary
from knowhalu.training.rows import command
from knowhalu.training.weights import averaged


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="verifier folders")
    parser.add_argument(
        "--share", type=float, action="append", default=[], help="weight of each folder, in turn (default: alike)"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    averaged(args.folders, args.share).save(args.out, Vocabulary.load(args.folders[0]).tokenizer)
    print(f"wrote {args.out}; next: scripts/fit_judgment.py {args.out}")


if __name__ == "__main__":
    command(main)
