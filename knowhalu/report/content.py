"""The content of a report for the page, Markdown and JSON: computed once, in plain numbers."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.errors import InputError, hide_password
from knowhalu.evaluation.compare import Comparison
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.io.outcomes import HALLUCINATED, INCONCLUSIVE, REASONS, OutcomeTable, read_outcome_table
from knowhalu.report.chart_data import AccuracyGrid, ChartData, make_chart_data
from knowhalu.report.items import ITEM_STATES, ReportItem, choose_items, item_states, read_items
from knowhalu.report.stored_results import (
    COMPARISON_FILE,
    BreakdownRates,
    DatasetNotes,
    PublishedScore,
    RunFiles,
    check_unchanged,
    compare_outcomes,
    compute_breakdowns,
    published_scores,
    read_breakdowns,
    read_comparison,
    read_dataset_notes,
)

DEFAULT_ITEMS, MAX_TITLE_NAMES = 300, 4

NO_LABELS_WARNING = "No row has a gold label, so nothing is scored."
NO_ROWS_WARNING = "The rows are not known, nor their questions, gold labels and whole responses. Name their file with --rows."


def is_trivial(method: str) -> bool:
    """Tell whether a method is a baseline that sees no evidence."""
    return method.startswith("trivial-") or method == "response-only"


@dataclass(frozen=True)
class MethodSummary:
    """A method of a run: its settings and parts, counts of its verdicts and their reasons, and of its failures.

    `why` counts inconclusive texts by their reason, and hallucinated ones by the relation of the sources; "open" and
    "hallucinated" count those without a known one.
    """

    name: str
    method: str
    settings: str
    parts: dict[str, str]
    states: dict[str, int]
    why: dict[str, int]
    failures: dict[str, int]


@dataclass(frozen=True)
class RunSection:
    """One run: its methods, its comparison where there are gold labels, its slices, the data of its charts, and some items."""

    name: str
    input: str
    dataset: DatasetNotes
    rows: int
    entrants: tuple[MethodSummary, ...]
    comparison: Comparison | None
    published: tuple[PublishedScore, ...]
    breakdowns: tuple[BreakdownRates, ...]
    drawn: ChartData
    items: tuple[ReportItem, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A report on several runs; `outcomes` counts those that could have been shown as items."""

    title: str
    version: str
    sections: tuple[RunSection, ...]
    grids: dict[str, AccuracyGrid]
    outcomes: int

    @property
    def items(self) -> tuple[ReportItem, ...]:
        """Return the items of all sections, in the order of their states."""
        items = [item for section in self.sections for item in section.items]
        return tuple(sorted(items, key=lambda item: ITEM_STATES.index(item.state)))


def make_report(
    runs: Sequence[RunFiles], *, title: str = "", grids: Mapping[str, AccuracyGrid] | None = None, items: int = DEFAULT_ITEMS
) -> Report:
    """Read all runs, one after the other, and compute the content of a report with at most `items` items.

    Raises InputError for what cannot be read, and where rows or outcomes have changed since they were compared.
    """
    shares = [items // len(runs) + (i < items % len(runs)) for i in range(len(runs))]
    sections, total = [], 0
    for run, share in zip(runs, shares, strict=True):
        texts = read_labelled_rows(run.rows, require_labels=False) if run.rows is not None else None
        index = texts.row_index if texts is not None else None
        outcomes = {name: read_outcome_table(path, index, allow_torn=True) for name, path in run.files.items()}
        # trivial rules give no evidence: their outcomes are shown only where there are no others
        shown = {name: table for name, table in outcomes.items() if not is_trivial(table.method)} or outcomes
        total += sum(len(table.place) for table in shown.values())
        sections.append(_section(run, texts, outcomes, shown, share))
    more = f" and {len(runs) - MAX_TITLE_NAMES} more" if len(runs) > MAX_TITLE_NAMES else ""
    title = title or ", ".join(run.name for run in runs[:MAX_TITLE_NAMES]) + more
    return Report(title, knowhalu.__version__, tuple(sections), dict(grids or {}), total)


def _section(
    run: RunFiles, texts: LabelledRows | None, outcomes: dict[str, OutcomeTable], shown: dict[str, OutcomeTable], items: int
) -> RunSection:
    comparison = _comparison(run, texts, outcomes)
    dataset = read_dataset_notes(run.comparison or {}, f"{run.name}/{COMPARISON_FILE}")
    labelled = texts if comparison is not None else None
    chosen = {
        name: choose_items(item_states(table, texts), table.confidence, items // len(shown) + (i < items % len(shown)))
        for i, (name, table) in enumerate(shown.items())
    }
    rows = len(texts.gold) if texts is not None else max(len(table.place) for table in outcomes.values())
    return RunSection(
        name=run.name, input=str(run.rows or ""), dataset=dataset, rows=rows, comparison=comparison,
        entrants=tuple(_method_summary(name, table, texts) for name, table in outcomes.items()),
        published=published_scores(dataset.name or run.name) if comparison is not None else (),
        breakdowns=tuple(_breakdowns(run, labelled, outcomes)), drawn=make_chart_data(outcomes, shown, labelled),
        items=tuple(read_items(run.name, texts, outcomes, chosen)),
        warnings=(*dataset.warnings, *_warnings(rows, outcomes, comparison, labels=texts is not None)),
    )  # fmt: skip


def _comparison(run: RunFiles, texts: LabelledRows | None, outcomes: dict[str, OutcomeTable]) -> Comparison | None:
    if texts is None:
        return None
    if run.comparison is None:
        ((name, table),) = outcomes.items()
        return compare_outcomes(name, table, texts)
    path = run.files[next(iter(run.files))].with_name(COMPARISON_FILE)
    comparison = read_comparison(run.comparison, path)
    check_unchanged(comparison, outcomes, texts, path)
    return comparison


def _breakdowns(run: RunFiles, texts: LabelledRows | None, outcomes: dict[str, OutcomeTable]) -> list[BreakdownRates]:
    if texts is None:
        return []
    if run.comparison is not None and run.comparison.get("breakdowns"):
        return read_breakdowns(run.comparison["breakdowns"], f"{run.name}/{COMPARISON_FILE}")
    return compute_breakdowns(texts, outcomes)


def _method_summary(name: str, table: OutcomeTable, texts: LabelledRows | None) -> MethodSummary:
    parts = {key: value for key, value in table.run.items() if key not in ("settings", "version")}
    states = Counter(item_states(table, texts).tolist())
    settings = _settings(table)
    method = table.method or str(settings.get("method", ""))
    text = json.dumps(settings, ensure_ascii=False, sort_keys=True, indent=1)
    return MethodSummary(name, method, text, parts, dict(states), _reason_counts(table), table.failures)


def _reason_counts(table: OutcomeTable) -> dict[str, int]:
    """Count inconclusive and hallucinated texts by reason, in the order of `REASONS`, those without a reason last."""
    counted = Counter(zip(table.label.tolist(), table.why.tolist(), strict=True))
    unknown = {HALLUCINATED: "hallucinated", INCONCLUSIVE: "open"}
    order = [(label, at) for at in range(1, len(REASONS)) for label in unknown] + [(label, 0) for label in unknown]
    return {REASONS[at] if at else unknown[label]: counted[label, at] for label, at in order if counted[label, at]}


def _settings(table: OutcomeTable) -> dict[str, Any]:
    try:
        settings = json.loads(hide_password(table.run.get("settings", "{}")))  # older versions stored it with the password
    except ValueError as error:
        raise InputError(f"{table.path}, line 1: its settings are not JSON ({error}). Check the rows again.") from error
    return settings if isinstance(settings, dict) else {}


def _warnings(rows: int, outcomes: dict[str, OutcomeTable], comparison: Comparison | None, *, labels: bool) -> list[str]:
    """Return the warnings that a reader needs before the figures."""
    warnings = []
    for name, table in outcomes.items():
        if table.torn:
            warnings.append(f"{name}: the last line of {table.path.name} is incomplete. The run has not finished.")
        if len(table.place) < rows:
            warnings.append(
                f"{name}: {rows - len(table.place):,} of {rows:,} rows have no outcome yet. The run has not finished."
            )
        if table.failures:
            (reason, count), *more = table.failures.items()
            others = f", and {len(more):,} other reasons" if more else ""
            warnings.append(f"{name}: {sum(table.failures.values()):,} rows have no verdict: {count:,} x {reason}{others}")
    return [*warnings, *(comparison.notes if comparison is not None else [NO_LABELS_WARNING if labels else NO_ROWS_WARNING])]


def input_paths(runs: Sequence[RunFiles]) -> list[Path]:
    """Return every file that a report on these runs reads."""
    return [path for run in runs for path in (*run.files.values(), *([run.rows] if run.rows is not None else []))]
