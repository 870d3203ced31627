"""The report as JSON: the same content in plain fields."""

import json
from typing import Any

import numpy as np

from knowhalu.evaluation.tables import ResultTable
from knowhalu.evaluation.tables import as_json as comparison_fields
from knowhalu.report import layout
from knowhalu.report import phrases as say
from knowhalu.report.content import Report, RunSection
from knowhalu.report.items import item_as_json

JSON_START = '{\n "knowhalu_report": 1,'


def report_as_json(report: Report) -> str:
    """Write the report as JSON; what is not a number is null."""
    fields = {
        "knowhalu_report": 1, "version": report.version, "title": report.title, "outcomes": report.outcomes,
        "sample": say.sample_note(report) if report.items else None,
        "overview": [_table(sheet) for sheet in layout.overview_tables(report)],
        "sets": [_section(section) for section in report.sections],
        "calibration": _plain(report.grids), "items": [_plain(item_as_json(item)) for item in report.items],
    }  # fmt: skip
    return json.dumps(fields, indent=1, allow_nan=False) + "\n"


def _section(section: RunSection) -> dict[str, Any]:
    sheets = [
        *layout.metric_tables(section),
        layout.reasons_table(section),
        layout.cost_table(section),
        layout.run_table(section),
    ]
    return {
        "name": section.name, "input": section.input, "rows": section.rows, "dataset": list(section.dataset.facts),
        "warnings": list(section.warnings),
        "headlines": say.headlines(section), "methods": [_plain(vars(entrant)) for entrant in section.entrants],
        "comparison": None if section.comparison is None else comparison_fields(section.comparison),
        "published": _plain(section.published), "breakdowns": _plain(section.breakdowns), "drawn": _plain(section.drawn),
        "tables": [_table(sheet) for sheet in sheets if sheet is not None],
    }  # fmt: skip


def _table(sheet: ResultTable) -> dict[str, Any]:
    return {"title": sheet.title, "head": list(sheet.head), "rows": [list(row) for row in sheet.rows]}


def _plain(value: Any) -> Any:
    """Turn records and arrays into fields and lists."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
