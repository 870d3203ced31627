"""A comparison as tables: for the terminal, as Markdown and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.evaluation.bootstrap import RESAMPLES, Estimate
from knowhalu.evaluation.compare import Comparison, MethodResult, PairedTest
from knowhalu.evaluation.slices import SLICE_METRICS, Breakdown

QUALITY_COLUMNS = {
    "tpr": "TPR",
    "tnr": "TNR",
    "average": "Avg Acc",
    "balanced": "balanced",
    "macro_f1": "macro F1",
    "auc": "ROC-AUC",
    "arp": "abstained +",
    "arn": "abstained -",
}
PROBABILITY_COLUMNS = {"accuracy": "accuracy", "inconclusive": "inconclusive", "f1_hallucinated": "F1 hallucinated",
                 "f1_faithful": "F1 faithful", "pr_auc": "PR-AUC", "ece": "ECE", "brier": "Brier",
                 "coverage_area": "accuracy over coverage"}  # fmt: skip
SPAN_COLUMNS = {"span_precision": "span precision", "span_recall": "span recall", "span_f1": "span F1",
         "wrong_hallucinated": "found wrong in a hallucinated text", "wrong_faithful": "in a faithful one"}  # fmt: skip
SPAN_COUNT_METRICS = ("wrong_hallucinated", "wrong_faithful")
"""Figures that are numbers, not shares."""
COST_COLUMNS = {"calls": "calls", "reused": "kept replies", "prompt_tokens": "prompt tokens", "cached_tokens": "of them cached",
        "completion_tokens": "written tokens", "pairs": "pairs", "searches": "searches", "seconds": "seconds"}  # fmt: skip
COLUMN_NOTES = (
    "In percent, with 95 % bootstrap intervals: {draws:,} resamples of {groups:,} groups; a group has the rows of one source, "
    "question or pair.",
    "TPR: share of the hallucinated that was found; TNR: of the faithful that was passed; Avg Acc: their mean. An abstention "
    "(+: among hallucinated, -: among faithful) counts as neither.",
    "balanced and macro F1: balanced accuracy and F1 of both classes, an abstention settled by its probability.",
    "What every figure means: docs/guide/compare.md.",
)


class ResultTable(NamedTuple):
    """A table: its title, its column heads and its rows, the first column being a name.

    `extra` tells that it says more than most readers ask, `parts` that it has the rows in parts.
    """

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    extra: bool = False
    parts: bool = False


def make_tables(comparison: Comparison) -> list[ResultTable]:
    """Lay out quality, tests against the first method, cost, and what is extra: further figures, and rows in parts."""
    results, first = comparison.results, comparison.results[0].name
    title = f"{comparison.rows:,} rows, {comparison.hallucinated:,} hallucinated"
    shown = [ResultTable(title, ("", "rows", "no verdict", *QUALITY_COLUMNS.values()), [_quality(r) for r in results])]
    if comparison.tests:
        head = ("", "rows", f"only {first} right", "only it right", "p (McNemar)", "p (Holm)", "Avg Acc, difference")
        shown.append(ResultTable(f"Against {first}", head, [_test(t) for t in comparison.tests]))
    used = [n for n in COST_COLUMNS if any(r.cost[n] for r in results)]
    if used:
        shown.append(
            ResultTable("Cost per row with a verdict", ("", *(COST_COLUMNS[n] for n in used)), [_cost(r, used) for r in results])
        )
    return [*shown, *_extra_tables(results), *map(_breakdown_table, comparison.breakdowns)]


def make_notes(comparison: Comparison) -> list[str]:
    """Return what the columns mean, and what must be known of these figures."""
    drawn = COLUMN_NOTES[0].format(draws=RESAMPLES, groups=comparison.groups) if comparison.groups > 1 else "In percent."
    return [drawn, *COLUMN_NOTES[1:], *comparison.notes]


def as_markdown(comparison: Comparison) -> str:
    """Write all tables and remarks as Markdown."""
    return "\n\n".join([tables_as_markdown(make_tables(comparison), comparison.results), *make_notes(comparison)]) + "\n"


def tables_as_markdown(shown: Sequence[ResultTable], results: Sequence[MethodResult]) -> str:
    """Write tables as Markdown, and the commonest failures of each method."""
    parts = []
    for sheet in shown:
        lines = [_line(sheet.head), "|---|" + "---:|" * (len(sheet.head) - 1), *map(_line, sheet.rows)]
        parts.append(f"**{escape_cell(sheet.title)}**\n\n" + "\n".join(lines))
    failures = [f"- {r.name}: {n:,} x {escape_cell(reason)}" for r in results for reason, n in list(r.failures.items())[:3]]
    parts += ["\n".join(failures)] if failures else []
    return "\n\n".join(parts)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain fields; a figure is {value, low, high}."""
    fields: dict[str, Any] = as_plain(asdict(comparison))
    return fields


def write_comparison(comparison: Comparison, folder: Path) -> tuple[Path, Path]:
    """Write `comparison.json` and `comparison.md` into a folder; return their paths."""
    paths = folder / "comparison.json", folder / "comparison.md"
    paths[0].write_text(json.dumps(as_json(comparison), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paths[1].write_text(as_markdown(comparison), encoding="utf-8")
    return paths


def format_percent(figure: Estimate) -> str:
    """Return a share in percent with its interval; a dash where it cannot be given."""
    return format_number(Estimate(*(None if v is None else 100 * v for v in figure)), digits=1)


def format_number(figure: Estimate, digits: int = 2) -> str:
    """Return a figure as it is with its interval; a dash where it cannot be given."""
    if figure.value is None:
        return "-"
    limits = "" if figure.low is None or figure.high is None else f" [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"
    return f"{figure.value:.{digits}f}{limits}"


def result_title(result: MethodResult) -> str:
    """Return a method's name, and that it was fitted on the compared rows where it was."""
    return f"{result.name} (upper bound)" if result.fitted == "the same rows" else result.name


def _extra_tables(results: Sequence[MethodResult]) -> list[ResultTable]:
    """Lay out the figures of probabilities, and of what is marked where some method marks anything."""
    shown = [_metric_table("Probabilities", PROBABILITY_COLUMNS, results)]
    marks = {n: head for n, head in SPAN_COLUMNS.items() if any(r.figures[n].value is not None for r in results)}
    return [*shown, _metric_table("What is found in a text", marks, results)] if marks else shown


def _metric_table(title: str, names: Mapping[str, str], results: Sequence[MethodResult]) -> ResultTable:
    rows = [
        (
            result_title(r),
            *(format_number(r.figures[n]) if n in SPAN_COUNT_METRICS else format_percent(r.figures[n]) for n in names),
        )
        for r in results
    ]
    return ResultTable(title, ("", *names.values()), rows, extra=True)


def _breakdown_table(by: Breakdown) -> ResultTable:
    heads = {**QUALITY_COLUMNS, **PROBABILITY_COLUMNS}
    rows = [
        (
            found.method,
            part.name,
            f"{part.rows:,}",
            f"{part.hallucinated:,}",
            *(format_percent(part.figures[n]) for n in SLICE_METRICS),
        )
        for found in by.results
        for part in found.parts
    ]
    return ResultTable(
        by.title, ("", by.key, "rows", "hallucinated", *(heads[n] for n in SLICE_METRICS)), rows, extra=True, parts=True
    )


def _quality(result: MethodResult) -> tuple[str, ...]:
    abstains = (f"{100 * v:.1f}" if (v := result.figures[n].value) is not None else "-" for n in ("arp", "arn"))
    shares = (format_percent(result.figures[n]) for n in QUALITY_COLUMNS if n not in ("arp", "arn"))
    return result_title(result), f"{result.rows:,}", f"{sum(result.failures.values()):,}", *shares, *abstains


def _test(test: PairedTest) -> tuple[str, ...]:
    difference = format_percent(test.difference)
    sign = "+" if (test.difference.value or 0.0) > 0 else ""
    return (
        test.name,
        f"{test.rows:,}",
        f"{test.first_only:,}",
        f"{test.other_only:,}",
        format_p_value(test.p) if test.rows else "-",
        format_p_value(test.holm) if test.rows else "-",
        sign + difference,
    )


def format_p_value(p: float) -> str:
    """Return a p-value as it is usually written."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _cost(result: MethodResult, names: Sequence[str]) -> tuple[str, ...]:
    return result.name, *("-" if (v := result.cost[n]) is None else f"{v:,.4f}" if n == "seconds" else f"{v:,.1f}" for n in names)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escape_cell, cells)) + " |"


def escape_cell(text: str) -> str:
    """Return a text as it stands in a table: on one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def as_plain(value: Any) -> Any:
    """Return a value as JSON holds it; a figure is {value, low, high}."""
    if isinstance(value, Estimate):
        return value._asdict()
    if isinstance(value, dict):
        return {k: as_plain(v) for k, v in value.items()}
    return [as_plain(v) for v in value] if isinstance(value, list | tuple) else value
