#!/usr/bin/env python
"""Fit the thetas of Factored Verification for a verifier and write factored.json into its folder."""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from knowhalu.api import Checker
from knowhalu.encoder.options import EncoderOptions
from knowhalu.methods.common.combine import COMBINATION_RULES
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.text.probabilities import require_measured
from knowhalu.training.data_files import run_script
from knowhalu.training.fit_rows import LabelledText, draw_texts
from knowhalu.training.fitting import ScoredText, fit_thetas, replace_fitted_file
from knowhalu.training.holdout import HeldOutRows

SPLIT = "held-out sources of the training files; no evaluation file was read"


def measured(folder: Path, rows: list[LabelledText], threads: int | None) -> Iterator[ScoredText]:
    """Yield the scores of the claims of every text; texts without a claim are left out."""
    checker = Checker(Settings(method="factored", encoder=EncoderOptions(verifier=str(folder), threads=threads)))
    for row, outcome in zip(rows, checker.stream(r.sample for r in rows), strict=True):
        if not isinstance(outcome, Verdict):
            raise SystemExit(f"{row.origin}: {outcome}")
        scores = tuple(require_measured(f.p_supported) for s in outcome.segments for f in s.findings)
        if scores:
            yield ScoredText(scores, row.faithful, row.origin)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder; factored.json is written into it")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: rows that overlap with them are left out")
    parser.add_argument("--threads", type=int, help="CPU threads; default: all cores")
    args = parser.parse_args()

    path, known = args.folder / "factored.json", list(draw_texts(HeldOutRows(args.data, args.leave_out)))
    # the method needs some thetas to run; the scores do not depend on them
    start = {"thetas": dict.fromkeys(COMBINATION_RULES, 0.5), "typical": 1.0, "reference": 1.0}
    with replace_fitted_file(args.folder, path.name, start) as folder:
        rows = list(measured(folder, known, args.threads))
        for origin in dict.fromkeys(r.origin for r in rows):
            some = fit_thetas([r for r in rows if r.origin == origin])
            print(f"{origin:26} rows {some['rows']:4}  claims {some['reference']}  alone: {some['average_accuracy']}")
        fit = fit_thetas(rows) | {"fitted_on": dict(Counter(r.origin for r in rows)), "split": SPLIT}
        (folder / path.name).write_text(json.dumps(fit, indent=1) + "\n")
    print(f"wrote {path}: {fit}")
    return 0


if __name__ == "__main__":
    run_script(main)
