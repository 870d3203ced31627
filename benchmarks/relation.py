#!/usr/bin/env python
"""Contradicted or not in the source: whether verdicts on wrong claims tell the two apart, and why some are inconclusive.

It reads the outcomes that `knowhalu eval all` left in a folder. A claim that is judged CORRECT counts as supported, and one that
is INCORRECT as its `relation`, so an inconclusive one is never right.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import EvalRow, interval, make_parser, ranged, read, rows_of, table_line, table_lines, write_results
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
    """Return the relation of the source to every claim of a set, as its authors label it."""
    relations = {}
    for row in read(data / f"{name}.jsonl.gz"):
        if name == "written_claims":
            relations |= {f"{row['id']}-{i}": NAMES[c["label"]] for i, c in enumerate(row["claims"])}
        else:
            relations[row["id"]] = NAMES[row["label3"]]
    return relations


def predicted_relation(verdict: Verdict) -> Relation | None:
    """Return the relation that a verdict states; None where it is inconclusive."""
    return Relation.ENTAILMENT if verdict.label is Label.CORRECT else verdict.relation


def measured(rows: Sequence[EvalRow], verdicts: Sequence[Verdict], known: Mapping[str, Relation]) -> dict[str, Any]:
    """Return the recall of every class, their mean with its interval, and how often the relation of a found error is right."""
    classes = [c for c in CLASSES if c in known.values()]
    true = np.array([CLASSES.index(known[r.sample.id]) for r in rows])
    predicted = np.array([CLASSES.index(r) if (r := predicted_relation(v)) is not None else -1 for v in verdicts])
    groups = [r.group for r in rows]

    def recalls(i: Any) -> list[float]:
        return [float((predicted[i][true[i] == CLASSES.index(c)] == CLASSES.index(c)).mean()) for c in classes]

    def of_found(i: Any) -> float:
        return _agreement(true[i], predicted[i])

    every = np.arange(len(rows))
    low, high = interval(lambda i: float(np.nanmean(recalls(i))), groups)
    result: dict[str, Any] = {
        "rows": len(rows), "recall": {str(c): r for c, r in zip(classes, recalls(every), strict=True)},
        "mean": float(np.mean(recalls(every))), "low": low, "high": high, "chance": 1 / len(classes),
        "table": [[int(((true == a) & (predicted == b)).sum()) for b in (0, 1, 2, -1)] for a in range(len(CLASSES))],
    }  # fmt: skip
    if len(classes) == len(CLASSES):
        result["of_found"] = [of_found(every), *interval(of_found, groups)]
    return result


def _agreement(true: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the mean over both kinds of wrong claims that are called wrong of how often the kind is right; .5 is chance."""
    shares = []
    for kind in (1, 2):
        some = (true == kind) & (predicted > 0)
        shares.append(float((predicted[some] == kind).mean()) if some.any() else float("nan"))
    return float(np.mean(shares))


def reasons(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the reasons of inconclusive verdicts, in the order of `InconclusiveReason`."""
    counts = Counter(v.inconclusive_reason for v in verdicts if v.label is Label.INCONCLUSIVE)
    return {str(reason): counts[reason] for reason in InconclusiveReason if counts[reason]}


def table(sets: Mapping[str, Mapping[str, Any]], left: Mapping[str, Mapping[str, Any]]) -> str:
    """Return both tables."""
    lines = [
        "Recall of every class and their mean, with its 95 % bootstrap interval (rows of one source or claim drawn together;",
        "*chance*: .33, or .50 where a set has two classes). *Of what is found*: of wrong claims that are called wrong, how",
        "often contradicted or not in the source is identified correctly, as the mean of both kinds (chance .50).", "",
        "| set | rows | supported | contradicted | not in the source | mean | chance | of what is found |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in sets.items():
        recall = [f"{r['recall'][c]:.3f}" if c in r["recall"] else "-" for c in map(str, CLASSES)]
        kinds = ranged(*r["of_found"]) if "of_found" in r else "-"
        mean = ranged(r["mean"], r["low"], r["high"])
        lines.append(table_line([name, str(r["rows"]), *recall, mean, f"{r['chance']:.2f}", kinds]))
    inconclusive = []
    for name, r in left.items():
        why = ", ".join(f"{reason} {count}" for reason, count in r["reasons"].items()) or "-"
        inconclusive.append([name, str(r["rows"]), str(sum(r["reasons"].values())), why])
    return "\n".join([*lines, "", *table_lines(["set", "rows", "INCONCLUSIVE", "why"], inconclusive)]) + "\n"


def main() -> None:
    """Run the benchmark."""
    args = make_parser(__doc__, "relation.json", "data", "runs").parse_args()
    sets: dict[str, dict[str, Any]] = {}
    left: dict[str, dict[str, Any]] = {}
    for name in OPEN:
        rows, verdicts = judged(args.runs, name, rows_of(args.data, name))
        left[name] = {"rows": len(rows), "reasons": reasons(verdicts)}
        if name in SETS:
            sets[name] = measured(rows, verdicts, gold(args.data, name))
            print(name, sets[name]["mean"], sets[name].get("of_found"), flush=True)
    write_results(args.out, {"sets": sets, "inconclusive_reason": left}, table(sets, left))


if __name__ == "__main__":
    main()
