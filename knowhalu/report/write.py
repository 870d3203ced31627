"""The report as Markdown and JSON, and the files of a report: written whole, and never over a file that is not a report."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError
from knowhalu.evaluation.result_tables import as_json, make_notes
from knowhalu.evaluation.tables import ResultTable, as_json_text, as_plain, table_as_fields, table_as_markdown
from knowhalu.io.output_files import check_output_path, write_text
from knowhalu.report import layout, page
from knowhalu.report.chart_data import AccuracyGrid
from knowhalu.report.content import Report, RunSection
from knowhalu.report.items import ReportItem, item_as_json
from knowhalu.results import Failure
from knowhalu.text.probabilities import describe_probability, format_probability
from knowhalu.text.sentences import sanitize

MARKDOWN_START = "<!-- KnowHalu report"
_SPACE = re.compile(r"\s+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")
JSON_START = '{\n "knowhalu_report": 1,'
FORMAT_STARTS = {"html": page.HTML_START, "markdown": MARKDOWN_START, "json": JSON_START}
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
            problem = f"{FORMAT_OPTIONS[form]} writes {FORMAT_NAMES[form]}, which does not fit the suffix"
            remedy = f"For {FORMAT_NAMES[named]}: {FORMAT_OPTIONS[named]} {path}"
            other = f"For {FORMAT_NAMES[form]}, give {FORMAT_OPTIONS[form]} a file of another ending"
            raise InputError(f"{path}: {problem}. {remedy}. {other}.")


def write_reports(report: Report, outputs: Mapping[str, Path]) -> None:
    """Make every form before any is written."""
    makers = {"html": page.report_as_html, "markdown": report_as_markdown, "json": report_as_json}
    texts = [(path, makers[form](report)) for form, path in outputs.items()]
    for path, text in texts:
        write_text(path, text)


def report_as_json(report: Report) -> str:
    """Return the report as JSON; unknown numbers are null."""
    fields = {
        "knowhalu_report": 1, "version": report.version, "title": report.title, "outcomes": report.outcomes,
        "sample": layout.sample_note(report) if report.items else None,
        "overview": [table_as_fields(table) for table in layout.overview_tables(report)],
        "sets": [_section_as_json(section) for section in report.sections],
        "calibration": as_plain(report.grids), "items": [as_plain(item_as_json(item)) for item in report.items],
    }  # fmt: skip
    return as_json_text(fields, ascii_only=True)


def _section_as_json(section: RunSection) -> dict[str, Any]:
    further = (layout.reasons_table(section), layout.cost_table(section), layout.run_table(section))
    return {
        "name": section.name, "input": section.input, "rows": section.rows, "dataset": list(section.dataset.facts),
        "warnings": list(section.warnings),
        "headlines": layout.headlines(section), "methods": [as_plain(entrant) for entrant in section.entrants],
        "comparison": section.comparison and as_json(section.comparison),
        "published": as_plain(section.published), "breakdowns": as_plain(section.breakdowns), "drawn": as_plain(section.drawn),
        "tables": [table_as_fields(table) for table in (*layout.metric_tables(section), *further) if table is not None],
    }  # fmt: skip


def report_as_markdown(report: Report) -> str:
    """Return the report in Markdown; Markdown and HTML inside texts are escaped."""
    parts = [f"{MARKDOWN_START} {report.version} -->", f"# {escape_markdown(report.title)}"]
    parts += _tables(layout.overview_tables(report))
    for section in report.sections:
        parts += _section(section)
    parts += ["## Calibration", *(_grid(name, grid) for name, grid in report.grids.items())] if report.grids else []
    parts += ["## Items", layout.sample_note(report), *map(_item, report.items)] if report.items else []
    return "\n\n".join(parts) + "\n"


def _grid(name: str, grid: AccuracyGrid) -> str:
    if grid.best is None:
        return f"{escape_markdown(name)}: no pair of thresholds was tried."
    i, j = grid.best
    places = f"{grid.q1[i]:.2f} (delta1) and {grid.q2[j]:.2f} (delta2)"
    return f"{escape_markdown(name)}: best average accuracy {100 * grid.average[i, j]:.1f} %, at the quantiles {places}."


def escape_markdown(text: str, most: int = 600) -> str:
    """Return a text on one line, escaped so that Markdown shows it as it is."""
    line = _SPACE.sub(" ", sanitize(text)).strip()
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _section(section: RunSection) -> Iterator[str]:
    yield f"## {escape_markdown(section.name)}"
    yield "\n".join(escape_markdown(line) for line in layout.headlines(section)) or f"{section.rows:,} rows."
    if section.dataset.facts:
        yield escape_markdown(" · ".join(section.dataset.facts))
    if section.warnings:
        yield "\n".join(f"- {escape_markdown(line)}" for line in section.warnings)
    yield from _tables([*layout.metric_tables(section), layout.published_scores_table(section)])
    if section.comparison is not None:
        known = set(section.warnings)
        yield "\n\n".join(escape_markdown(line) for line in make_notes(section.comparison) if line not in known)
    if section.breakdowns:
        yield escape_markdown(layout.LEGEND)
        yield from _tables(map(layout.breakdown_table, section.breakdowns))
    if (reasons := layout.reasons_table(section)) is not None:
        yield from _tables([reasons])
        yield "\n".join(f"- {escape_markdown(says)}: {escape_markdown(action)}" for says, action in layout.next_actions(section))
    yield from _tables([layout.cost_table(section), layout.run_table(section)])


def _tables(tables: Iterable[ResultTable | None]) -> Iterator[str]:
    return (table_as_markdown(table, escape_markdown) for table in tables if table is not None)


def _item(item: ReportItem) -> str:
    outcome = item.outcome
    head = f"- **{item.state}**, {escape_markdown(item.run)}, {escape_markdown(item.method)}, {escape_markdown(outcome.id, 100)}"
    gold = f", gold: {item.sample.label}" if item.sample is not None and item.sample.label is not None else ""
    if isinstance(outcome, Failure):
        return f"{head}{gold}: no verdict: {escape_markdown(f'{outcome.stage}: {outcome.reason}')}"
    why = layout.reason_text(item)
    p = describe_probability(outcome.probability, digits=3)
    lines = [f"{head}{gold}: {outcome.label.lower()}{f' ({why})' if why else ''}, {p}"]
    if outcome.inconclusive_reason is not None:
        lines.append(f"  - Next: {escape_markdown(outcome.inconclusive_reason.next_action)}")
    if item.sample is not None and item.sample.question:
        lines.append(f"  - Question: {escape_markdown(item.sample.question)}")
    lines.append(f"  - Response: {escape_markdown(layout.snippet(item))}")
    for e in sorted(outcome.evidence, key=lambda e: -(e.probability or 0.0))[:2]:
        source = escape_markdown(e.title or e.document or e.passage, 100)
        where = f"characters {e.document_start} to {e.document_start + len(e.quote)}"
        lines.append(f"  - {e.relation} ({format_probability(e.probability)}), {source}, {where}: {escape_markdown(e.quote)}")
    return "\n".join(lines)
