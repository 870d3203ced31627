"""The report as Markdown: the same tables and sentences as the page, and for each item the verdict and the best evidence."""

import re
from collections.abc import Iterator

from knowhalu.evaluation.result_tables import make_notes
from knowhalu.evaluation.tables import ResultTable, table_as_markdown
from knowhalu.report import layout
from knowhalu.report import phrases as say
from knowhalu.report.chart_data import AccuracyGrid
from knowhalu.report.content import Report, RunSection
from knowhalu.report.items import ReportItem
from knowhalu.results import Failure
from knowhalu.text.sentences import sanitize

MARKDOWN_START = "<!-- KnowHalu report"
_SPACE = re.compile(r"\s+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")


def report_as_markdown(report: Report) -> str:
    """Return the report in Markdown; Markdown and HTML inside texts are escaped."""
    parts = [f"{MARKDOWN_START} {report.version} -->", f"# {escape_markdown(report.title)}"]
    parts += map(_table, layout.overview_tables(report))
    for section in report.sections:
        parts += _section(section)
    parts += ["## Calibration", *(_grid(name, grid) for name, grid in report.grids.items())] if report.grids else []
    parts += ["## Items", say.sample_note(report), *map(_item, report.items)] if report.items else []
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
    yield "\n".join(escape_markdown(line) for line in say.headlines(section)) or f"{section.rows:,} rows."
    if section.dataset.facts:
        yield escape_markdown(" · ".join(section.dataset.facts))
    if section.warnings:
        yield "\n".join(f"- {escape_markdown(line)}" for line in section.warnings)
    published, cost = layout.published_scores_table(section), layout.cost_table(section)
    yield from map(_table, [*layout.metric_tables(section), *([published] if published is not None else [])])
    if section.comparison is not None:
        known = set(section.warnings)
        yield "\n\n".join(escape_markdown(line) for line in make_notes(section.comparison) if line not in known)
    if section.breakdowns:
        yield escape_markdown(layout.LEGEND)
        yield from (_table(layout.breakdown_table(breakdown)) for breakdown in section.breakdowns)
    if (why := layout.reasons_table(section)) is not None:
        yield _table(why)
        yield "\n".join(f"- {escape_markdown(says)}: {escape_markdown(action)}" for says, action in say.next_actions(section))
    yield from map(_table, [*([cost] if cost is not None else []), layout.run_table(section)])


def _table(table: ResultTable) -> str:
    return table_as_markdown(table, escape_markdown)


def _item(item: ReportItem) -> str:
    outcome = item.outcome
    head = f"- **{item.state}**, {escape_markdown(item.run)}, {escape_markdown(item.method)}, {escape_markdown(outcome.id, 100)}"
    gold = f", gold: {item.sample.label}" if item.sample is not None and item.sample.label is not None else ""
    if isinstance(outcome, Failure):
        return f"{head}{gold}: no verdict: {escape_markdown(f'{outcome.stage}: {outcome.reason}')}"
    why = say.reason_text(item)
    lines = [f"{head}{gold}: {outcome.label.lower()}{f' ({why})' if why else ''}, P(hallucinated) {outcome.probability:.3f}"]
    lines += (
        [f"  - Next: {escape_markdown(outcome.inconclusive_reason.next_action)}"]
        if outcome.inconclusive_reason is not None
        else []
    )
    if item.sample is not None and item.sample.question:
        lines.append(f"  - Question: {escape_markdown(item.sample.question)}")
    lines.append(f"  - Response: {escape_markdown(say.snippet(item))}")
    for e in sorted(outcome.evidence, key=lambda e: -e.probability)[:2]:
        source = escape_markdown(e.title or e.document or e.passage, 100)
        where = f"characters {e.document_start} to {e.document_start + len(e.quote)}"
        lines.append(f"  - {e.relation} ({e.probability:.2f}), {source}, {where}: {escape_markdown(e.quote)}")
    return "\n".join(lines)
