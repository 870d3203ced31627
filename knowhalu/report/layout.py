"""The tables and sentences of a report, for all of its forms."""

import re
from collections.abc import Sequence

from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import Comparison, MethodResult
from knowhalu.evaluation.metrics import METRICS
from knowhalu.evaluation.result_tables import COST_COLUMNS, QUALITY_COLUMNS, make_tables
from knowhalu.evaluation.tables import ResultTable, format_cost, format_percent
from knowhalu.report.content import Report, RunSection, is_trivial
from knowhalu.report.items import ReportItem
from knowhalu.report.stored_results import BreakdownRates, PublishedScore, SliceRates
from knowhalu.text.probabilities import format_probability
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
_SPACE = re.compile(r"\s+")


def metric_tables(section: RunSection) -> list[ResultTable]:
    """Return the tables of the comparison except that of cost."""
    if section.comparison is None:
        return [_counts(section)]
    first, *others = [table for table in make_tables(section.comparison) if not table.title.startswith(COST_TITLE)]
    return [first, *section.dataset.tables, *others]


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
    names = list(dict.fromkeys(r.name for r in [r for r in results if not is_trivial(r.method)] or results))
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
    averages = [p for p in section.published if p.figure == "average"]
    return sorted(averages, key=lambda p: -p.value)[:MAX_PUBLISHED]


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
    best = max(rules, key=_average, default=None)
    if best is None:
        return "-"
    bound = ", upper bound" if best.title != best.name else ""
    return f"{_share(best.figures['average'].value)} ({best.name}{bound})"


def split_cells(row: Sequence[str]) -> list[tuple[str, str]]:
    """Split every cell of a row into its value and the interval or number that follows."""
    return [(value, f"{mark}{rest}") for value, mark, rest in map(_split_cell, row)]


def _split_cell(cell: str) -> tuple[str, str, str]:
    for mark in (" [", " ("):
        if mark in cell and cell[-1] in "])" and cell[:1] in "-0123456789<+":
            return cell.partition(mark)
    return cell, "", ""


def headlines(section: RunSection) -> list[str]:
    """Return the result of the first method, and whether any method is clearly above the trivial rules."""
    results = section.comparison.results if section.comparison is not None else ()
    known = [r for r in results if r.figures["average"].value is not None]
    ours = [r for r in known if not is_trivial(r.method)]
    if not ours:
        return []
    lines = [f"{ours[0].name}: Avg Acc {format_percent(ours[0].figures['average'])} %."]
    rules = [r for r in known if is_trivial(r.method)]
    if not rules:
        return lines
    best = max(rules, key=_average)
    clear = [r.name for r in ours if (low := r.figures["average"].low) is not None and low > _average(best)]
    rule = f"{best.title}, gets {100 * _average(best):.1f} %"
    verdict = f"Clearly above it: {', '.join(clear)}." if clear else "No method here is clearly above it."
    return [*lines, f"The best trivial rule, {rule}. {verdict}"]


def trivial_names(report: Report) -> list[str]:
    """Return the names of trivial rules, in alphabetical order."""
    compared = {r.name: r.method for s in report.sections if s.comparison is not None for r in s.comparison.results}
    methods = compared | {e.name: e.method for s in report.sections for e in s.entrants}
    return sorted(name for name, method in methods.items() if is_trivial(method))


def method_count(report: Report) -> int:
    """Count the methods that are not trivial, by name."""
    return len({e.name for s in report.sections for e in s.entrants if not is_trivial(e.method)})


def failure_count(report: Report) -> int:
    """Count the checks that ended without a verdict."""
    return sum(sum(e.failures.values()) for s in report.sections for e in s.entrants)


def sample_note(report: Report) -> str:
    """Return a sentence on the choice of the items and their number."""
    shown = len(report.items)
    if shown == report.outcomes:
        return f"All {shown:,} outcomes, wrong ones first, then inconclusive ones, then others."
    return (
        f"{shown:,} of {report.outcomes:,} outcomes, distributed over runs and methods: the most confidently wrong ones first, "
        "then inconclusive ones, failed ones and the least confident correct ones. They are not a representative sample; the "
        "metrics above cover all rows."
    )


def shared_warnings(report: Report) -> list[tuple[str, str]]:
    """Return every warning of several runs once, with the names of these runs."""
    about: dict[str, list[str]] = {}
    for section in report.sections if len(report.sections) > 1 else ():
        for line in section.warnings:
            about.setdefault(line, []).append(section.name)
    return [(line, ", ".join(names)) for line, names in about.items()]


def item_filters(report: Report) -> list[tuple[str, str, list[str]]]:
    """Return the filters of items with more than one value: field, title, values."""
    fields = (("run", "Set", "run"), ("method", "Method", "method"), ("kind", "Kind", "type"), ("why", "Why", "why"))
    known = [(name, title, {getattr(i, attribute) for i in report.items}) for name, title, attribute in fields]
    return [(name, title, sorted(v for v in values if v)) for name, title, values in known if len(values) > 1]


def snippet(item: ReportItem) -> str:
    """Return the beginning of an item's text on one line."""
    text = item.sample.response if item.sample is not None else "".join(p.text for s in item.stretches for p in s.pieces)
    line = _SPACE.sub(" ", text[:400]).strip() or item.outcome.id[:100]
    return line if len(line) <= 140 else f"{line[:139]}…"


def verdict_text(item: ReportItem) -> str:
    """Return the verdict of an item in words, with the probability of being hallucinated."""
    verdict = item.verdict
    if verdict is None:
        return "no verdict"
    words = {True: "hallucinated", False: "faithful", None: "inconclusive"}[verdict.hallucinated]
    return f"{words} ({format_probability(verdict.probability)})"


def reason_text(item: ReportItem) -> str:
    """Return in words the reason of an inconclusive verdict, or the relation of the sources; empty where not known."""
    return item.verdict.why if item.verdict is not None else ""


def next_actions(section: RunSection) -> list[tuple[str, str]]:
    """Return every reason of inconclusive verdicts in words, with the next action."""
    names = {name for entrant in section.entrants for name in entrant.why}
    return [(reason.description, reason.next_action) for reason in InconclusiveReason if reason in names]


def item_cost_line(item: ReportItem) -> str:
    """Return the cost of a check, and the place of the whole outcome."""
    verdict = item.verdict
    costs = [f"{n:,} {name.replace('_', ' ')}" for name, n in verdict.usage.model_dump().items() if n] if verdict else []
    if verdict is not None and (total := verdict.seconds.get("total")) is not None:
        costs.append(f"{total:.2f} s")
    return f"{', '.join(costs) or 'no cost recorded'} · {item.place}"


def _average(result: MethodResult) -> float:
    return result.figures["average"].value or 0.0
