"""Run one method on all rows, continuing an unfinished run, and read its results and costs."""

import json
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.api import Checker
from knowhalu.batch import RunProgress, detect
from knowhalu.build import BackendPool, build_engine
from knowhalu.engine.engine import Engine
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.method_specs import MethodSpec
from knowhalu.evaluation.metrics import Predictions
from knowhalu.evaluation.slices import Breakdown, verdict_traits
from knowhalu.evaluation.spans import count_errors, flagged_spans, span_overlap
from knowhalu.io.outcomes import INCONCLUSIVE, OutcomeTable, read_outcome_table
from knowhalu.results import Outcome, Usage, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Sample

SECONDS_FILE = "seconds.json"


SAME_ROWS = "the same rows"
"""The rows on which a rule is fitted where there are no others."""


class MethodRun(NamedTuple):
    """A method of a comparison with its settings; `fitted` names the rows on which a baseline was fitted, if it was."""

    spec: MethodSpec
    settings: Settings
    fitted: str | None = None


@dataclass(frozen=True)
class MethodResult:
    """The result of one method on the rows with a verdict, and the cost of each such row."""

    name: str
    method: str
    reasoner: str
    settings: tuple[str, ...]
    rows: int
    failures: dict[str, int]
    figures: dict[str, Estimate]
    cost: dict[str, float | None]
    fitted: str | None = None

    @property
    def title(self) -> str:
        """Return the name, and that the figures are an upper bound where the method was fitted on the compared rows."""
        return f"{self.name} (upper bound)" if self.fitted == SAME_ROWS else self.name


@dataclass(frozen=True)
class PairedTest:
    """A test of a method against the first one, on the rows where both have a verdict.

    `difference` is its Avg Acc minus that of the first; `p` is McNemar's, `holm` the same corrected for the number of tests.
    """

    name: str
    rows: int
    first_only: int
    other_only: int
    p: float
    holm: float
    difference: Estimate


@dataclass(frozen=True)
class Comparison:
    """All results, that of the first method at the front, and the notes that a reader needs."""

    input: str
    rows: int
    hallucinated: int
    groups: int
    results: tuple[MethodResult, ...]
    tests: tuple[PairedTest, ...]
    notes: tuple[str, ...]
    breakdowns: tuple[Breakdown, ...] = ()


class RunResult(NamedTuple):
    """The predictions of a method for the rows at `places`, its mean cost for each of them, and their traits by key."""

    places: NDArray[np.intp]
    predictions: Predictions
    failures: dict[str, int]
    cost: dict[str, float | None]
    traits: Mapping[str, Sequence[Hashable]] = {}


class TimedChecker(Checker):
    """A checker that shares backends with others, and measures the time of its checks without that of loading."""

    def __init__(self, settings: Settings, pool: BackendPool) -> None:
        super().__init__(settings)
        self.kept, self.seconds = pool, 0.0

    @cached_property
    def engine(self) -> Engine[Verdict]:
        """Return the engine, built on first use."""
        return build_engine(self.settings, self.kept)

    def stream(self, samples: Iterable[Sample]) -> Generator[Outcome, None, None]:
        """Check many samples."""
        engine = self.engine
        began = time.perf_counter()
        yield from engine.run(samples, ordered=self.settings.engine.ordered)
        self.seconds = time.perf_counter() - began


def run_method(
    checker: TimedChecker,
    rows: LabelledRows,
    output: Path,
    *,
    restart: bool = False,
    progress: Callable[[RunProgress], None] | None = None,
) -> RunResult:
    """Check the rows without a verdict in `output`, and read the result."""
    summary = detect(checker, rows.path, output, restart=restart, progress=progress)
    seconds = _seconds_per_row(output, summary.samples - summary.kept, checker.seconds, fresh=not summary.kept)
    result = read_run_result(output, rows)
    return result._replace(failures=summary.failures, cost={**result.cost, "seconds": seconds})


def read_run_result(path: Path, rows: LabelledRows) -> RunResult:
    """Read the outcomes of a finished run; rows without a verdict are left out."""
    errors: dict[int, int] = {}
    overlaps: dict[int, tuple[int, int, int]] = {}

    def visit(place: int, fields: dict[str, Any]) -> None:
        if "stage" not in fields:
            verdict, gold = Verdict.model_validate(fields), rows.spans[place]
            errors[place] = count_errors(verdict)
            overlaps[place] = (0, 0, 0) if gold is None else span_overlap(flagged_spans(verdict), gold)

    table = read_outcome_table(path, rows.row_index, visit)
    entries, predictions = table_predictions(table, rows)
    places = table.place[entries].tolist()
    characters = np.array([overlaps[place] for place in places], dtype=np.float64).reshape(-1, 3)
    predictions = predictions._replace(
        wrong=np.array([errors[place] for place in places], dtype=np.float64),
        characters=characters if any(spans is not None for spans in rows.spans) else None,
    )
    cost = {name: table.usage[name] / len(places) if places else None for name in Usage.model_fields}
    traits = {key: [values[i] for i in entries.tolist()] for key, values in verdict_traits(table).items()}
    return RunResult(table.place[entries].astype(np.intp), predictions, {}, cost, traits)


def table_predictions(table: OutcomeTable, rows: LabelledRows) -> tuple[NDArray[np.intp], Predictions]:
    """Return the entries of a table that have a verdict and a gold label, and the predictions for their rows."""
    entries = np.flatnonzero(table.has_verdict & rows.labelled[table.place])
    return entries, Predictions(
        rows.gold[table.place[entries]],
        table.settled[entries],
        table.label[entries] == INCONCLUSIVE,
        table.probability[entries],
    )


def _seconds_per_row(output: Path, checked: int, seconds: float, *, fresh: bool) -> float | None:
    """Add the time of this run to that of earlier ones with the same output; return the seconds per checked row."""
    path = output.with_name(SECONDS_FILE)
    try:
        times: dict[str, tuple[int, float]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or torn by a kill
        times = {}
    rows, spent = (0, 0.0) if fresh else times.get(output.name, (0, 0.0))
    if checked:
        rows, spent = rows + checked, round(spent + seconds, 3)
        path.write_text(json.dumps({**times, output.name: (rows, spent)}, indent=1) + "\n", encoding="utf-8")
    return spent / rows if rows else None
