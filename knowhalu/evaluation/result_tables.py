"""A comparison of methods, on a file or on a data set, as tables, notes, Markdown and JSON.

No figure on a data set is shown without the figures of the baselines on the same rows.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knowhalu.evaluation.bootstrap import RESAMPLES, Estimate
from knowhalu.evaluation.compare import Comparison, MethodResult, PairedTest
from knowhalu.evaluation.dataset import SOLVED_THRESHOLD, BaselineScores, DatasetEvaluation
from knowhalu.evaluation.runs import SAME_ROWS
from knowhalu.evaluation.slices import LENGTH_MATCHED, MEAN_OF_PARTS, SLICE_METRICS, Breakdown, Subset, SubsetResult
from knowhalu.evaluation.tables import (
    ResultTable,
    as_json_text,
    as_plain,
    escape_cell,
    format_cost,
    format_number,
    format_p_value,
    format_percent,
    table_as_markdown,
)
from knowhalu.io.output_files import write_text

QUALITY_COLUMNS = {
    "tpr": "TPR", "tnr": "TNR", "average": "Avg Acc", "balanced": "balanced", "macro_f1": "macro F1", "auc": "ROC-AUC",
    "arp": "abstained +", "arn": "abstained -",
}  # fmt: skip
PROBABILITY_COLUMNS = {
    "accuracy": "accuracy", "inconclusive": "inconclusive", "f1_hallucinated": "F1 hallucinated", "f1_faithful": "F1 faithful",
    "pr_auc": "PR-AUC", "ece": "ECE", "brier": "Brier", "coverage_area": "accuracy over coverage",
}  # fmt: skip
SPAN_COLUMNS = {
    "span_precision": "span precision", "span_recall": "span recall", "span_f1": "span F1",
    "wrong_hallucinated": "INCORRECT findings per hallucinated text", "wrong_faithful": "per faithful text",
}  # fmt: skip
SPAN_COUNT_METRICS = ("wrong_hallucinated", "wrong_faithful")
"""Metrics that are counts, not shares."""
COST_COLUMNS = {
    "calls": "calls", "reused": "cached replies", "prompt_tokens": "prompt tokens", "cached_tokens": "of them cached",
    "completion_tokens": "completion tokens", "pairs": "pairs", "searches": "searches", "seconds": "seconds",
}  # fmt: skip
COLUMN_NOTES = (
    "In percent, with 95 % bootstrap intervals: {draws:,} resamples of {groups:,} groups; a group has the rows of one source, "
    "question or pair.",
    "TPR: share of hallucinated rows that were flagged; TNR: of faithful rows that passed; Avg Acc: their mean. An abstention "
    "(+: among hallucinated rows, -: among faithful rows) counts as neither.",
    "balanced and macro F1: balanced accuracy and F1 of both classes, abstentions decided by their probability.",
    "What every figure means: docs/guide/compare.md.",
)
BASELINE_COLUMNS = ("best rule", "length rule", "length-matched", "length rule, matched")
ORACLE_TITLE = "Oracle thresholds: chosen on these very rows, so an upper bound and no result"
SUBSET_METRICS = {"average": "Avg Acc", "balanced": "balanced", "auc": "ROC-AUC"}
BASELINE_NOTE = (
    "best rule and length rule: Avg Acc of trivial rules on the same rows. length-matched: Avg Acc on rows whose "
    f"labels length does not predict. A warning is shown where a rule gets {SOLVED_THRESHOLD:.0%} or more."
)
Evaluated = Comparison | DatasetEvaluation


def make_tables(evaluated: Evaluated) -> list[ResultTable]:
    """Return quality (on a data set, next to that of the baselines), subsets, tests, cost, and extra tables."""
    if isinstance(evaluated, Comparison):
        return _comparison_tables(evaluated)
    first, *others = _comparison_tables(evaluated.comparison)
    names = [result.name for result in evaluated.comparison.results]
    at = first.head.index(QUALITY_COLUMNS["average"]) + 1
    rows = [(*row[:at], *_baseline_cells(evaluated.beside[name]), *row[at:]) for row, name in zip(first.rows, names, strict=True)]
    facts = evaluated.dataset
    title = f"{facts.name}{f', split {facts.split}' if facts.split else ''}: {first.title}"
    quality = ResultTable(title, (*first.head[:at], *BASELINE_COLUMNS, *first.head[at:]), rows)
    return [quality, *subset_tables(evaluated.subsets), *others]


def make_notes(evaluated: Evaluated) -> list[str]:
    """Return what the columns mean, and what a reader must know of the figures."""
    if isinstance(evaluated, DatasetEvaluation):
        return [*make_notes(evaluated.comparison), BASELINE_NOTE, f"Labels. {evaluated.dataset.labels}."]
    groups = evaluated.groups
    drawn = COLUMN_NOTES[0].format(draws=RESAMPLES, groups=groups) if groups > 1 else "In percent."
    return [drawn, *COLUMN_NOTES[1:], *evaluated.notes]


def as_markdown(evaluated: Evaluated) -> str:
    """Return all tables and notes in Markdown; of a data set, also its facts and the warnings."""
    head, results = "", (evaluated if isinstance(evaluated, Comparison) else evaluated.comparison).results
    if isinstance(evaluated, DatasetEvaluation):
        facts = evaluated.dataset
        split = f", split {escape_cell(facts.split)}" if facts.split else ""
        head = f"# {facts.name}\n\n{facts.about}. {facts.rows:,} rows{split}. Licence: {facts.licence}. SHA-256: {facts.sha256}"
        warnings = "\n".join(f"- **Warning:** {escape_cell(text)}" for text in evaluated.warnings)
        head = "\n\n".join(filter(None, [head, warnings]))
    body = tables_as_markdown(make_tables(evaluated), results)
    return "\n\n".join(filter(None, [head, body, *make_notes(evaluated)])) + "\n"


def tables_as_markdown(tables: Sequence[ResultTable], results: Sequence[MethodResult]) -> str:
    """Return tables in Markdown, and the most frequent failures of each method."""
    failures = [f"- {r.name}: {n:,} x {escape_cell(reason)}" for r in results for reason, n in list(r.failures.items())[:3]]
    return "\n\n".join([*map(table_as_markdown, tables), *(["\n".join(failures)] if failures else [])])


def as_json(evaluated: Evaluated) -> dict[str, Any]:
    """Return a comparison as plain fields, a figure being {value, low, high}.

    That of a data set also has `dataset`, `subsets`, `warnings`, and `beside` in each result.
    """
    if isinstance(evaluated, Comparison):
        fields: dict[str, Any] = as_plain(evaluated)
        return fields
    fields = as_json(evaluated.comparison)
    for result in fields["results"]:
        result["beside"] = as_plain(evaluated.beside[result["name"]])
    return {**fields, **as_plain({name: getattr(evaluated, name) for name in ("dataset", "subsets", "warnings")})}


def write_results(evaluated: Evaluated, folder: Path) -> tuple[Path, Path]:
    """Write `comparison.json` and `comparison.md` into a folder; return their paths."""
    paths = folder / "comparison.json", folder / "comparison.md"
    for path, text in zip(paths, (as_json_text(as_json(evaluated)), as_markdown(evaluated)), strict=True):
        write_text(path, text)
    return paths


def _comparison_tables(comparison: Comparison) -> list[ResultTable]:
    """Return quality, tests against the first method, cost, and the extra tables: further metrics, and slices."""
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
    return [*shown, *_extra_tables(results), *_oracle_tables(results), *map(_breakdown_table, comparison.breakdowns)]


def _extra_tables(results: Sequence[MethodResult]) -> list[ResultTable]:
    """Return the metrics of probabilities, and of flagged spans where some method flags any."""
    shown = [_metric_table("Probabilities", PROBABILITY_COLUMNS, results)]
    marks = {n: head for n, head in SPAN_COLUMNS.items() if any(r.figures[n].value is not None for r in results)}
    return [*shown, _metric_table("What is found in a text", marks, results)] if marks else shown


def _oracle_tables(results: Sequence[MethodResult]) -> list[ResultTable]:
    """Return the thresholds that are best on the compared rows themselves, if there are any."""
    rows: list[tuple[str, ...]] = []
    for r in results:
        if r.oracle is not None:
            scores = (_value(Estimate(r.oracle.mean)), _value(r.figures["macro_f1"]))
            rows.append((r.title, f"{r.oracle.at:.3f}", *scores))
    head = ("", "oracle threshold of P(hallucinated)", "macro F1 with it (upper bound)", "macro F1 of the verdicts")
    return [ResultTable(ORACLE_TITLE, head, rows, extra=True)] if rows else []


def _metric_table(title: str, names: Mapping[str, str], results: Sequence[MethodResult]) -> ResultTable:
    rows = [
        (r.title, *(format_number(r.figures[n]) if n in SPAN_COUNT_METRICS else format_percent(r.figures[n]) for n in names))
        for r in results
    ]
    return ResultTable(title, ("", *names.values()), rows, extra=True)


def _breakdown_table(by: Breakdown) -> ResultTable:
    titles = {**QUALITY_COLUMNS, **PROBABILITY_COLUMNS}
    head = ("", by.key, "rows", "hallucinated", *(titles[n] for n in SLICE_METRICS))
    rows = [
        (
            of.method,
            part.name,
            f"{part.rows:,}",
            f"{part.hallucinated:,}",
            *(format_percent(part.figures[n]) for n in SLICE_METRICS),
        )
        for of in by.results
        for part in of.parts
    ]
    return ResultTable(by.title, head, rows, extra=True, parts=True)


def _quality(result: MethodResult) -> tuple[str, ...]:
    abstains = (f"{100 * v:.1f}" if (v := result.figures[n].value) is not None else "-" for n in ("arp", "arn"))
    shares = (format_percent(result.figures[n]) for n in QUALITY_COLUMNS if n not in ("arp", "arn"))
    return result.title, f"{result.rows:,}", f"{sum(result.failures.values()):,}", *shares, *abstains


def _test(test: PairedTest) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (test.rows, test.first_only, test.other_only))
    p_values = (format_p_value(p) if test.rows else "-" for p in (test.p, test.holm))
    sign = "+" if (test.difference.value or 0.0) > 0 else ""
    return test.name, *counts, *p_values, sign + format_percent(test.difference)


def _cost(result: MethodResult, names: Sequence[str]) -> tuple[str, ...]:
    return result.name, *(format_cost(name, result.cost[name]) for name in names)


def _baseline_cells(scores: BaselineScores) -> tuple[str, ...]:
    matched, matched_length = format_percent(scores.matched_average), _value(scores.matched_length_average)
    return best_rule_cell(scores), _value(scores.length_average), matched, matched_length


def best_rule_cell(scores: BaselineScores) -> str:
    """Return the Avg Acc of the best rule with its name, marked as an upper bound where it was fitted on the same rows."""
    bound = ", upper bound" if scores.rule_fitted == SAME_ROWS else ""
    return f"{_value(scores.rule_average)} ({scores.rule}{bound})" if scores.rule else "-"


def _value(figure: Estimate) -> str:
    return format_percent(Estimate(figure.value))


def subset_tables(subsets: Sequence[Subset], *, count_mean: bool = False) -> list[ResultTable]:
    """Return a table of the length-matched rows, and one of the parts; `count_mean` adds the rows to the head of their mean."""
    parts = [subset for subset in subsets if subset.name != LENGTH_MATCHED]
    matched = [
        ResultTable(f"{s.name}: {s.about}", ("", "rows", *SUBSET_METRICS.values()), [_subset_cells(r) for r in s.results])
        for s in subsets if s.name == LENGTH_MATCHED
    ]  # fmt: skip
    return [*matched, *([_parts(parts, count_mean=count_mean)] if parts else [])]


def _subset_cells(result: SubsetResult) -> tuple[str, ...]:
    return result.name, f"{result.rows:,}", *(format_percent(result.figures[name]) for name in SUBSET_METRICS)


def _parts(parts: Sequence[Subset], *, count_mean: bool) -> ResultTable:
    """Return the balanced accuracy of methods (rows) on the parts of a set (columns)."""
    counted = [count_mean or part.name != MEAN_OF_PARTS for part in parts]
    head = ("", *(f"{part.name} ({part.rows:,})" if count else part.name for part, count in zip(parts, counted, strict=True)))
    rows = [(result.name, *(_balanced(part, result.name) for part in parts)) for result in parts[0].results]
    return ResultTable("Balanced accuracy by part", head, rows)


def _balanced(part: Subset, name: str) -> str:
    result = part.of(name)
    return format_percent(result.figures["balanced"]) if result else "-"
