"""The report as Markdown: the same tables and sentences, and of each item what was said and the best evidence."""

import re
from collections.abc import Iterator, Sequence

from knowhalu.evaluation.tables import Sheet, remarks
from knowhalu.report import layout
from knowhalu.report import phrases as say
from knowhalu.report.chart_data import Grid
from knowhalu.report.content import Report, Section
from knowhalu.report.items import Item
from knowhalu.results import Failure
from knowhalu.text.sentences import safe

START = "<!-- KnowHalu report"
_SPACE = re.compile(r"\s+")
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")


def as_markdown(report: Report) -> str:
    """Write the report as Markdown; what a text holds of Markdown or HTML is shown, not obeyed."""
    parts = [f"{START} {report.version} -->", f"# {plain(report.title)}"]
    parts += map(_table, layout.overview_sheets(report))
    for section in report.sections:
        parts += _section(section)
    parts += ["## Calibration", *(_grid(name, grid) for name, grid in report.grids.items())] if report.grids else []
    parts += ["## Items", say.sample_note(report), *map(_item, report.items)] if report.items else []
    return "\n\n".join(parts) + "\n"


def _grid(name: str, grid: Grid) -> str:
    if grid.best is None:
        return f"{plain(name)}: no pair of thresholds was tried."
    i, j = grid.best
    places = f"{grid.q1[i]:.2f} (delta1) and {grid.q2[j]:.2f} (delta2)"
    return f"{plain(name)}: best average accuracy {100 * grid.average[i, j]:.1f} %, at the quantiles {places}."


def plain(text: str, most: int = 600) -> str:
    """Return a text on one line that Markdown shows as it is."""
    line = _SPACE.sub(" ", safe(text)).strip()
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return _SPECIAL.sub(r"\\\1", line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _section(section: Section) -> Iterator[str]:
    yield f"## {plain(section.name)}"
    yield "\n".join(plain(line) for line in say.headlines(section)) or f"{section.rows:,} rows."
    if section.dataset.facts:
        yield plain(" · ".join(section.dataset.facts))
    if section.warnings:
        yield "\n".join(f"- {plain(line)}" for line in section.warnings)
    published, cost = layout.published_sheet(section), layout.cost_sheet(section)
    yield from map(_table, [*layout.figure_sheets(section), *([published] if published is not None else [])])
    if section.comparison is not None:
        known = set(section.warnings)
        yield "\n\n".join(plain(line) for line in remarks(section.comparison) if line not in known)
    if section.breakdowns:
        yield plain(layout.LEGEND)
        yield from (_table(layout.breakdown_sheet(breakdown)) for breakdown in section.breakdowns)
    if (why := layout.why_sheet(section)) is not None:
        yield _table(why)
        yield "\n".join(f"- {plain(says)}: {plain(action)}" for says, action in say.actions(section))
    yield from map(_table, [*([cost] if cost is not None else []), layout.run_sheet(section)])


def _table(sheet: Sheet) -> str:
    lines = [_line(sheet.head), "|---|" + "---:|" * (len(sheet.head) - 1), *map(_line, sheet.rows)]
    return f"**{plain(sheet.title)}**\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(plain, cells)) + " |"


def _item(item: Item) -> str:
    outcome = item.outcome
    head = f"- **{item.state}**, {plain(item.run)}, {plain(item.method)}, {plain(outcome.id, 100)}"
    gold = f", gold: {item.sample.label}" if item.sample is not None and item.sample.label is not None else ""
    if isinstance(outcome, Failure):
        return f"{head}{gold}: no verdict: {plain(f'{outcome.stage}: {outcome.reason}')}"
    why = say.why(item)
    lines = [f"{head}{gold}: {outcome.label.lower()}{f' ({why})' if why else ''}, P(hallucinated) {outcome.probability:.3f}"]
    lines += [f"  - Next: {plain(outcome.open.next_action)}"] if outcome.open is not None else []
    if item.sample is not None and item.sample.question:
        lines.append(f"  - Question: {plain(item.sample.question)}")
    lines.append(f"  - Response: {plain(say.snippet(item))}")
    for e in sorted(outcome.evidence, key=lambda e: -e.probability)[:2]:
        source = plain(e.title or e.document or e.passage, 100)
        where = f"characters {e.document_start} to {e.document_start + len(e.quote)}"
        lines.append(f"  - {e.relation} ({e.probability:.2f}), {source}, {where}: {plain(e.quote)}")
    return "\n".join(lines)
