#!/usr/bin/env python
"""Write the model card of a verifier from its training checkpoint, its judgment weights and measured results."""

import argparse
import json
from pathlib import Path

from safetensors import safe_open

from knowhalu.training.card import write_card
from knowhalu.training.data_files import run_script
from knowhalu.training.loop import TrainProgress, TrainSettings


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder")
    parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint.safetensors of the run")
    parser.add_argument("--results", type=Path, help="output of benchmarks/quality.py for this verifier")
    parser.add_argument("--heldout", type=Path, help="heldout.md of the run")
    parser.add_argument("--failures", type=Path, help="a Markdown section on its errors")
    parser.add_argument("--note", default="", help="a note on the run")
    args = parser.parse_args()
    with safe_open(args.checkpoint, "pt") as file:
        about = file.metadata()
    results = args.results.read_text() if args.results else "(not measured yet: run benchmarks/quality.py)"
    if args.heldout is not None:
        results = f"{args.heldout.read_text()}\n{results}"
    settings, progress = TrainSettings(**json.loads(about["settings"])), TrainProgress(**json.loads(about["progress"]))
    failures = f"{args.failures.read_text().strip()}\n" if args.failures is not None else ""
    write_card(args.folder, settings, progress, results, note=args.note, failures=failures)
    print(f"wrote {args.folder / 'README.md'}")


if __name__ == "__main__":
    run_script(main)
