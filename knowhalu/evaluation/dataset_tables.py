"""An evaluation of a data set as tables: for the terminal, as Markdown and as JSON, no figure without what stands beside it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from knowhalu.evaluation import tables as report
from knowhalu.evaluation.baselines import SOLVED, Beside
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import SAME
from knowhalu.evaluation.dataset import Evaluation
from knowhalu.evaluation.subsets import LENGTH_MATCHED, MEAN, Share, Subset
from knowhalu.evaluation.tables import Sheet, percent

BESIDE = ("best rule", "length rule", "length-matched", "length rule, matched")
SHOWN = {"average": "Avg Acc", "balanced": "balanced", "auc": "ROC-AUC"}
ABOUT = (
    "best rule and length rule: Avg Acc of rules that know nothing of truth, on the same rows. length-matched: Avg Acc on rows "
    f"of which length tells nothing. A set is warned of where a rule gets {SOLVED:.0%} or more."
)


def sheets(evaluation: Evaluation) -> list[Sheet]:
    """Lay out quality with what stands beside it, the subsets, tests and cost."""
    first, *others = report.sheets(evaluation.comparison)
    names = [result.name for result in evaluation.comparison.results]
    at = first.head.index(report.QUALITY["average"]) + 1
    rows = [(*row[:at], *_beside(evaluation.beside[name]), *row[at:]) for row, name in zip(first.rows, names, strict=True)]
    facts = evaluation.dataset
    title = f"{facts.name}{f', split {facts.split}' if facts.split else ''}: {first.title}"
    return [Sheet(title, (*first.head[:at], *BESIDE, *first.head[at:]), rows), *_subsets(evaluation.subsets), *others]


def remarks(evaluation: Evaluation) -> list[str]:
    """Return what the columns mean, and what must be known of these figures."""
    return [*report.remarks(evaluation.comparison), ABOUT, f"Labels. {evaluation.dataset.labels}."]


def markdown(evaluation: Evaluation) -> str:
    """Write facts, warnings, all tables and remarks as Markdown."""
    facts = evaluation.dataset
    split = f", split {report.cell(facts.split)}" if facts.split else ""
    head = f"# {facts.name}\n\n{facts.about}. {facts.rows:,} rows{split}. Licence: {facts.licence}. SHA-256: {facts.sha256}"
    warned = "\n".join(f"- **Warning:** {report.cell(text)}" for text in evaluation.warnings)
    body = report.tables(sheets(evaluation), evaluation.comparison.results)
    return "\n\n".join(filter(None, [head, warned, body, *remarks(evaluation)])) + "\n"


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the comparison as plain fields, with `dataset`, `subsets` and `warnings`, and `beside` in each result."""
    fields = report.as_json(evaluation.comparison)
    for result in fields["results"]:
        result["beside"] = report.plain(evaluation.beside[result["name"]]._asdict())
    return {
        **fields,
        "dataset": asdict(evaluation.dataset),
        "subsets": [_plain(subset) for subset in evaluation.subsets],
        "warnings": list(evaluation.warnings),
    }


def write(evaluation: Evaluation, folder: Path) -> tuple[Path, Path]:
    """Write `comparison.json` and `comparison.md` into a folder; return their paths."""
    texts = {"comparison.json": json.dumps(as_json(evaluation), indent=1, ensure_ascii=False) + "\n",
             "comparison.md": markdown(evaluation)}  # fmt: skip
    for name, text in texts.items():
        beside = folder / f".{name}.tmp"
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, folder / name)
    return folder / "comparison.json", folder / "comparison.md"


def _beside(found: Beside) -> tuple[str, ...]:
    return best_rule(found), _value(found.length_average), percent(found.matched_average), _value(found.matched_length_average)


def best_rule(found: Beside) -> str:
    """Return what the best rule gets, which it is, and that it is an upper bound where it was fitted on the same rows."""
    bound = ", upper bound" if found.rule_fitted == SAME else ""
    return f"{_value(found.rule_average)} ({found.rule}{bound})" if found.rule else "-"


def _value(figure: Estimate) -> str:
    return percent(Estimate(figure.value))


def _subsets(subsets: Sequence[Subset]) -> list[Sheet]:
    matched = [subset for subset in subsets if subset.name == LENGTH_MATCHED]
    parts = [subset for subset in subsets if subset.name != LENGTH_MATCHED]
    found = [
        Sheet(f"{s.name}: {s.about}", ("", "rows", *SHOWN.values()), [_share(share) for share in s.results]) for s in matched
    ]
    return [*found, *([_parts(parts)] if parts else [])]


def _share(share: Share) -> tuple[str, ...]:
    return share.name, f"{share.rows:,}", *(percent(share.figures[name]) for name in SHOWN)


def _parts(parts: Sequence[Subset]) -> Sheet:
    """Lay out balanced accuracy, methods against the parts of a set."""
    head = ("", *(part.name if part.name == MEAN else f"{part.name} ({part.rows:,})" for part in parts))
    rows = [(share.name, *(_balanced(part, share.name) for part in parts)) for share in parts[0].results]
    return Sheet("Balanced accuracy by part", head, rows)


def _balanced(part: Subset, name: str) -> str:
    found = part.of(name)
    return percent(found.figures["balanced"]) if found else "-"


def _plain(subset: Subset) -> dict[str, Any]:
    return {
        "name": subset.name, "about": subset.about, "rows": subset.rows, "hallucinated": subset.hallucinated,
        "results": [report.plain(share._asdict()) for share in subset.results],
    }  # fmt: skip
