#!/usr/bin/env python
"""Fit the judgment over evidence features for a verifier's folder and write its judgment.json."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from knowhalu.api import Checker
from knowhalu.options import EncoderOptions, KnowHaluOptions, Settings
from knowhalu.training.judgment import FORMS, FitRow, answer_rows, average_accuracy, claim_rows, fit, grid_thresholds
from knowhalu.types import Segment, Verdict


def segments_of(folder: Path, rows: list[FitRow]) -> list[tuple[FitRow, Segment]]:
    """Run the pipeline, both forms, and return the one segment of every row that went through."""
    options = KnowHaluOptions(second_opinion="always", off_target=False, segment_words=200)
    checker = Checker(Settings(encoder=EncoderOptions(folder=folder), knowhalu=options))
    found = []
    for row, outcome in zip(rows, checker.stream(replace(r).sample for r in rows), strict=True):
        if not isinstance(outcome, Verdict):
            raise SystemExit(f"{row.origin}: {outcome}")
        found.append((row, outcome.segments[0]))
    return found


def fit_task(name: str, found: list[tuple[FitRow, Segment]]) -> dict[str, object]:
    """Fit the weights of one task in both forms."""
    weights: dict[str, object] = {}
    for form in FORMS:
        rows = [(r, j) for r, s in found for j in (s.base, s.supplement) if j and j.form is form and j.features]
        share = {o: sum(r.origin == o for r, _ in rows) for o in {r.origin for r, _ in rows}}
        weights[f"{name}.{form}"] = fit(
            [j.features for _, j in rows], [r.supported for r, _ in rows], [100 * r.weight / share[r.origin] for r, _ in rows]
        )
    return weights


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder; judgment.json is written into it")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--validation", type=Path, help="knowhalu_qa_pairs.jsonl.gz; only its validation split is read")
    args = parser.parse_args()

    tasks = {"claim": list(claim_rows(args.data)), "answer": list(answer_rows(args.data, args.validation))}
    path = args.folder / "judgment.json"
    start = {"bias": 0.0, "cut": 0.0, "weights": {"joint_supported": 1.0}}
    data: dict[str, dict[str, object]] = {
        "weights": {f"{t}.{f}": start for t in tasks for f in FORMS},
        "thresholds": {t: [0.0, 1.0] for t in tasks},
    }
    path.write_text(json.dumps(data))
    for task, rows in tasks.items():
        data["weights"] |= fit_task(task, segments_of(args.folder, rows))
    path.write_text(json.dumps(data))
    for task, rows in tasks.items():  # again, now with the fitted judgments
        found = segments_of(args.folder, rows)
        judged = [(s.base, s.supplement, r.supported) for r, s in found if s.supplement]
        data["thresholds"][task] = [round(t, 4) for t in grid_thresholds(judged)]
        for origin in sorted({r.origin for r in rows}):
            some = [(s.base.label, r.supported) for r, s in found if r.origin == origin]
            print(f"{task:7} {origin:28} rows {len(some):4}  average accuracy on the fitted rows {average_accuracy(some):.3f}")
    path.write_text(json.dumps(data, indent=1) + "\n")
    print(f"wrote {path}: thresholds {data['thresholds']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
