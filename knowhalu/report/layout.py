"""The tables of a report, for the page and for Markdown."""

from collections.abc import Sequence

from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import Comparison
from knowhalu.evaluation.metrics import METRICS
from knowhalu.evaluation.result_tables import COST_COLUMNS, QUALITY_COLUMNS, make_tables
from knowhalu.evaluation.tables import ResultTable, format_cost, format_percent
from knowhalu.report.content import Report, RunSection, is_trivial
from knowhalu.report.stored_results import BreakdownRates, PublishedScore, SliceRates
from knowhalu.types import InconclusiveReason

COST_TITLE = "Cost"
LEADING_METRICS = ("average", "balanced", "macro_f1")
"""Metrics by which published systems are ordered: the first that they have, or else any other."""
MAX_PUBLISHED = 5
"""Published figures in the chart at most; the table has all."""
OVERVIEW_TITLE = "Avg Acc of all sets"
MAX_METHODS_ACROSS = 6
"""Methods side by side in a table of sets by methods at most."""
REASONS_TITLE = "Reasons of hallucinated and inconclusive verdicts"
REASON_TITLES: dict[str, str] = {
    "contradiction": "contradicted", "neutral": "not in the sources", "hallucinated": "hallucinated, relation unknown",
    **{str(reason): f"open: {reason.description}" for reason in InconclusiveReason}, "open": "open, reason unknown",
}  # fmt: skip
LEGEND = "TPR / TNR in percent (rows): the share of hallucinated rows that were flagged, and of faithful rows that passed."


def metric_tables(section: RunSection) -> list[ResultTable]:
    """Return the tables of the comparison except that of cost."""
    if section.comparison is None:
        return [_counts(section)]
    found = [sheet for sheet in make_tables(section.comparison) if not sheet.title.startswith(COST_TITLE)]
    return [found[0], *section.dataset.tables, *found[1:]]


def published_scores_table(section: RunSection, most: int | None = None) -> ResultTable | None:
    """Return published figures next to ours, of the `most` best systems if given; None where none is known."""
    if section.comparison is None or not section.published:
        return None
    given = {p.figure for p in section.published}
    names = [name for name in (*LEADING_METRICS, *(f for f in METRICS if f not in LEADING_METRICS)) if name in given]
    ours = [(r.title, "", *(_value(r.figures.get(n)) for n in names), "measured here") for r in section.comparison.results]
    systems = _systems(section.published, names[0])[:most]
    known = {(p.system, p.source, p.figure): f"{100 * p.value:.1f}" for p in section.published}
    theirs = [(s, "published", *(known.get((s, source, n), "-") for n in names), source) for s, source in systems]
    title = "Beside published figures" if most is None else f"Beside the {most} best published figures"
    return ResultTable(title, ("", "", *(QUALITY_COLUMNS.get(n, n) for n in names), "source"), [*ours, *theirs])


def _systems(given: Sequence[PublishedScore], figure: str) -> list[tuple[str, str]]:
    """Return systems with their sources, the best by a metric first."""
    best: dict[tuple[str, str], float] = {}
    for p in given:
        key = p.system, p.source
        best[key] = max(best.get(key, -1.0), p.value if p.figure == figure else -1.0)
    return sorted(best, key=lambda key: -best[key])


def breakdown_table(breakdown: BreakdownRates) -> ResultTable:
    """Return a breakdown: slices (rows) by methods (columns)."""
    methods = list(dict.fromkeys(m for part in breakdown.parts.values() for m in part))
    rows = [(name, *(_part(part.get(m)) for m in methods)) for name, part in breakdown.parts.items()]
    return ResultTable(breakdown.title, ("", *methods), rows)


def cost_table(section: RunSection) -> ResultTable | None:
    """Return cost and time of a row with every method; None where nothing is known."""
    results = section.comparison.results if section.comparison is not None else ()
    costs = {result.name: result.cost for result in results}
    used = [n for n in COST_COLUMNS if any(cost.get(n) for cost in costs.values())]
    times = section.drawn.seconds
    if not used and not times:
        return None
    names = [e.name for e in section.entrants if e.name in costs or e.name in times]
    columns = {"": names, **{COST_COLUMNS[n]: [format_cost(n, costs.get(m, {}).get(n)) for m in names] for n in used}}
    if "cached_tokens" in used:
        columns["cached share"] = [_cached(costs.get(m, {})) for m in names]
    if times:
        columns["median time, s"] = [f"{times[m].median:.3f}" if m in times else "-" for m in names]
        columns["95 % under, s"] = [f"{times[m].slow:.3f}" if m in times else "-" for m in names]
    return ResultTable("Cost and time per row with a verdict", tuple(columns), list(zip(*columns.values(), strict=True)))


def overview_tables(report: Report) -> list[ResultTable]:
    """Return Avg Acc, sets by methods, next to the best trivial rule of each set; no table for a single set.

    Many methods are divided among several tables, so that each fits the page.
    """
    compared = [(s.name, s.comparison) for s in report.sections if s.comparison is not None]
    if len(compared) < 2:
        return []
    results = [r for _, c in compared for r in c.results]
    names = list(dict.fromkeys(r.name for r in results if not is_trivial(r.method))) or list(
        dict.fromkeys(r.name for r in results)
    )
    tables = -(-len(names) // MAX_METHODS_ACROSS)
    shares = [names[len(names) * i // tables : len(names) * (i + 1) // tables] for i in range(tables)]
    titles = [f"{OVERVIEW_TITLE}, {i} of {tables}" if tables > 1 else OVERVIEW_TITLE for i in range(1, tables + 1)]
    return [
        ResultTable(title, ("", "rows", *share, "best trivial rule"), [
            (name, f"{c.rows:,}", *(_result_of(method, c) for method in share), _best_rule(c)) for name, c in compared
        ])
        for title, share in zip(titles, shares, strict=True)
    ]  # fmt: skip


def run_table(section: RunSection) -> ResultTable:
    """Return the hashes of the parts that decided the results of every method."""
    keys = list(dict.fromkeys(key for e in section.entrants for key in e.parts))
    rows = [(e.name, e.method, *(e.parts.get(key, "-")[:16] for key in keys)) for e in section.entrants]
    return ResultTable("What ran", ("", "method", *keys), rows)


def reasons_table(section: RunSection) -> ResultTable | None:
    """Return counts of inconclusive verdicts by reason, and of hallucinated ones by the relation of the sources.

    None where no outcome has a reason or relation.
    """
    names = [name for name in REASON_TITLES if any(name in e.why for e in section.entrants)]
    if not set(names) - {"open", "hallucinated"}:
        return None
    rows = [
        (e.name, *(f"{e.why.get(name, 0):,}" for name in names)) for e in section.entrants if e.why and not is_trivial(e.method)
    ]
    return ResultTable(REASONS_TITLE, ("", *(REASON_TITLES[name] for name in names)), rows)


def interval_values(section: RunSection) -> list[tuple[str, Estimate]]:
    """Return the Avg Acc of every method with its interval, then the published ones."""
    if section.comparison is None:
        return []
    ours = [(r.title, r.figures["average"]) for r in section.comparison.results]
    return [*ours, *((f"{p.system} (published)", Estimate(p.value)) for p in published_averages(section))]


def published_averages(section: RunSection) -> list[PublishedScore]:
    """Return the best published figures that are Avg Acc, the best first."""
    found = [p for p in section.published if p.figure == "average"]
    return sorted(found, key=lambda p: -p.value)[:MAX_PUBLISHED]


def _counts(section: RunSection) -> ResultTable:
    states = list(dict.fromkeys(state for e in section.entrants for state in e.states))
    rows = [(e.name, *(f"{e.states.get(s, 0):,}" for s in states)) for e in section.entrants]
    return ResultTable(f"{section.rows:,} rows without gold labels", ("", *states), rows)


def _part(part: SliceRates | None) -> str:
    return "-" if part is None else f"{_share(part.tpr)} / {_share(part.tnr)} ({part.rows:,})"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _value(figure: Estimate | None) -> str:
    return "-" if figure is None else format_percent(figure)


def _cached(cost: dict[str, float | None]) -> str:
    prompt, cached = cost.get("prompt_tokens"), cost.get("cached_tokens")
    return f"{100 * (cached or 0.0) / prompt:.1f} %" if prompt else "-"


def _result_of(name: str, comparison: Comparison) -> str:
    return next((format_percent(r.figures["average"]) for r in comparison.results if r.name == name), "-")


def _best_rule(comparison: Comparison) -> str:
    rules = [r for r in comparison.results if is_trivial(r.method) and r.figures["average"].value is not None]
    best = max(rules, key=lambda r: r.figures["average"].value or 0.0, default=None)
    if best is None:
        return "-"
    bound = ", upper bound" if best.title != best.name else ""
    return f"{_share(best.figures['average'].value)} ({best.name}{bound})"


def split_cells(row: Sequence[str]) -> list[tuple[str, str]]:
    """Split every cell of a row into its value and the interval or number that follows."""
    return [(value, f"{mark}{rest}") for value, mark, rest in (_split_cell(cell) for cell in row)]


def _split_cell(cell: str) -> tuple[str, str, str]:
    for mark in (" [", " ("):
        if mark in cell and cell[-1] in "])" and cell[:1] in "-0123456789<+":
            return cell.partition(mark)
    return cell, "", ""
