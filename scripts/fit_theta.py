#!/usr/bin/env python
"""Fit the thetas of Factored Verification for a verifier's folder and write its factored.json."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from knowhalu.api import Checker
from knowhalu.methods.common.combine import RULES
from knowhalu.results import Verdict
from knowhalu.settings import EncoderOptions, Settings
from knowhalu.training.factored import Measured, Text, fitted, texts
from knowhalu.training.holdout import Unseen
from knowhalu.training.rows import command
from knowhalu.training.weights import drafted

SPLIT = "held-out sources of the training files; no evaluation file was read"


def measured(folder: Path, rows: list[Text], threads: int | None) -> Iterator[Measured]:
    """Judge the claims of every text; those without a claim are left out."""
    checker = Checker(Settings(method="factored", encoder=EncoderOptions(folder=folder, threads=threads)))
    for row, outcome in zip(rows, checker.stream(r.sample for r in rows), strict=True):
        if not isinstance(outcome, Verdict):
            raise SystemExit(f"{row.origin}: {outcome}")
        found = tuple(f.supported for s in outcome.segments for f in s.findings)
        if found:
            yield Measured(found, row.faithful, row.origin)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder; factored.json is written into it")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: rows that overlap with them are left out")
    parser.add_argument("--threads", type=int, help="CPU threads; all cores where it is left out")
    args = parser.parse_args()

    path, known = args.folder / "factored.json", list(texts(Unseen(args.data, args.leave_out)))
    # the method needs thetas to run at all; what is measured here does not depend on them
    start = {"thetas": dict.fromkeys(RULES, 0.5), "typical": 1.0, "reference": 1.0}
    with drafted(args.folder, path.name, start) as folder:
        rows = list(measured(folder, known, args.threads))
        for origin in dict.fromkeys(r.origin for r in rows):
            some = fitted([r for r in rows if r.origin == origin])
            print(f"{origin:26} rows {some['rows']:4}  claims {some['reference']}  alone: {some['average_accuracy']}")
        found = fitted(rows) | {"fitted_on": dict(Counter(r.origin for r in rows)), "split": SPLIT}
        (folder / path.name).write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {path}: {found}")
    return 0


if __name__ == "__main__":
    command(main)
