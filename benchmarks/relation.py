#!/usr/bin/env python
"""Contradicted or not in the source: what verdicts say of wrong claims whose makers tell the two apart, and why some stay open.

It reads the outcomes that `knowhalu eval all` left in a folder. A claim that is judged CORRECT counts as supported, and one that
is INCORRECT as what its `relation` says, so an open one is never right.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import EvalRow, interval, make_parser, read, rows_of, write_results
from numpy.typing import NDArray
from quality import judged

from knowhalu.results import Verdict
from knowhalu.types import InconclusiveReason, Label, Relation

SETS = ("nli_control", "nli_cad_snli", "scifact", "healthver", "fever_symmetric_v2", "fm2", "written_claims")
OPEN = (*SETS, "qags_cnndm", "summedits8", "wice_claim_oracle", "bump_pairs", "written_answers")
NAMES = {
    "supported": Relation.ENTAILMENT, "contradicted": Relation.CONTRADICTION,
    "neutral": Relation.NEUTRAL, "not_in_source": Relation.NEUTRAL,
}  # fmt: skip
CLASSES = (Relation.ENTAILMENT, Relation.CONTRADICTION, Relation.NEUTRAL)


def gold(data: Path, name: str) -> dict[str, Relation]:
    """Return how the source stands to every claim of a set, as its makers say."""
    found = {}
    for row in read(data / f"{name}.jsonl.gz"):
        if name == "written_claims":
            found |= {f"{row['id']}-{i}": NAMES[c["label"]] for i, c in enumerate(row["claims"])}
        else:
            found[row["id"]] = NAMES[row["label3"]]
    return found


def said(verdict: Verdict) -> Relation | None:
    """Return how a verdict says that the source stands to the claim; None where it stays open."""
    return Relation.ENTAILMENT if verdict.label is Label.CORRECT else verdict.relation


def measured(rows: Sequence[EvalRow], verdicts: Sequence[Verdict], known: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the recall of every class, their mean with its interval, and how often the relation of a found error is right."""
    classes = [c for c in CLASSES if c in known.values()]
    true = np.array([CLASSES.index(known[r.sample.id]) for r in rows])
    told = np.array([CLASSES.index(s) if (s := said(v)) is not None else -1 for v in verdicts])
    groups = [r.group for r in rows]

    def recalls(i: Any) -> list[float]:
        return [float((told[i][true[i] == CLASSES.index(c)] == CLASSES.index(c)).mean()) for c in classes]

    def of_found(i: Any) -> float:
        return _agreement(true[i], told[i])

    every = np.arange(len(rows))
    low, high = interval(lambda i: float(np.nanmean(recalls(i))), groups)
    found: dict[str, Any] = {
        "rows": len(rows), "recall": {str(c): r for c, r in zip(classes, recalls(every), strict=True)},
        "mean": float(np.mean(recalls(every))), "low": low, "high": high, "chance": 1 / len(classes),
        "table": [[int(((true == a) & (told == b)).sum()) for b in (0, 1, 2, -1)] for a in range(len(CLASSES))],
    }  # fmt: skip
    if len(classes) == len(CLASSES):
        at, to = interval(of_found, groups)
        found["of_found"] = [of_found(every), at, to]
    return found


def _agreement(true: NDArray[Any], told: NDArray[Any]) -> float:
    """Return the mean over both kinds of wrong claims that are called wrong of how often the kind is right; .5 is chance."""
    shares = []
    for kind in (1, 2):
        some = (true == kind) & (told > 0)
        shares.append(float((told[some] == kind).mean()) if some.any() else float("nan"))
    return float(np.mean(shares))


def reasons(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count why texts stay open, in the order of `InconclusiveReason`."""
    counts = Counter(v.inconclusive_reason for v in verdicts if v.label is Label.INCONCLUSIVE)
    return {str(reason): counts[reason] for reason in InconclusiveReason if counts[reason]}


def table(sets: Mapping[str, Mapping[str, Any]], left: Mapping[str, Mapping[str, Any]]) -> str:
    """Lay out both tables."""
    lines = [
        "Recall of every class and their mean, with its 95 % bootstrap interval (rows of one source or claim drawn together;",
        "*chance*: .33, or .50 where a set has two classes). *Of what is found*: of wrong claims that are called wrong, how",
        "often contradicted or not in the source is identified correctly, as the mean of both kinds (chance .50).", "",
        "| set | rows | supported | contradicted | not in the source | mean | chance | of what is found |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in sets.items():
        recall = [f"{r['recall'][c]:.3f}" if c in r["recall"] else "-" for c in map(str, CLASSES)]
        kinds = "{:.3f} [{:.3f}, {:.3f}]".format(*r["of_found"]) if "of_found" in r else "-"
        mean = f"{r['mean']:.3f} [{r['low']:.3f}, {r['high']:.3f}]"
        lines.append(f"| {name} | {r['rows']} | {' | '.join(recall)} | {mean} | {r['chance']:.2f} | {kinds} |")
    lines += ["", "| set | rows | INCONCLUSIVE | why |", "|---|---|---|---|"]
    for name, r in left.items():
        why = ", ".join(f"{reason} {count}" for reason, count in r["reasons"].items()) or "-"
        lines.append(f"| {name} | {r['rows']} | {sum(r['reasons'].values())} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    args = make_parser(__doc__, "relation.json", "data", "runs").parse_args()
    sets: dict[str, dict[str, Any]] = {}
    left: dict[str, dict[str, Any]] = {}
    for name in OPEN:
        rows = rows_of(args.data, name)
        verdicts = judged(args.runs, name, rows)
        left[name] = {"rows": len(rows), "reasons": reasons(verdicts)}
        if name in SETS:
            sets[name] = measured(rows, verdicts, gold(args.data, name))
            print(name, sets[name]["mean"], sets[name].get("of_found"), flush=True)
    write_results(args.out, {"sets": sets, "inconclusive_reason": left}, table(sets, left))


if __name__ == "__main__":
    main()
