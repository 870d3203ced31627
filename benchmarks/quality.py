#!/usr/bin/env python
"""Quality on labelled files: every evaluation set, and the KnowHalu paper's own test sets, compared with trivial rules.

No threshold is fitted here: the decision threshold is the one shipped with the verifier.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    CLAIM_FILES,
    PAIR_FILES,
    WRITTEN,
    Array,
    EvalRow,
    auc,
    balanced,
    interval,
    length_rule,
    make_parser,
    paper_pairs,
    ranged,
    rows_of,
    table_line,
    trivial,
    write_results,
)
from verifier import scores

from knowhalu.api import Checker
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.io.outcomes import parse_outcome
from knowhalu.profiles import load_settings
from knowhalu.results import Failure, Outcome, Verdict
from knowhalu.types import Label

Row = Mapping[str, float]
_SETS = """\
Every file is a test file that was not trained on; the decision threshold was fixed beforehand. *Trivial* is a logistic
regression on length and word overlap alone, fitted on the very rows (5 grouped folds). In brackets: 95 % bootstrap
interval, rows of one source or claim drawn together. *Verifier alone*: its P(supported) of source and text, of several
windows the best, without pipeline and judgment; *gain*: of the whole over it, by paired draws.

| set | rows | ROC-AUC | verifier alone | gain | trivial | balanced accuracy | trivial |
|---|---|---|---|---|---|---|---|"""
_PAPER = """\
| the KnowHalu paper's rows | rows | TPR | TNR | Avg Acc | ARP | ARN | length rule |
|---|---|---|---|---|---|---|---|"""


def set_cells(row: Row) -> list[str]:
    """Return the figures of one evaluation file."""
    return [
        f"{row['rows']:.0f}",
        ranged(row["auc"], row["auc_low"], row["auc_high"]), f"{row['auc_alone']:.3f}",
        ranged(row["auc"] - row["auc_alone"], row["gain_low"], row["gain_high"], "+.3f"), f"{row['trivial_auc']:.3f}",
        ranged(row["balanced"], row["balanced_low"], row["balanced_high"]), f"{row['trivial_balanced']:.3f}",
    ]  # fmt: skip


def paper_cells(row: Row) -> list[str]:
    """Return the figures of one of the paper's test sets."""
    tpr, tnr, arp, arn = (f"{row[n]:.3f}" for n in ("tpr", "tnr", "arp", "arn"))
    rule = f"{row['length_rule']:.3f} (> {row['length_rule_words']:.0f} words)"
    return [f"{row['rows']:.0f}", tpr, tnr, ranged(row["avg_acc"], row["low"], row["high"]), arp, arn, rule]


def markdown(sets: Mapping[str, Row], paper: Mapping[str, Row]) -> str:
    """Return both tables."""
    lines = [_SETS, *(table_line([n, *set_cells(r)]) for n, r in sets.items()), ""]
    lines += [_PAPER, *(table_line([n, *paper_cells(r)]) for n, r in paper.items())]
    return "\n".join(lines) + "\n"


def run(rows: list[EvalRow], pairs: list[str], runs: Path | None = None) -> tuple[list[Verdict], float | None, list[Failure]]:
    """Check all rows, or read the outcomes of a run; returns verdicts in order, answers a second of a check, and failures."""
    if runs is not None:
        return stored(runs, rows)
    checker = Checker(load_settings(pairs=pairs))
    checker.check(rows[0].sample)
    start = time.perf_counter()
    outcomes = list(checker.stream(r.sample for r in rows))
    rate = len(rows) / (time.perf_counter() - start)
    return [o for o in outcomes if isinstance(o, Verdict)], rate, [o for o in outcomes if isinstance(o, Failure)]


def stored(folder: Path, rows: list[EvalRow]) -> tuple[list[Verdict], None, list[Failure]]:
    """Read the verdicts that `knowhalu eval all` left in a folder; raises SystemExit where a row has none."""
    known = _outcomes(folder)
    if missing := [r.sample.id for r in rows if r.sample.id not in known]:
        raise SystemExit(f"{folder}: no outcome of {len(missing)} rows, first: {missing[0]}")
    outcomes = [known[r.sample.id] for r in rows]
    return [o for o in outcomes if isinstance(o, Verdict)], None, [o for o in outcomes if isinstance(o, Failure)]


def judged(folder: Path, name: str, rows: list[EvalRow]) -> list[Verdict]:
    """Read the verdicts of a set that `knowhalu eval all` left; raises SystemExit where a row has none, or failed."""
    verdicts, _, failures = stored(folder, rows)
    if failures:
        raise SystemExit(f"{folder}: {name}: {len(failures)} failures, first: {failures[0]}")
    return verdicts


@cache
def _outcomes(folder: Path) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for path in sorted(folder.glob("*/knowhalu.jsonl")):
        with path.open(encoding="utf-8") as lines:
            next(lines)  # the header of the run
            outcomes |= {outcome.id: outcome for outcome in map(parse_outcome, lines)}
    return outcomes


def measured(rows: list[EvalRow], verdicts: list[Verdict], alone: Array) -> dict[str, float]:
    """Return AUC and balanced accuracy with intervals, and the AUC of the verifier alone, given its scores of the rows."""
    faithful = np.array([r.faithful for r in rows])
    whole = np.array([1 - v.probability for v in verdicts])
    groups = [r.group for r in rows]
    low, high = interval(lambda i: auc(faithful[i], whole[i]), groups)
    lowg, highg = interval(lambda i: auc(faithful[i], whole[i]) - auc(faithful[i], alone[i]), groups)
    lowb, highb = interval(lambda i: balanced(faithful[i], whole[i] >= 0.5), groups)
    return {
        "auc": auc(faithful, whole), "auc_low": low, "auc_high": high,
        "auc_alone": auc(faithful, alone), "gain_low": lowg, "gain_high": highg,
        "balanced": balanced(faithful, whole >= 0.5), "balanced_low": lowb, "balanced_high": highb,
    }  # fmt: skip


def paper(rows: list[EvalRow], verdicts: list[Verdict]) -> dict[str, float]:
    """Return TPR, TNR, their mean with its interval, and the abstain rates (an INCONCLUSIVE is neither right)."""
    faithful = np.array([r.faithful for r in rows])
    labels = np.array([v.label for v in verdicts])

    def average(i: np.ndarray) -> float:  # type: ignore[type-arg]
        return float(((labels[i] == Label.INCORRECT)[~faithful[i]].mean() + (labels[i] == Label.CORRECT)[faithful[i]].mean()) / 2)

    low, high = interval(average, [r.group for r in rows])
    wrong, right, open_ = (labels == label for label in (Label.INCORRECT, Label.CORRECT, Label.INCONCLUSIVE))
    return {
        "rows": len(rows), "tpr": float(wrong[~faithful].mean()), "tnr": float(right[faithful].mean()),
        "avg_acc": average(np.arange(len(rows))), "low": low, "high": high,
        "arp": float(open_[~faithful].mean()), "arn": float(open_[faithful].mean()),
    }  # fmt: skip


def sets(data: Path, names: list[str], limit: int, pairs: list[str], runs: Path | None) -> dict[str, dict[str, Any]]:
    """Measure evaluation files; of a file with more than `limit` rows a fixed sample is taken."""
    results, backend = {}, EncoderBackend()
    for name in names:
        rows = rows_of(data, name)
        if len(rows) > limit:
            rows = [rows[i] for i in sorted(np.random.default_rng(0).permutation(len(rows))[:limit])]
        verdicts, rate, failures = run(rows, pairs, runs)
        if failures:
            raise SystemExit(f"{name}: {len(failures)} failures, first: {failures[0]}")
        t_balanced, t_auc = trivial([r.sample for r in rows], np.array([r.faithful for r in rows]), [r.group for r in rows])
        results[name] = {
            "rows": len(rows), **measured(rows, verdicts, scores(backend, rows)), "trivial_auc": t_auc,
            "trivial_balanced": t_balanced, "per_second": rate,
        }  # fmt: skip
        print(f"{name:20}", *set_cells(results[name]), f"{rate or 0:.1f}/s", sep="  ", flush=True)
    return results


def papers(data: Path, tasks: list[str], pairs: list[str], index: Path | None, runs: Path | None) -> dict[str, dict[str, Any]]:
    """Measure the KnowHalu paper's test sets, on all rows and on the length-matched pairs, with the length rule."""
    results: dict[str, dict[str, Any]] = {}
    for task in tasks:
        rows = paper_pairs(data, task)
        extra = [f"retrieval.index={index}"] if task == "qa_index" else []
        verdicts, rate, failures = run(rows, pairs + extra, None if extra else runs)
        if failures:
            raise SystemExit(f"{task}: {len(failures)} failures, first: {failures[0]}")
        words = _word_counts(rows)
        near = 6 if task == "summary" else 2
        matched = [i for p in range(0, len(rows), 2) if abs(words[p] - words[p + 1]) <= near for i in (p, p + 1)]
        fitted = paper_pairs(data, task, "val")
        train = (_word_counts(fitted), np.array([r.faithful for r in fitted]))
        for label, part in (("all", list(range(len(rows)))), ("length-matched", matched)):
            some = [rows[i] for i in part]
            result = paper(some, [verdicts[i] for i in part])
            cut, length = length_rule(train, (words[part], np.array([r.faithful for r in some])))
            name = f"{task}, {label}"
            results[name] = {**result, "length_rule": length, "length_rule_words": cut, "per_second": rate}
            print(f"{name:26}", *paper_cells(results[name]), f"{rate or 0:.1f}/s", sep="  ", flush=True)
    return results


def _word_counts(rows: Sequence[EvalRow]) -> Array:
    return np.array([float(len(row.sample.response.split())) for row in rows])


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "quality.json", "data")
    parser.add_argument("--only", nargs="*", help="file names, or qa, qa_index, summary")
    parser.add_argument("--index", type=Path, help="index for qa_index")
    parser.add_argument("--limit", type=int, default=100_000)
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--runs", type=Path, help="folder of `knowhalu eval all` whose outcomes are measured")
    args = parser.parse_args()
    names = [*CLAIM_FILES, *PAIR_FILES, *WRITTEN]
    tasks = ["qa", "summary"] + (["qa_index"] if args.index else [])
    chosen = args.only or [*tasks, *names]
    result = {
        "sets": sets(args.data, [n for n in names if n in chosen], args.limit, args.pairs, args.runs),
        "paper": papers(args.data, [t for t in tasks if t in chosen], args.pairs, args.index, args.runs),
    }
    write_results(args.out, result, markdown(result["sets"], result["paper"]))


if __name__ == "__main__":
    main()
