"""The content of a report for the page, Markdown and JSON: computed once, in plain numbers."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.errors import InputError
from knowhalu.evaluation.compare import Comparison
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.io.outcomes import HALLUCINATED, INCONCLUSIVE, REASONS, OutcomeTable, read_outcome_table
from knowhalu.report.chart_data import AccuracyGrid, ChartData, make_chart_data
from knowhalu.report.items import ITEM_STATES, ReportItem, choose_items, item_states, read_items
from knowhalu.report.run_files import COMPARISON_FILE, RunFiles
from knowhalu.report.stored_results import (
    BreakdownRates,
    DatasetNotes,
    PublishedScore,
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
        found = [item for section in self.sections for item in section.items]
        return tuple(sorted(found, key=lambda item: ITEM_STATES.index(item.state)))


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
        shown = _without_trivial(outcomes)
        total += sum(len(found.place) for found in shown.values())
        sections.append(_section(run, texts, outcomes, shown, share))
    return Report(title or _title([run.name for run in runs]), knowhalu.__version__, tuple(sections), dict(grids or {}), total)


def _title(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_TITLE_NAMES]) + (
        f" and {len(names) - MAX_TITLE_NAMES} more" if len(names) > MAX_TITLE_NAMES else ""
    )


def _section(
    run: RunFiles, texts: LabelledRows | None, outcomes: dict[str, OutcomeTable], shown: dict[str, OutcomeTable], items: int
) -> RunSection:
    comparison = _comparison(run, texts, outcomes)
    dataset = read_dataset_notes(run.comparison or {}, f"{run.name}/{COMPARISON_FILE}")
    labelled = texts if comparison is not None else None
    chosen = {
        name: choose_items(item_states(found, texts), found.confidence, items // len(shown) + (i < items % len(shown)))
        for i, (name, found) in enumerate(shown.items())
    }
    rows = len(texts.gold) if texts is not None else max(len(found.place) for found in outcomes.values())
    return RunSection(
        name=run.name, input=str(run.rows or ""), dataset=dataset, rows=rows, comparison=comparison,
        entrants=tuple(_method_summary(name, found, texts) for name, found in outcomes.items()),
        published=published_scores(dataset.name or run.name) if comparison is not None else (),
        breakdowns=tuple(_breakdowns(run, labelled, outcomes)), drawn=make_chart_data(outcomes, shown, labelled),
        items=tuple(read_items(run.name, texts, outcomes, chosen)),
        warnings=(*dataset.warnings, *_warnings(rows, outcomes, comparison, labels=texts is not None)),
    )  # fmt: skip


def _without_trivial(outcomes: dict[str, OutcomeTable]) -> dict[str, OutcomeTable]:
    """Return the outcomes without those of trivial rules, which give no evidence, unless there are no others."""
    return {name: found for name, found in outcomes.items() if not is_trivial(found.method)} or outcomes


def _comparison(run: RunFiles, texts: LabelledRows | None, outcomes: dict[str, OutcomeTable]) -> Comparison | None:
    if texts is None:
        return None
    if run.comparison is None:
        ((name, found),) = outcomes.items()
        return compare_outcomes(name, found, texts)
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


def _method_summary(name: str, found: OutcomeTable, texts: LabelledRows | None) -> MethodSummary:
    parts = {key: value for key, value in found.run.items() if key not in ("settings", "version")}
    states = Counter(item_states(found, texts).tolist())
    method, why = found.method or _method_of(found), _reason_counts(found)
    return MethodSummary(name, method, _settings_of(found), parts, dict(states), why, found.failures)


def _reason_counts(found: OutcomeTable) -> dict[str, int]:
    """Count inconclusive and hallucinated texts by reason, in the order of `REASONS`, those without a reason last."""
    counted = Counter(zip(found.label.tolist(), found.why.tolist(), strict=True))
    known = {
        REASONS[at]: counted[said, at]
        for at in range(1, len(REASONS))
        for said in (HALLUCINATED, INCONCLUSIVE)
        if counted[said, at]
    }
    return known | {
        name: counted[said, 0] for said, name in ((HALLUCINATED, "hallucinated"), (INCONCLUSIVE, "open")) if counted[said, 0]
    }


def _settings(found: OutcomeTable) -> dict[str, Any]:
    try:
        settings = json.loads(found.run.get("settings", "{}"))
    except ValueError as error:
        raise InputError(f"{found.path}, line 1: its settings are not JSON ({error}). Check the rows again.") from error
    return settings if isinstance(settings, dict) else {}


def _method_of(found: OutcomeTable) -> str:
    return str(_settings(found).get("method", ""))


def _settings_of(found: OutcomeTable) -> str:
    return json.dumps(_settings(found), ensure_ascii=False, sort_keys=True, indent=1)


def _warnings(rows: int, outcomes: dict[str, OutcomeTable], comparison: Comparison | None, *, labels: bool) -> list[str]:
    """Return the warnings that a reader needs before the figures."""
    warnings = []
    for name, found in outcomes.items():
        if found.torn:
            warnings.append(f"{name}: the last line of {found.path.name} is incomplete. The run has not finished.")
        if len(found.place) < rows:
            warnings.append(
                f"{name}: {rows - len(found.place):,} of {rows:,} rows have no outcome yet. The run has not finished."
            )
        if found.failures:
            (reason, count), *more = found.failures.items()
            others = f", and {len(more):,} other reasons" if more else ""
            warnings.append(f"{name}: {sum(found.failures.values()):,} rows have no verdict: {count:,} x {reason}{others}")
    return [*warnings, *(comparison.notes if comparison is not None else [NO_LABELS_WARNING if labels else NO_ROWS_WARNING])]


def input_paths(runs: Sequence[RunFiles]) -> list[Path]:
    """Return every file that a report on these runs reads."""
    return [path for run in runs for path in (*run.files.values(), *([run.rows] if run.rows is not None else []))]
