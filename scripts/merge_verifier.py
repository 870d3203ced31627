#!/usr/bin/env python
"""Merge a base encoder and the stored change of a training into a verifier's folder."""

import argparse
import shutil
from pathlib import Path

from knowhalu.encoder.change import merge
from knowhalu.encoder.verifier import PairTokenizer
from knowhalu.training.data_files import run_script


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="folder of the encoder that the training started from")
    parser.add_argument("--change", type=Path, required=True, help="change.safetensors of the training")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    merge(args.base, args.change).save(args.out, PairTokenizer.load(args.base).tokenizer)
    shutil.copyfile(args.base / "tokenizer.json", args.out / "tokenizer.json")  # the bytes that `knowhalu models add` writes
    print(f"wrote {args.out}")


if __name__ == "__main__":
    run_script(main)
