#!/usr/bin/env python
"""Quality on labelled files: every evaluation set, and the KnowHalu paper's own test sets, compared with trivial rules.

It reads the outcomes that `knowhalu eval all` left in a folder, of all rows or of a sample (`--limit`). No threshold is fitted
here: the decision threshold is the one shipped with the verifier.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    CLAIM_FILES,
    DEVELOPMENT,
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
    redrawn,
    rows_of,
    table_line,
    trivial,
    write_results,
)
from verifier import DRAWS, SETS, scores

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.external import open_verifier
from knowhalu.encoder.models import verifier_folder
from knowhalu.encoder.options import EncoderOptions
from knowhalu.io.outcomes import parse_outcome
from knowhalu.results import Failure, Outcome, Verdict
from knowhalu.types import Label

Row = Mapping[str, float]
PAPER_TASKS = ("qa", "summary")
"""The paper's test sets."""
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


def judged(folder: Path, name: str, rows: Sequence[EvalRow]) -> tuple[list[EvalRow], list[Verdict]]:
    """Return the rows that `knowhalu eval all` checked, all or a sample of them, and their verdicts.

    Raises SystemExit where it checked none, or where a check failed.
    """
    known = _outcomes(folder)
    checked = [r for r in rows if r.sample.id in known]
    outcomes = [known[r.sample.id] for r in checked]
    failures = [o for o in outcomes if isinstance(o, Failure)]
    if failures or not checked:
        raise SystemExit(f"{folder}: {name}: " + (f"{failures[0]}" if failures else "no row was checked"))
    return checked, [o for o in outcomes if isinstance(o, Verdict)]


def is_checked(folder: Path, rows: Sequence[EvalRow]) -> bool:
    """Tell whether a run has outcomes of some rows."""
    return any(r.sample.id in _outcomes(folder) for r in rows)


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


def sets(data: Path, names: Sequence[str], runs: Path, backend: EncoderBackend) -> dict[str, dict[str, Any]]:
    """Measure evaluation files, and the mean of those of `SETS`, whose rows are drawn again in every set."""
    results, drawn = {}, list[Array]()
    for name in names:
        rows, verdicts = judged(runs, name, rows_of(data, name))
        gold, groups = np.array([r.faithful for r in rows]), [r.group for r in rows]
        t_balanced, t_auc = trivial([r.sample for r in rows], gold, groups)
        alone = scores(backend, rows)
        results[name] = {
            "rows": len(rows), **measured(rows, verdicts, alone), "trivial_auc": t_auc, "trivial_balanced": t_balanced
        }  # fmt: skip
        if name in SETS:
            whole = np.array([1 - v.probability for v in verdicts])
            resampled = redrawn(groups, DRAWS, np.random.default_rng(0))
            drawn.append(np.array([
                (auc(gold[i], whole[i]), auc(gold[i], whole[i]) - auc(gold[i], alone[i]), balanced(gold[i], whole[i] >= 0.5))
                for i in resampled
            ]))  # fmt: skip
        print(f"{name:20}", *set_cells(results[name]), sep="  ", flush=True)
    twelve = [r for name, r in results.items() if name in SETS]
    if len(twelve) > 1:
        low, high = np.nanpercentile(np.mean(drawn, axis=0), [2.5, 97.5], axis=0)
        figures = ("auc", "auc_alone", "balanced", "trivial_auc", "trivial_balanced")
        results[f"**mean of {len(twelve)}**"] = {
            "rows": sum(r["rows"] for r in twelve), **{key: float(np.mean([r[key] for r in twelve])) for key in figures},
            **{f"{key}_low": float(v) for key, v in zip(("auc", "gain", "balanced"), low, strict=True)},
            **{f"{key}_high": float(v) for key, v in zip(("auc", "gain", "balanced"), high, strict=True)},
        }  # fmt: skip
    return results


def papers(data: Path, tasks: Sequence[str], runs: Path) -> dict[str, dict[str, Any]]:
    """Measure the KnowHalu paper's test sets, on all rows and on the length-matched pairs, with the length rule."""
    results: dict[str, dict[str, Any]] = {}
    for task in tasks:
        rows, verdicts = judged(runs, task, paper_pairs(data, task))
        words = _word_counts(rows)
        near = 6 if task == "summary" else 2
        matched = [i for p in range(0, len(rows), 2) if abs(words[p] - words[p + 1]) <= near for i in (p, p + 1)]
        fitted = paper_pairs(data, task, "val")
        train = (_word_counts(fitted), np.array([r.faithful for r in fitted]))
        for label, part in (("all", list(range(len(rows)))), ("length-matched", matched)):
            some = [rows[i] for i in part]
            result = paper(some, [verdicts[i] for i in part])
            cut, length = length_rule(train, (words[part], np.array([r.faithful for r in some])))
            results[f"{task}, {label}"] = {**result, "length_rule": length, "length_rule_words": cut}
            print(f"{task}, {label}", *paper_cells(results[f"{task}, {label}"]), sep="  ", flush=True)
    return results


def _word_counts(rows: Sequence[EvalRow]) -> Array:
    return np.array([float(len(row.sample.response.split())) for row in rows])


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "quality.json", "data", "runs")
    parser.add_argument("--only", nargs="*", help="file names, or qa, summary; default: those of which the run has outcomes")
    parser.add_argument("--verifier", default="small", help="the verifier of the run, to score it alone; default: %(default)s")
    args = parser.parse_args()
    names = [*CLAIM_FILES, *PAIR_FILES, *WRITTEN, *DEVELOPMENT]
    chosen = args.only or [n for n in names if is_checked(args.runs, rows_of(args.data, n))]
    tasks = [t for t in PAPER_TASKS if t in (args.only or PAPER_TASKS) and is_checked(args.runs, paper_pairs(args.data, t))]
    backend = open_verifier(verifier_folder(EncoderOptions(verifier=args.verifier)))
    result = {
        "sets": sets(args.data, [n for n in names if n in chosen], args.runs, backend),
        "paper": papers(args.data, tasks, args.runs),
    }
    write_results(args.out, result, markdown(result["sets"], result["paper"]))


if __name__ == "__main__":
    main()
