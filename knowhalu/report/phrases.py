"""The sentences of a report: on a run, on the choice of items, and on one item."""

import re

from knowhalu.evaluation.compare import MethodResult
from knowhalu.evaluation.tables import format_percent
from knowhalu.report.content import Report, RunSection, is_trivial
from knowhalu.report.items import ReportItem
from knowhalu.types import InconclusiveReason

_SPACE = re.compile(r"\s+")


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
    found = [(name, title, list(dict.fromkeys(getattr(i, attribute) for i in report.items))) for name, title, attribute in fields]
    return [(name, title, sorted(v for v in values if v)) for name, title, values in found if len(values) > 1]


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
    return f"{words} ({verdict.probability:.2f})"


def reason_text(item: ReportItem) -> str:
    """Return in words the reason of an inconclusive verdict, or the relation of the sources; empty where not known."""
    return item.verdict.why if item.verdict is not None else ""


def next_actions(section: RunSection) -> list[tuple[str, str]]:
    """Return every reason of inconclusive verdicts in words, with the next action."""
    found = {name for entrant in section.entrants for name in entrant.why}
    return [(reason.description, reason.next_action) for reason in InconclusiveReason if reason in found]


def item_cost_line(item: ReportItem) -> str:
    """Return the cost of a check, and the place of the whole outcome."""
    verdict = item.verdict
    counts = [f"{n:,} {name.replace('_', ' ')}" for name, n in verdict.usage.model_dump().items() if n] if verdict else []
    total = verdict.seconds.get("total") if verdict else None
    return " · ".join(
        [", ".join([*counts, *([f"{total:.2f} s"] if total is not None else [])]) or "no cost recorded", item.place]
    )


def _average(result: MethodResult) -> float:
    return result.figures["average"].value or 0.0
