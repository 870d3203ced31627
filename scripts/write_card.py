#!/usr/bin/env python
"""Write the model card of a verifier from its training checkpoint, its judgment weights and measured results."""

import argparse
import json
from pathlib import Path

from safetensors import safe_open

from knowhalu.training.card import results_table, write_card
from knowhalu.training.loop import Progress, TrainSettings

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("folder", type=Path, help="verifier folder")
parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint.safetensors of the run")
parser.add_argument("--quality", type=Path, default=Path("benchmarks/results/quality.json"), help="written by benchmarks/quality.py")
args = parser.parse_args()
with safe_open(args.checkpoint, "pt") as file:
    about = file.metadata()
results = results_table(json.loads(args.quality.read_text())) if args.quality.exists() else "(not measured yet: run benchmarks/quality.py)"
write_card(args.folder, TrainSettings(**json.loads(about["settings"])), Progress(**json.loads(about["progress"])), results)
print(f"wrote {args.folder / 'README.md'}")
