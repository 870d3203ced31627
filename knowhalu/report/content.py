"""The content of a report: all that a page, its Markdown or its JSON shows, computed once and in plain numbers."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.errors import InputError
from knowhalu.evaluation.compare import Comparison
from knowhalu.report.chart_data import Drawn, Grid, drawn_of
from knowhalu.report.items import STATES, Item, choose, read_items, states_of
from knowhalu.report.outcomes import OPEN, WHYS, WRONG, Outcomes, read_outcomes
from knowhalu.report.results import DataSet, Published, check_still_true, of_outcomes, published, read_comparison, read_dataset
from knowhalu.report.runs import COMPARISON, Run, Texts, read_texts
from knowhalu.report.slices import Breakdown, breakdowns, read_breakdowns

ITEMS, NAMED = 300, 4

UNLABELLED = "No row has a gold label, so nothing is scored."
NO_ROWS = "The rows are not known, and with them their questions, gold labels and whole responses: --rows names their file."


def is_trivial(method: str) -> bool:
    """Tell whether a method is a rule that knows nothing of truth."""
    return method.startswith("trivial-") or method == "response-only"


@dataclass(frozen=True)
class Entrant:
    """A method of a run: what decided its results, what it said and why, and why it said nothing of some rows.

    `why` counts texts left open by their reason, and hallucinated ones by how the sources stand to them; "open" and
    "hallucinated" are those of which that is not known.
    """

    name: str
    method: str
    settings: str
    parts: dict[str, str]
    states: dict[str, int]
    why: dict[str, int]
    failures: dict[str, int]


@dataclass(frozen=True)
class Section:
    """One run: its methods, its comparison where there are gold labels, its parts, what is drawn of it, and some items."""

    name: str
    input: str
    dataset: DataSet
    rows: int
    entrants: tuple[Entrant, ...]
    comparison: Comparison | None
    published: tuple[Published, ...]
    breakdowns: tuple[Breakdown, ...]
    drawn: Drawn
    items: tuple[Item, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """All of it. `outcomes` are those that could have been shown as items."""

    title: str
    version: str
    sections: tuple[Section, ...]
    grids: dict[str, Grid]
    outcomes: int

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the items of all sections, in the order of their states."""
        found = [item for section in self.sections for item in section.items]
        return tuple(sorted(found, key=lambda item: STATES.index(item.state)))


def make_report(runs: Sequence[Run], *, title: str = "", grids: Mapping[str, Grid] | None = None, items: int = ITEMS) -> Report:
    """Read all runs, one after the other, and compute what is shown; `items` of them all are shown singly.

    Raises InputError for what cannot be read, and where rows or outcomes have changed since they were compared.
    """
    shares = [items // len(runs) + (i < items % len(runs)) for i in range(len(runs))]
    sections, total = [], 0
    for run, share in zip(runs, shares, strict=True):
        texts = read_texts(run.rows) if run.rows is not None else None
        outcomes = {name: read_outcomes(path, texts) for name, path in run.files.items()}
        shown = _shown(outcomes)
        total += sum(len(found.place) for found in shown.values())
        sections.append(_section(run, texts, outcomes, shown, share))
    return Report(title or _title([run.name for run in runs]), knowhalu.__version__, tuple(sections), dict(grids or {}), total)


def _title(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _section(run: Run, texts: Texts | None, outcomes: dict[str, Outcomes], shown: dict[str, Outcomes], items: int) -> Section:
    comparison = _comparison(run, texts, outcomes)
    dataset = read_dataset(run.comparison or {}, f"{run.name}/{COMPARISON}")
    labelled = texts if comparison is not None else None
    chosen = {
        name: choose(states_of(found, texts), found.sureness, items // len(shown) + (i < items % len(shown)))
        for i, (name, found) in enumerate(shown.items())
    }
    rows = len(texts.gold) if texts is not None else max(len(found.place) for found in outcomes.values())
    return Section(
        name=run.name, input=str(run.rows or ""), dataset=dataset, rows=rows, comparison=comparison,
        entrants=tuple(_entrant(name, found, texts) for name, found in outcomes.items()),
        published=published(dataset.name or run.name) if comparison is not None else (),
        breakdowns=tuple(_breakdowns(run, labelled, outcomes)), drawn=drawn_of(outcomes, shown, labelled),
        items=tuple(read_items(run.name, texts, outcomes, chosen)),
        warnings=(*dataset.warnings, *_warnings(rows, outcomes, comparison, labels=texts is not None)),
    )  # fmt: skip


def _shown(outcomes: dict[str, Outcomes]) -> dict[str, Outcomes]:
    """Leave out trivial rules, which give no evidence, unless there is nothing else."""
    return {name: found for name, found in outcomes.items() if not is_trivial(found.method)} or outcomes


def _comparison(run: Run, texts: Texts | None, outcomes: dict[str, Outcomes]) -> Comparison | None:
    if texts is None:
        return None
    if run.comparison is None:
        ((name, found),) = outcomes.items()
        return of_outcomes(name, found, texts)
    path = run.files[next(iter(run.files))].with_name(COMPARISON)
    comparison = read_comparison(run.comparison, path)
    check_still_true(comparison, outcomes, texts, path)
    return comparison


def _breakdowns(run: Run, texts: Texts | None, outcomes: dict[str, Outcomes]) -> list[Breakdown]:
    if texts is None:
        return []
    if run.comparison is not None and run.comparison.get("breakdowns"):
        return read_breakdowns(run.comparison["breakdowns"], f"{run.name}/{COMPARISON}")
    return breakdowns(texts, outcomes)


def _entrant(name: str, found: Outcomes, texts: Texts | None) -> Entrant:
    parts = {key: value for key, value in found.run.items() if key not in ("settings", "version")}
    states = Counter(states_of(found, texts).tolist())
    method, why = found.method or _method_of(found), _whys(found)
    return Entrant(name, method, _settings_of(found), parts, dict(states), why, found.failures)


def _whys(found: Outcomes) -> dict[str, int]:
    """Count what is open or hallucinated by why, in the order of `WHYS`, and what does not say why last."""
    counted = Counter(zip(found.said.tolist(), found.why.tolist(), strict=True))
    known = {WHYS[at]: counted[said, at] for at in range(1, len(WHYS)) for said in (WRONG, OPEN) if counted[said, at]}
    return known | {name: counted[said, 0] for said, name in ((WRONG, "hallucinated"), (OPEN, "open")) if counted[said, 0]}


def _settings(found: Outcomes) -> dict[str, Any]:
    try:
        settings = json.loads(found.run.get("settings", "{}"))
    except ValueError as error:
        raise InputError(f"{found.path}, line 1: its settings are not JSON ({error}). Check the rows again.") from error
    return settings if isinstance(settings, dict) else {}


def _method_of(found: Outcomes) -> str:
    return str(_settings(found).get("method", ""))


def _settings_of(found: Outcomes) -> str:
    return json.dumps(_settings(found), ensure_ascii=False, sort_keys=True, indent=1)


def _warnings(rows: int, outcomes: dict[str, Outcomes], comparison: Comparison | None, *, labels: bool) -> list[str]:
    """Say what a reader must know before the figures."""
    told = []
    for name, found in outcomes.items():
        if found.torn:
            told.append(f"{name}: the last line of {found.path.name} broke off, as a kill leaves it. The run has not finished.")
        if len(found.place) < rows:
            told.append(f"{name}: {rows - len(found.place):,} of {rows:,} rows have no outcome yet. The run has not finished.")
        if found.failures:
            (reason, count), *more = found.failures.items()
            others = f", and {len(more):,} other reasons" if more else ""
            told.append(f"{name}: {sum(found.failures.values()):,} rows have no verdict: {count:,} x {reason}{others}")
    return [*told, *(comparison.notes if comparison is not None else [UNLABELLED if labels else NO_ROWS])]


def paths_of(runs: Sequence[Run]) -> list[Path]:
    """Name every file that a report of these runs reads."""
    return [path for run in runs for path in (*run.files.values(), *([run.rows] if run.rows is not None else []))]
