#!/usr/bin/env python
"""What each group of features contributes to the judgment: refitted without it on the same held-out rows, on the twelve sets.

The sets are not checked again: the features are in the outcomes that `knowhalu eval all` left. Each fit is that of
`scripts/fit_judgment.py`, base form, without its temperature; answers that the off-target check decides keep their probability.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, auc, balanced, make_parser, ranged, rows_of, table_line, write_results
from quality import judged
from verifier import SETS, gains

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from fit_judgment import FEW, beginning, checked, with_verifier

from knowhalu.encoder.models import light_folder, verifier_folder
from knowhalu.encoder.options import EncoderOptions
from knowhalu.methods.common.combine import soft_max_probability
from knowhalu.methods.common.judgment_model import FeatureWeights
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.training.fit_rows import answer_rows, claim_rows
from knowhalu.training.fitting import fit_signed_logistic
from knowhalu.training.holdout import HeldOutRows

Rows = Mapping[str, list[dict[str, Any]]]
GROUPS = {
    "windows read by small, too": "small_window_supported small_plain_supported small_joined_supported",
    "sentences, one by one": "sentence_supported",
    "sentences of several sources": "joined_supported",
    "values": "values_equal values_differ values_missing",
    "names": "names_missing",
    "question or context": "plain_supported",
}
WINDOW = ("window_supported",)


def fit_rows(data: Path, leave_out: Path, answers: Path, verifier: str, every: int) -> Rows:
    """Read the held-out rows that a judgment is fitted on: their features, gold and importance, for claims and for answers."""
    held = HeldOutRows(data, leave_out)
    tasks = {"claim": list(claim_rows(held))[::every], "answer": list(answer_rows(held, answers))[::every]}
    options = EncoderOptions(verifier=verifier)
    sentences: Any = "same" if light_folder(options) is None else "small"
    settings = Settings(encoder=EncoderOptions(verifier=verifier, sentences=sentences))
    by_task = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(verifier_folder(options), Path(temporary) / "verifier"))
        (folder / "judgment.json").write_text(json.dumps(beginning(tasks, settings)), encoding="utf-8")
        settings = with_verifier(settings, folder)
        for task, rows in tasks.items():
            read = [(r, s.base) for r, v in checked(settings, rows, f"{task}s") for s in v.segments if s.base.features]
            share = {o: sum(r.origin == o for r, _ in read) for o in {r.origin for r, _ in read}}
            by_task[task] = [
                {"features": j.features, "gold": r.supported, "weight": 100 * r.weight / max(share[r.origin], FEW)}
                for r, j in read
            ]
    return by_task


def fitted(rows: Rows, without: Sequence[str], only: Sequence[str] = ()) -> dict[str, FeatureWeights]:
    """Refit the weights of every task, without some features, or with some alone."""
    weights = {}
    for task, every in rows.items():
        features = [{n: v for n, v in r["features"].items() if n not in without and (not only or n in only)} for r in every]
        model = fit_signed_logistic(features, [r["gold"] for r in every], [r["weight"] for r in every])
        weights[task] = FeatureWeights(model["bias"], model["weights"], model["cut"])
    return weights


def probability(verdict: Verdict, weights: Mapping[str, FeatureWeights], task: str) -> float:
    """Return P(hallucinated) of a text by other weights, from the features of its segments."""
    doubts = [1 - weights[task].probability(s.base.features) for s in verdict.segments if s.base.features]
    return soft_max_probability(max(doubts), doubts) if doubts else verdict.probability


def scored(
    weights: Mapping[str, FeatureWeights], tested: Mapping[str, list[EvalRow]], verdicts: Mapping[str, list[Verdict]]
) -> dict[str, Array]:
    """Return 1 - P(hallucinated) of all rows by other weights."""
    scores = {}
    for name, rows in tested.items():
        tasks = ["answer" if r.sample.question else "claim" for r in rows]
        scores[name] = np.array([1 - probability(v, weights, t) for v, t in zip(verdicts[name], tasks, strict=True)])
    return scores


def compared(tested: Mapping[str, list[EvalRow]], whole: Mapping[str, Array], fits: Mapping[str, Mapping[str, Array]]) -> Any:
    """Return mean ROC-AUC and balanced accuracy of every fit, and its gain over the fit of all features, also by set."""
    gold = {name: np.array([r.faithful for r in rows]) for name, rows in tested.items()}
    results = {}
    for fit, scores in fits.items():
        gain = gains(tested, whole, scores)
        results[fit] = {
            "auc": float(np.mean([auc(gold[n], scores[n]) for n in tested])),
            "balanced": float(np.mean([balanced(gold[n], scores[n] >= 0.5) for n in tested])),
            "gain": gain["mean"], "sets": {n: gain[n] for n in tested},
        }  # fmt: skip
    return results


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with one line for each fit."""
    lines = [
        "Mean ROC-AUC and balanced accuracy over the twelve sets, base form. *Difference*: against the judgment of all",
        "features, with its 95 % interval (paired bootstrap, rows of one source or claim drawn together). *Most on*: the sets",
        "whose interval leaves out 0.", "",
        "| judgment | ROC-AUC | balanced accuracy | difference | most on |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for fit, r in results.items():
        significant = {n: g for n, g in r["sets"].items() if g[1] > 0 or g[2] < 0}
        largest = sorted(significant.items(), key=lambda item: -abs(item[1][0]))[:3]
        gain = "" if fit == "all features" else ranged(*r["gain"], spec="+.3f")
        most = ", ".join(f"{n} {g[0]:+.3f}" for n, g in largest) or "-"
        lines.append(table_line([fit, f"{r['auc']:.3f}", f"{r['balanced']:.3f}", gain, most]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "judgment_parts.json", "data", "training", "runs")
    parser.add_argument("--verifier", default="small", help="verifier of the runs, default: %(default)s")
    parser.add_argument("--every", type=int, default=1, help="fit on every n-th row, default: on all")
    args = parser.parse_args()
    rows = fit_rows(args.training, args.data, args.data / "knowhalu_qa_pairs.jsonl.gz", args.verifier, args.every)
    checked = {name: judged(args.runs, name, rows_of(args.data, name)) for name in SETS}
    tested, verdicts = ({name: part[i] for name, part in checked.items()} for i in (0, 1))
    fits = {"all features": fitted(rows, ())}
    known = {name for every in rows.values() for row in every for name in row["features"]}
    fits |= {f"without {g}": fitted(rows, names.split()) for g, names in GROUPS.items() if known & set(names.split())}
    fits["the nearest window alone"] = fitted(rows, (), WINDOW)
    scores = {fit: scored(weights, tested, verdicts) for fit, weights in fits.items()}
    results = compared(tested, scores["all features"], scores)
    write_results(args.out, results, table(results))
    print(table(results))


if __name__ == "__main__":
    main()
