"""An evaluation of a data set as tables: for the terminal, as Markdown and as JSON, no figure without what stands beside it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from knowhalu.evaluation import tables as report
from knowhalu.evaluation.baselines import SOLVED_THRESHOLD, BaselineScores
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import SAME_ROWS
from knowhalu.evaluation.dataset import DatasetEvaluation
from knowhalu.evaluation.subsets import LENGTH_MATCHED, MEAN_OF_PARTS, Subset, SubsetResult
from knowhalu.evaluation.tables import ResultTable, format_percent

BASELINE_COLUMNS = ("best rule", "length rule", "length-matched", "length rule, matched")
SUBSET_METRICS = {"average": "Avg Acc", "balanced": "balanced", "auc": "ROC-AUC"}
BASELINE_NOTE = (
    "best rule and length rule: Avg Acc of rules that know nothing of truth, on the same rows. length-matched: Avg Acc on rows "
    f"of which length tells nothing. A set is warned of where a rule gets {SOLVED_THRESHOLD:.0%} or more."
)


def make_tables(evaluation: DatasetEvaluation) -> list[ResultTable]:
    """Lay out quality with what stands beside it, the subsets, tests and cost."""
    first, *others = report.make_tables(evaluation.comparison)
    names = [result.name for result in evaluation.comparison.results]
    at = first.head.index(report.QUALITY_COLUMNS["average"]) + 1
    rows = [(*row[:at], *_beside(evaluation.beside[name]), *row[at:]) for row, name in zip(first.rows, names, strict=True)]
    facts = evaluation.dataset
    title = f"{facts.name}{f', split {facts.split}' if facts.split else ''}: {first.title}"
    return [
        ResultTable(title, (*first.head[:at], *BASELINE_COLUMNS, *first.head[at:]), rows),
        *_subsets(evaluation.subsets),
        *others,
    ]


def make_notes(evaluation: DatasetEvaluation) -> list[str]:
    """Return what the columns mean, and what must be known of these figures."""
    return [*report.make_notes(evaluation.comparison), BASELINE_NOTE, f"Labels. {evaluation.dataset.labels}."]


def as_markdown(evaluation: DatasetEvaluation) -> str:
    """Write facts, warnings, all tables and remarks as Markdown."""
    facts = evaluation.dataset
    split = f", split {report.escape_cell(facts.split)}" if facts.split else ""
    head = f"# {facts.name}\n\n{facts.about}. {facts.rows:,} rows{split}. Licence: {facts.licence}. SHA-256: {facts.sha256}"
    warned = "\n".join(f"- **Warning:** {report.escape_cell(text)}" for text in evaluation.warnings)
    body = report.tables_as_markdown(make_tables(evaluation), evaluation.comparison.results)
    return "\n\n".join(filter(None, [head, warned, body, *make_notes(evaluation)])) + "\n"


def as_json(evaluation: DatasetEvaluation) -> dict[str, Any]:
    """Return the comparison as plain fields, with `dataset`, `subsets` and `warnings`, and `beside` in each result."""
    fields = report.as_json(evaluation.comparison)
    for result in fields["results"]:
        result["beside"] = report.as_plain(evaluation.beside[result["name"]]._asdict())
    return {
        **fields,
        "dataset": asdict(evaluation.dataset),
        "subsets": [_plain(subset) for subset in evaluation.subsets],
        "warnings": list(evaluation.warnings),
    }


def write_evaluation(evaluation: DatasetEvaluation, folder: Path) -> tuple[Path, Path]:
    """Write `comparison.json` and `comparison.md` into a folder; return their paths."""
    texts = {"comparison.json": json.dumps(as_json(evaluation), indent=1, ensure_ascii=False) + "\n",
             "comparison.md": as_markdown(evaluation)}  # fmt: skip
    for name, text in texts.items():
        beside = folder / f".{name}.tmp"
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, folder / name)
    return folder / "comparison.json", folder / "comparison.md"


def _beside(found: BaselineScores) -> tuple[str, ...]:
    return (
        best_rule_cell(found),
        _value(found.length_average),
        format_percent(found.matched_average),
        _value(found.matched_length_average),
    )


def best_rule_cell(found: BaselineScores) -> str:
    """Return what the best rule gets, which it is, and that it is an upper bound where it was fitted on the same rows."""
    bound = ", upper bound" if found.rule_fitted == SAME_ROWS else ""
    return f"{_value(found.rule_average)} ({found.rule}{bound})" if found.rule else "-"


def _value(figure: Estimate) -> str:
    return format_percent(Estimate(figure.value))


def _subsets(subsets: Sequence[Subset]) -> list[ResultTable]:
    matched = [subset for subset in subsets if subset.name == LENGTH_MATCHED]
    parts = [subset for subset in subsets if subset.name != LENGTH_MATCHED]
    found = [
        ResultTable(f"{s.name}: {s.about}", ("", "rows", *SUBSET_METRICS.values()), [_share(share) for share in s.results])
        for s in matched
    ]
    return [*found, *([_parts(parts)] if parts else [])]


def _share(share: SubsetResult) -> tuple[str, ...]:
    return share.name, f"{share.rows:,}", *(format_percent(share.figures[name]) for name in SUBSET_METRICS)


def _parts(parts: Sequence[Subset]) -> ResultTable:
    """Lay out balanced accuracy, methods against the parts of a set."""
    head = ("", *(part.name if part.name == MEAN_OF_PARTS else f"{part.name} ({part.rows:,})" for part in parts))
    rows = [(share.name, *(_balanced(part, share.name) for part in parts)) for share in parts[0].results]
    return ResultTable("Balanced accuracy by part", head, rows)


def _balanced(part: Subset, name: str) -> str:
    found = part.of(name)
    return format_percent(found.figures["balanced"]) if found else "-"


def _plain(subset: Subset) -> dict[str, Any]:
    return {
        "name": subset.name, "about": subset.about, "rows": subset.rows, "hallucinated": subset.hallucinated,
        "results": [report.as_plain(share._asdict()) for share in subset.results],
    }  # fmt: skip
