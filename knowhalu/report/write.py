"""The report as JSON, and the files of a report: written whole or not at all, and never over a file that is not a report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError
from knowhalu.evaluation.result_tables import as_json
from knowhalu.evaluation.tables import as_json_text, as_plain, table_as_fields
from knowhalu.io.output_files import check_output_path, write_text
from knowhalu.report import layout, markdown, page
from knowhalu.report import phrases as say
from knowhalu.report.content import Report, RunSection
from knowhalu.report.items import item_as_json

JSON_START = '{\n "knowhalu_report": 1,'
FORMAT_STARTS = {"html": page.HTML_START, "markdown": markdown.MARKDOWN_START, "json": JSON_START}
"""The beginning of a report in each form."""
SUFFIX_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
FORMAT_OPTIONS = {"html": "--out", "markdown": "--markdown", "json": "--json"}
FORMAT_NAMES = {"html": "an HTML page", "markdown": "Markdown", "json": "JSON"}


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path]) -> None:
    """Raise InputError for outputs that are equal, an input, a file that is not a report, or have the suffix of another form."""
    places = [path.resolve() for path in outputs.values()]
    for form, path in outputs.items():
        if places.count(path.resolve()) > 1:
            raise InputError(f"{path}: is named for two forms of the report. Give each its own file.")
        check_output_path(path, FORMAT_STARTS[form], f"a report of KnowHalu as {form}", inputs)
        named = SUFFIX_FORMATS.get(path.suffix.lower(), form)
        if named != form:
            other = f"For {FORMAT_NAMES[form]}, give {FORMAT_OPTIONS[form]} a file of another ending."
            remedy = f"For {FORMAT_NAMES[named]}: {FORMAT_OPTIONS[named]} {path}. {other}"
            raise InputError(
                f"{path}: {FORMAT_OPTIONS[form]} writes {FORMAT_NAMES[form]}, which does not fit the suffix. {remedy}"
            )


def write_reports(report: Report, outputs: Mapping[str, Path]) -> None:
    """Make every form before any is written."""
    makers = {"html": page.report_as_html, "markdown": markdown.report_as_markdown, "json": report_as_json}
    for path, text in [(path, makers[form](report)) for form, path in outputs.items()]:
        write_text(path, text)


def report_as_json(report: Report) -> str:
    """Return the report as JSON; unknown numbers are null."""
    fields = {
        "knowhalu_report": 1, "version": report.version, "title": report.title, "outcomes": report.outcomes,
        "sample": say.sample_note(report) if report.items else None,
        "overview": [table_as_fields(sheet) for sheet in layout.overview_tables(report)],
        "sets": [_section(section) for section in report.sections],
        "calibration": as_plain(report.grids), "items": [as_plain(item_as_json(item)) for item in report.items],
    }  # fmt: skip
    return as_json_text(fields, ascii_only=True)


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
        "headlines": say.headlines(section), "methods": [as_plain(entrant) for entrant in section.entrants],
        "comparison": section.comparison and as_json(section.comparison),
        "published": as_plain(section.published), "breakdowns": as_plain(section.breakdowns), "drawn": as_plain(section.drawn),
        "tables": [table_as_fields(sheet) for sheet in sheets if sheet is not None],
    }  # fmt: skip
