#!/usr/bin/env python
"""Average the weights of verifiers trained from the same start, such as runs with several seeds."""

import argparse
from pathlib import Path

from knowhalu.encoder.verifier import PairTokenizer
from knowhalu.training.checkpoint import average_weights
from knowhalu.training.data_files import run_script


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="verifier folders")
    parser.add_argument(
        "--share", type=float, action="append", default=[], help="weight of each folder, in order (default: equal)"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    average_weights(args.folders, args.share).save(args.out, PairTokenizer.load(args.folders[0]).tokenizer)
    print(f"wrote {args.out}; next: scripts/fit_judgment.py {args.out}")


if __name__ == "__main__":
    run_script(main)
