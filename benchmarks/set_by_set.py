#!/usr/bin/env python
"""The whole judgment of two verifiers on the twelve sets that no trivial rule solves, on the same rows: what the later one gains.

Both runs are what `knowhalu eval all` left in a folder. The aim of every set is a stated step over the better of the earlier
verifier and the trivial rule.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, auc, balanced, make_parser, rows_of, trivial, write_results
from quality import judged
from verifier import SETS, gains

STEP = 0.02


def said(runs: Path, tested: Mapping[str, list[EvalRow]]) -> dict[str, Array]:
    """Return 1 - P(hallucinated) of all rows, as a run left it."""
    return {name: np.array([1 - v.probability for v in judged(runs, name, rows)]) for name, rows in tested.items()}


def compared(tested: Mapping[str, list[EvalRow]], before: Mapping[str, Array], now: Mapping[str, Array]) -> dict[str, Any]:
    """Return ROC-AUC of both and of the trivial rule on every set, the paired gain, and what is over the better of the two."""
    gain, found = gains(tested, before, now), {}
    for name, rows in tested.items():
        gold = np.array([r.faithful for r in rows])
        rule_balanced, rule = trivial([r.sample for r in rows], gold, [r.group for r in rows])
        found[name] = {
            "rows": len(rows), "before": auc(gold, before[name]), "now": auc(gold, now[name]), "trivial": rule,
            "gain": gain[name], "trivial_balanced": rule_balanced,
            "balanced_before": balanced(gold, before[name] >= 0.5), "balanced": balanced(gold, now[name] >= 0.5),
        }  # fmt: skip
        found[name]["over"] = found[name]["now"] - max(found[name]["before"], rule)
    keys = ("before", "now", "trivial", "balanced", "balanced_before", "trivial_balanced")
    mean = {key: float(np.mean([r[key] for r in found.values()])) for key in keys} | {"gain": gain["mean"]}
    return {"sets": found, "mean": mean, "met": sum(r["over"] >= STEP for r in found.values())}


def table(found: Mapping[str, Any]) -> str:
    """Lay out one line a set, the largest step first."""
    lines = [
        "ROC-AUC of the whole judgment, all rows. *Gain*: of the shipped verifier over the first version, both in today's",
        "pipeline with a refitted judgment, with its 95 % interval (paired bootstrap, rows of one source or claim drawn",
        f"together). *Over the better*: of the first version and the trivial rule; the aim, {STEP:+.2f}, is met on",
        f"{found['met']} of {len(found['sets'])}.", "",
        "| set | rows | first version | trivial | now | gain | over the better |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in sorted(found["sets"].items(), key=lambda item: -item[1]["over"]):
        cells = [f"{r[key]:.3f}" for key in ("before", "trivial", "now")]
        lines.append(f"| {name} | {r['rows']} | {' | '.join(cells)} | {_ranged(r['gain'])} | {r['over']:+.3f} |")
    m = found["mean"]
    lines.append(f"| **mean** | | {m['before']:.3f} | {m['trivial']:.3f} | {m['now']:.3f} | {_ranged(m['gain'])} | |")
    names = {"balanced_before": "first version", "trivial_balanced": "trivial", "balanced": "now"}
    each = ", ".join(f"{who} {m[key]:.3f}" for key, who in names.items())
    return "\n".join([*lines, "", f"Mean balanced accuracy at the shipped threshold: {each}."]) + "\n"


def _ranged(gain: tuple[float, float, float]) -> str:
    return "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gain)


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "set_by_set.json", "data", "runs")
    parser.add_argument("--before", type=Path, required=True, help="run of the earlier verifier (--set encoder.folder=FOLDER)")
    args = parser.parse_args()
    tested = {name: rows_of(args.data, name) for name in SETS}
    found = compared(tested, said(args.before, tested), said(args.runs, tested))
    write_results(args.out, found, table(found))
    print(table(found))


if __name__ == "__main__":
    main()
