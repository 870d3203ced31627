#!/usr/bin/env python
"""Fit the judgment over evidence features for a verifier, also an external one, and write judgment.json into its folder."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from knowhalu.api import Checker
from knowhalu.calibration.tuning import fit_scaling
from knowhalu.calibration.two_forms import make_tunable_forms
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.models import light_folder
from knowhalu.evaluation.curves import reliability_bins
from knowhalu.io.fitted_files import fitted_folder
from knowhalu.io.verifier_file import read_external
from knowhalu.methods.common.judgment_model import JudgmentModel, plain_judgment
from knowhalu.methods.knowhalu.decision import decide_label
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.profiles import load_settings
from knowhalu.requests import EntailmentPair
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.training.data_files import run_script
from knowhalu.training.fit_rows import FitRow, answer_rows, claim_rows, off_target_pairs
from knowhalu.training.fitting import (
    FORMS,
    average_accuracy,
    fit_evasion_threshold,
    fit_signed_logistic,
    out_of_fold_probabilities,
    replace_fitted_file,
)
from knowhalu.training.holdout import HeldOutRows
from knowhalu.types import Judgment

Checked = list[tuple[FitRow, Verdict]]
FEW = 100
"""Rows from which a set has its full weight in the fit; a row of a smaller set weighs as much as a row of such a set."""


def checked(settings: Settings, rows: list[FitRow], name: str) -> Checked:
    """Run the pipeline in both forms, each text in one piece; `name` labels the progress bar."""
    options = KnowHaluOptions(second_opinion="always", off_target=False, segmentation="words", segment_words=200)
    checker = Checker(settings.model_copy(update={"knowhalu": options}))
    rows_and_verdicts = []
    outcomes = zip(rows, checker.stream(r.sample for r in rows), strict=True)
    for row, outcome in track(outcomes, f"{len(rows):,} {name}", len(rows), console=Console(stderr=True)):
        if not isinstance(outcome, Verdict):
            raise SystemExit(f"{row.origin}: {outcome}")
        rows_and_verdicts.append((row, outcome))
    return rows_and_verdicts


def with_verifier(settings: Settings, folder: Path) -> Settings:
    """Return settings with the verifier of a folder."""
    return settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"verifier": str(folder)})})


def fit_task(name: str, run: Checked) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit the weights of one task in both forms, and the temperature on out-of-fold probabilities."""
    weights: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    for form in FORMS:
        rows = [(r, j) for r, v in run for s in v.segments for j in (s.base, s.supplement) if j and j.form is form and j.features]
        sizes = Counter(r.origin for r, _ in rows)
        importance = [100 * r.weight / max(sizes[r.origin], FEW) for r, _ in rows]
        features, gold = [j.features for _, j in rows], [r.supported for r, _ in rows]
        groups = [" ".join((*r.sample.knowledge, *(d.text for d in r.sample.documents))) for r, _ in rows]
        probability, wrong = 1 - out_of_fold_probabilities(features, gold, importance, groups), ~np.array(gold)
        even = _even(wrong)  # the fit gives both labels the same weight
        probability, wrong = probability[even], wrong[even]
        scaling = fit_scaling("temperature", probability, wrong)
        before, after = reliability_bins(wrong, probability), reliability_bins(wrong, scaling(probability))
        model = fit_signed_logistic(features, gold, importance)
        weights[f"{name}.{form}"] = {**model, "slope": scaling.slope}
        measured[f"{name}.{form}"] = {
            "rows": int(even.size), "ece_unscaled": _rounded(before.ece), "ece": _rounded(after.ece),
            "bins": [[int(n), *map(_rounded, pair)] for n, *pair in zip(after.rows, after.probability, after.share, strict=True)],
        }  # fmt: skip
        print(f"{name}.{form}: temperature {1 / scaling.slope:.2f}, ECE {before.ece:.3f} -> {after.ece:.3f} (out of fold)")
    return weights, measured


def _even(wrong: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Sample as many rows of one label as of the other."""
    sides = [np.flatnonzero(wrong), np.flatnonzero(~wrong)]
    most = min(len(side) for side in sides)
    return np.concatenate([np.random.default_rng(0).permutation(side)[:most] for side in sides])


def _rounded(value: float | None) -> float:
    return round(float(value or 0.0), 4)


def judgments(model: JudgmentModel, task: str, verdict: Verdict) -> tuple[Judgment, Judgment]:
    """Judge the features of a verdict again with the fitted weights: base and supplement."""
    base, other = verdict.segments[0].base, verdict.segments[0].supplement
    judged = []
    for judgment in (base, other or base):
        if judgment.features:
            p = model.weights(task, str(judgment.form)).probability(judgment.features)
            decided = decide_label(p, judgment.features, given=True)
            judgment = judgment.model_copy(update={"label": decided.label, "confidence": decided.confidence})
        judged.append(judgment)
    return judged[0], judged[1]


def beginning(tasks: Iterable[str], settings: Settings) -> dict[str, Any]:
    """Return a judgment that follows the verifier, with which the pipeline computes every feature of these settings."""
    return plain_judgment(tasks=tasks, by_small=light_folder(settings.encoder) is not None)


def fit_evasion(folder: Path, deliveries: list[tuple[EntailmentPair, bool]]) -> float:
    """Fit the probability from which an answer misses its question."""
    scores = EncoderBackend(folder).score([pair for pair, _ in deliveries])
    answers = [(1 - p.supported, evades) for p, (_, evades) in zip(scores, deliveries, strict=True)]
    threshold = fit_evasion_threshold(answers)
    caught = sum(p >= threshold for p, evades in answers if evades) / sum(evades for _, evades in answers)
    print(f"evading answers: {len(answers)} held-out, border {threshold}, {caught:.1%} of those that evade are found")
    return threshold


def fit_all(
    settings: Settings,
    folder: Path,
    data: dict[str, Any],
    tasks: Mapping[str, list[FitRow]],
    deliveries: list[tuple[EntailmentPair, bool]],
) -> None:
    """Fit weights, temperature, border of evasion and thresholds, each by what was fitted before it."""
    path, settings = folder / "judgment.json", with_verifier(settings, folder)
    runs = {task: checked(settings, rows, f"{task}s") for task, rows in tasks.items()}
    data["reliability"] = {}
    for task, run in runs.items():
        weights, measured = fit_task(task, run)
        data["weights"] |= weights
        data["reliability"] |= measured
    if read_external(folder) is None:  # an external verifier was not trained to tell
        data["evades"] = fit_evasion(folder, deliveries)
    path.write_text(json.dumps(data))
    model = JudgmentModel(folder)
    for task, run in runs.items():
        judged = [(*judgments(model, task, v), r) for r, v in run]
        limits = make_tunable_forms((b, s, r.supported) for b, s, r in judged).grid(0).best
        data["thresholds"][task] = [round(t, 4) for t in limits]
        for origin in sorted({r.origin for r, _ in run}):
            some = [(b.label, r.supported) for b, _, r in judged if r.origin == origin]
            print(f"{task:7} {origin:28} rows {len(some):4}  average accuracy on the fitted rows {average_accuracy(some):.3f}")
    path.write_text(json.dumps(data, indent=1) + "\n")
    print(f"thresholds {data['thresholds']}")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="verifier folder; judgment.json is written into it")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training files")
    parser.add_argument("--leave-out", type=Path, help="folder of evaluation files: rows that overlap with them are left out")
    parser.add_argument("--answers", type=Path, help="knowhalu_qa_pairs.jsonl.gz; only its validation split is read")
    parser.add_argument("--every", type=int, default=1, help="fit on every n-th row, for a slow verifier; default: on all")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, such as llm.url of a judge")
    args = parser.parse_args()

    held = HeldOutRows(args.data, args.leave_out)
    tasks = {"claim": list(claim_rows(held)), "answer": list(answer_rows(held, args.answers))}
    tasks = {name: rows[:: args.every] for name, rows in tasks.items()}
    deliveries = list(dict.fromkeys(off_target_pairs(held)))[:: args.every]
    settings = load_settings(pairs=args.set)
    with replace_fitted_file(args.folder, "judgment.json", start := beginning(tasks, settings)) as folder:
        fit_all(settings, folder, start, tasks, deliveries)
    print(f"wrote {fitted_folder(args.folder) / 'judgment.json'}")
    return 0


if __name__ == "__main__":
    run_script(main)
