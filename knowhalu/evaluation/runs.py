"""One method over all rows: run where it is not finished, and read back what it said and what it cost."""

import json
import time
from collections.abc import Callable, Generator, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from knowhalu.api import Checker
from knowhalu.batch import RunProgress, detect
from knowhalu.build import BackendPool, build_engine
from knowhalu.engine.engine import Engine
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Predictions
from knowhalu.evaluation.slices import VerdictTraits, verdict_traits
from knowhalu.evaluation.spans import count_errors, flagged_spans, span_overlap
from knowhalu.io.outcomes import parse_outcome
from knowhalu.io.samples import hash_id
from knowhalu.results import Outcome, Usage, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Sample

SECONDS_FILE = "seconds.json"


class RunResult(NamedTuple):
    """What a method said of the rows that have a verdict, at which places, what it cost on average, and the verdicts' traits."""

    places: np.ndarray[tuple[int], np.dtype[np.intp]]
    said: Predictions
    failures: dict[str, int]
    cost: dict[str, float | None]
    traits: tuple[VerdictTraits, ...] = ()


class TimedChecker(Checker):
    """A checker whose backends may be kept from others, and that times its checks without the loading before."""

    def __init__(self, settings: Settings, kept: BackendPool) -> None:
        super().__init__(settings)
        self.kept, self.seconds = kept, 0.0

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
    """Check what `output` has no verdict of yet, and read all of it."""
    summary = detect(checker, rows.path, output, restart=restart, progress=progress)
    seconds = _seconds_per_row(output, summary.samples - summary.kept, checker.seconds, anew=not summary.kept)
    told = read_run_result(output, rows)
    return told._replace(failures=summary.failures, cost={**told.cost, "seconds": seconds})


def read_run_result(path: Path, rows: LabelledRows) -> RunResult:
    """Read the outcomes of a finished run; what has no verdict is left out."""
    places, settled, abstained, probability, wrong, characters, traits = [], [], [], [], [], [], []
    total = dict.fromkeys(Usage.model_fields, 0)
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for verdict in (v for line in lines if isinstance(v := parse_outcome(line), Verdict)):
            place = rows.places[hash_id(verdict.id)]
            said, p, gold = verdict.hallucinated, verdict.probability, rows.spans[place]
            places.append(place)
            settled.append(p > 0.5 if said is None else said)
            abstained.append(said is None)
            probability.append(p)
            wrong.append(count_errors(verdict))
            characters.append((0, 0, 0) if gold is None else span_overlap(flagged_spans(verdict), gold))
            traits.append(verdict_traits(verdict))
            for name in total:
                total[name] += getattr(verdict.usage, name)
    found = np.array(places, dtype=np.intp)
    said_of = Predictions(
        rows.gold[found], np.array(settled, dtype=np.bool_), np.array(abstained, dtype=np.bool_),
        np.array(probability, dtype=np.float64), np.array(wrong, dtype=np.float64),
        np.array(characters, dtype=np.float64).reshape(-1, 3) if any(s is not None for s in rows.spans) else None,
    )  # fmt: skip
    cost = {name: n / len(places) if places else None for name, n in total.items()}
    return RunResult(found, said_of, {}, cost, tuple(traits))


def _seconds_per_row(output: Path, checked: int, seconds: float, *, anew: bool) -> float | None:
    """Add the time of this run to that of earlier ones into the same file; return seconds per checked row."""
    path = output.with_name(SECONDS_FILE)
    try:
        times: dict[str, tuple[int, float]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or torn by a kill
        times = {}
    rows, spent = (0, 0.0) if anew else times.get(output.name, (0, 0.0))
    if checked:
        rows, spent = rows + checked, round(spent + seconds, 3)
        path.write_text(json.dumps({**times, output.name: (rows, spent)}, indent=1) + "\n", encoding="utf-8")
    return spent / rows if rows else None
