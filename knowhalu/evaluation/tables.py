"""A comparison as tables: for the terminal, as Markdown and as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.evaluation.bootstrap import DRAWS, Estimate
from knowhalu.evaluation.compare import Against, Comparison, Result
from knowhalu.evaluation.slices import SHOWN, Breakdown

QUALITY = {"tpr": "TPR", "tnr": "TNR", "average": "Avg Acc", "balanced": "balanced", "macro_f1": "macro F1", "auc": "ROC-AUC",
           "arp": "abstained +", "arn": "abstained -"}  # fmt: skip
PROBABILITIES = {"accuracy": "accuracy", "inconclusive": "inconclusive", "f1_hallucinated": "F1 hallucinated",
                 "f1_faithful": "F1 faithful", "pr_auc": "PR-AUC", "ece": "ECE", "brier": "Brier",
                 "coverage_area": "accuracy over coverage"}  # fmt: skip
MARKS = {"span_precision": "span precision", "span_recall": "span recall", "span_f1": "span F1",
         "wrong_hallucinated": "found wrong in a hallucinated text", "wrong_faithful": "in a faithful one"}  # fmt: skip
COUNTS = ("wrong_hallucinated", "wrong_faithful")
"""Figures that are numbers, not shares."""
COST = {"calls": "calls", "reused": "kept replies", "prompt_tokens": "prompt tokens", "cached_tokens": "of them cached",
        "completion_tokens": "written tokens", "pairs": "pairs", "searches": "searches", "seconds": "seconds"}  # fmt: skip
MEANINGS = (
    "In percent, with 95 % bootstrap intervals: {draws:,} resamples of {groups:,} groups; a group has the rows of one source, "
    "question or pair.",
    "TPR: share of the hallucinated that was found; TNR: of the faithful that was passed; Avg Acc: their mean. An abstention "
    "(+: among hallucinated, -: among faithful) counts as neither.",
    "balanced and macro F1: balanced accuracy and F1 of both classes, an abstention settled by its probability.",
    "What every figure means: docs/guide/compare.md.",
)


class Sheet(NamedTuple):
    """A table: its title, its column heads and its rows, the first column being a name.

    `extra` tells that it says more than most readers ask, `parts` that it has the rows in parts.
    """

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    extra: bool = False
    parts: bool = False


def sheets(comparison: Comparison) -> list[Sheet]:
    """Lay out quality, tests against the first method, cost, and what is extra: further figures, and rows in parts."""
    results, first = comparison.results, comparison.results[0].name
    title = f"{comparison.rows:,} rows, {comparison.hallucinated:,} hallucinated"
    shown = [Sheet(title, ("", "rows", "no verdict", *QUALITY.values()), [_quality(r) for r in results])]
    if comparison.tests:
        head = ("", "rows", f"only {first} right", "only it right", "p (McNemar)", "p (Holm)", "Avg Acc, difference")
        shown.append(Sheet(f"Against {first}", head, [_test(t) for t in comparison.tests]))
    used = [n for n in COST if any(r.cost[n] for r in results)]
    if used:
        shown.append(Sheet("Cost per row with a verdict", ("", *(COST[n] for n in used)), [_cost(r, used) for r in results]))
    return [*shown, *_further(results), *map(_broken_down, comparison.breakdowns)]


def remarks(comparison: Comparison) -> list[str]:
    """Return what the columns mean, and what must be known of these figures."""
    drawn = MEANINGS[0].format(draws=DRAWS, groups=comparison.groups) if comparison.groups > 1 else "In percent."
    return [drawn, *MEANINGS[1:], *comparison.notes]


def markdown(comparison: Comparison) -> str:
    """Write all tables and remarks as Markdown."""
    return "\n\n".join([tables(sheets(comparison), comparison.results), *remarks(comparison)]) + "\n"


def tables(shown: Sequence[Sheet], results: Sequence[Result]) -> str:
    """Write tables as Markdown, and the commonest failures of each method."""
    parts = []
    for sheet in shown:
        lines = [_line(sheet.head), "|---|" + "---:|" * (len(sheet.head) - 1), *map(_line, sheet.rows)]
        parts.append(f"**{cell(sheet.title)}**\n\n" + "\n".join(lines))
    failures = [f"- {r.name}: {n:,} x {cell(reason)}" for r in results for reason, n in list(r.failures.items())[:3]]
    parts += ["\n".join(failures)] if failures else []
    return "\n\n".join(parts)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain fields; a figure is {value, low, high}."""
    fields: dict[str, Any] = plain(asdict(comparison))
    return fields


def write(comparison: Comparison, folder: Path) -> tuple[Path, Path]:
    """Write `comparison.json` and `comparison.md` into a folder; return their paths."""
    paths = folder / "comparison.json", folder / "comparison.md"
    paths[0].write_text(json.dumps(as_json(comparison), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paths[1].write_text(markdown(comparison), encoding="utf-8")
    return paths


def percent(figure: Estimate) -> str:
    """Return a share in percent with its interval; a dash where it cannot be given."""
    return number(Estimate(*(None if v is None else 100 * v for v in figure)), digits=1)


def number(figure: Estimate, digits: int = 2) -> str:
    """Return a figure as it is with its interval; a dash where it cannot be given."""
    if figure.value is None:
        return "-"
    limits = "" if figure.low is None or figure.high is None else f" [{figure.low:.{digits}f}, {figure.high:.{digits}f}]"
    return f"{figure.value:.{digits}f}{limits}"


def title_of(result: Result) -> str:
    """Return a method's name, and that it was fitted on the compared rows where it was."""
    return f"{result.name} (upper bound)" if result.fitted == "the same rows" else result.name


def _further(results: Sequence[Result]) -> list[Sheet]:
    """Lay out the figures of probabilities, and of what is marked where some method marks anything."""
    shown = [_sheet("Probabilities", PROBABILITIES, results)]
    marks = {n: head for n, head in MARKS.items() if any(r.figures[n].value is not None for r in results)}
    return [*shown, _sheet("What is found in a text", marks, results)] if marks else shown


def _sheet(title: str, names: Mapping[str, str], results: Sequence[Result]) -> Sheet:
    rows = [(title_of(r), *(number(r.figures[n]) if n in COUNTS else percent(r.figures[n]) for n in names)) for r in results]
    return Sheet(title, ("", *names.values()), rows, extra=True)


def _broken_down(by: Breakdown) -> Sheet:
    heads = {**QUALITY, **PROBABILITIES}
    rows = [
        (found.method, part.name, f"{part.rows:,}", f"{part.hallucinated:,}", *(percent(part.figures[n]) for n in SHOWN))
        for found in by.results for part in found.parts
    ]  # fmt: skip
    return Sheet(by.title, ("", by.key, "rows", "hallucinated", *(heads[n] for n in SHOWN)), rows, extra=True, parts=True)


def _quality(result: Result) -> tuple[str, ...]:
    abstains = (f"{100 * v:.1f}" if (v := result.figures[n].value) is not None else "-" for n in ("arp", "arn"))
    shares = (percent(result.figures[n]) for n in QUALITY if n not in ("arp", "arn"))
    return title_of(result), f"{result.rows:,}", f"{sum(result.failures.values()):,}", *shares, *abstains


def _test(test: Against) -> tuple[str, ...]:
    difference = percent(test.difference)
    sign = "+" if (test.difference.value or 0.0) > 0 else ""
    return (
        test.name,
        f"{test.rows:,}",
        f"{test.first_only:,}",
        f"{test.other_only:,}",
        p_value(test.p) if test.rows else "-",
        p_value(test.holm) if test.rows else "-",
        sign + difference,
    )


def p_value(p: float) -> str:
    """Return a p-value as it is usually written."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _cost(result: Result, names: Sequence[str]) -> tuple[str, ...]:
    return result.name, *("-" if (v := result.cost[n]) is None else f"{v:,.4f}" if n == "seconds" else f"{v:,.1f}" for n in names)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"


def cell(text: str) -> str:
    """Return a text as it stands in a table: on one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; a figure is {value, low, high}."""
    if isinstance(value, Estimate):
        return value._asdict()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value
