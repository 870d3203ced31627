#!/usr/bin/env python
"""The whole judgment of two verifiers on the twelve sets that no trivial rule solves: the gain of the later one on the same rows.

Both runs are folders that `knowhalu eval all` left. The aim on every set is a stated gain over the better of the earlier
verifier and the trivial rule.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, auc, balanced, make_parser, ranged, rows_of, table_line, trivial, write_results
from quality import judged
from verifier import SETS, gains

STEP = 0.02


def stored_scores(runs: Path, tested: Mapping[str, list[EvalRow]]) -> dict[str, Array]:
    """Return 1 - P(hallucinated) of all rows, as a run left it."""
    return {name: np.array([1 - v.probability for v in judged(runs, name, rows)]) for name, rows in tested.items()}


def compared(tested: Mapping[str, list[EvalRow]], before: Mapping[str, Array], now: Mapping[str, Array]) -> dict[str, Any]:
    """Return ROC-AUC of both and of the trivial rule on every set, the paired gain, and what is over the better of the two."""
    gain, results = gains(tested, before, now), {}
    for name, rows in tested.items():
        gold = np.array([r.faithful for r in rows])
        rule_balanced, rule = trivial([r.sample for r in rows], gold, [r.group for r in rows])
        results[name] = {
            "rows": len(rows), "before": auc(gold, before[name]), "now": auc(gold, now[name]), "trivial": rule,
            "gain": gain[name], "trivial_balanced": rule_balanced,
            "balanced_before": balanced(gold, before[name] >= 0.5), "balanced": balanced(gold, now[name] >= 0.5),
        }  # fmt: skip
        results[name]["over"] = results[name]["now"] - max(results[name]["before"], rule)
    keys = ("before", "now", "trivial", "balanced", "balanced_before", "trivial_balanced")
    mean = {key: float(np.mean([r[key] for r in results.values()])) for key in keys} | {"gain": gain["mean"]}
    return {"sets": results, "mean": mean, "met": sum(r["over"] >= STEP for r in results.values())}


def table(results: Mapping[str, Any]) -> str:
    """Return a table with one line for each set, the largest gain over the better first."""
    lines = [
        "ROC-AUC of the whole judgment, all rows. *Gain*: of the shipped verifier over the first version, both in today's",
        "pipeline with a refitted judgment, with its 95 % interval (paired bootstrap, rows of one source or claim drawn",
        f"together). *Over the better*: of the first version and the trivial rule; the aim, {STEP:+.2f}, is met on",
        f"{results['met']} of {len(results['sets'])}.", "",
        "| set | rows | first version | trivial | now | gain | over the better |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in sorted(results["sets"].items(), key=lambda item: -item[1]["over"]):
        values = [f"{r[key]:.3f}" for key in ("before", "trivial", "now")]
        lines.append(table_line([name, str(r["rows"]), *values, ranged(*r["gain"], spec="+.3f"), f"{r['over']:+.3f}"]))
    m = results["mean"]
    gain = ranged(*m["gain"], spec="+.3f")
    lines.append(f"| **mean** | | {m['before']:.3f} | {m['trivial']:.3f} | {m['now']:.3f} | {gain} | |")
    names = {"balanced_before": "first version", "trivial_balanced": "trivial", "balanced": "now"}
    each = ", ".join(f"{who} {m[key]:.3f}" for key, who in names.items())
    return "\n".join([*lines, "", f"Mean balanced accuracy at the shipped threshold: {each}."]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "set_by_set.json", "data", "runs")
    parser.add_argument("--before", type=Path, required=True, help="run of the earlier verifier (--set verifier=FOLDER)")
    args = parser.parse_args()
    tested = {name: rows_of(args.data, name) for name in SETS}
    results = compared(tested, stored_scores(args.before, tested), stored_scores(args.runs, tested))
    write_results(args.out, results, table(results))
    print(table(results))


if __name__ == "__main__":
    main()
