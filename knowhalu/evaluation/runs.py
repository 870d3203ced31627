"""Run the methods of a comparison: their specifications, one run on all rows, and its results and costs.

A method is specified as `conli`, `conli:llm` or `strict=factored:encoder[theta=0.7]`. An unfinished run is continued.
"""

import json
import re
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.api import Checker
from knowhalu.batch import RunProgress, detect
from knowhalu.build import BackendPool, build_engine, reasoner_of
from knowhalu.engine.engine import Engine
from knowhalu.errors import SettingsError
from knowhalu.evaluation.labelled_rows import LabelledRows, Spans, merge_spans, read_labelled_rows
from knowhalu.evaluation.metrics import Predictions
from knowhalu.io.outcomes import INCONCLUSIVE, OutcomeTable, read_outcome_table
from knowhalu.profiles import apply_profile, read_profile
from knowhalu.registry import METHODS, method_card
from knowhalu.results import Finding, Outcome, Segment, Usage, Verdict
from knowhalu.settings import Settings, read_settings
from knowhalu.types import Label, Sample

SECONDS_FILE = "seconds.json"
SAME_ROWS = "the same rows"
"""The rows on which a rule is fitted where there are no others."""
FORMS_AGREEMENT = {1: "agree", 0: "disagree", -1: "only one was judged by"}
"""Names of the values of the column `agree` of an `OutcomeTable`."""
SPEC_SYNTAX = "[NAME=]METHOD[:REASONER][[SETTING=VALUE,...]], such as conli:llm or strict=factored[theta=0.7]"
RUN_SETTINGS = ("profile", "allow_fitted")
"""Settings without a dot that belong to the whole run, not to a method."""
_COMMA = re.compile(r",(?![^\[]*\])")
_SPEC = re.compile(r"(?:([\w.-]+)=)?([\w-]+|\w+(?:\.\w+)+:\w+)(?::([\w-]+))?(?:\[(.*)\])?", re.DOTALL)
"""A spec: a method by its name, or by an import path whose module has a dot; `a:b` is a method and its reasoner."""


class MethodSpec(NamedTuple):
    """A method of a comparison, its reasoner, and its own settings (`a.b=c`)."""

    name: str
    method: str
    reasoner: str | None = None
    pairs: tuple[str, ...] = ()

    def settings(self, file: Path | None, pairs: Iterable[str], *, profiled: bool = True) -> Settings:
        """Return the settings of its run, its own taking precedence; raises SettingsError naming the method.

        A profile in the common settings is used if it was made for this method, and never if not `profiled`.
        """
        reasoner = (f"reasoner={json.dumps(self.reasoner)}",) if self.reasoner else ()
        try:
            settings = read_settings(file, (*pairs, f"method={json.dumps(self.method)}", *reasoner, *self.pairs))
            usable = profiled and self._is_for(settings.profile)
            settings = apply_profile(settings if usable else settings.model_copy(update={"profile": None}))
            reasoner_of(settings)
        except SettingsError as error:
            raise SettingsError(f"{self.name}: {error}".replace("--reasoner ", f"{self.method}:")) from error
        return settings

    def _is_for(self, profile: Path | None) -> bool:
        """Tell whether a profile is this method's own, or a common one that was made for it."""
        if profile is None or any(pair.startswith("profile=") for pair in self.pairs):
            return True
        fitted = read_profile(profile)
        return fitted.method == self.method and self.reasoner in (None, fitted.settings.get("reasoner", self.reasoner))


def parse_specs(texts: Iterable[str]) -> list[MethodSpec]:
    """Parse methods separated by commas; raises SettingsError for an invalid one, and for two with one name."""
    specs = [_spec(text.strip()) for several in texts for text in _COMMA.split(several) if text.strip()]
    if not specs:
        raise SettingsError(f"no method is named. Write them as {SPEC_SYNTAX}")
    for spec in specs:
        if spec.name in METHODS and spec.name != spec.method:
            raise SettingsError(f"{spec.name!r} is the name of a method. Give {spec.method} another name")
        if sum(other.name.casefold() == spec.name.casefold() for other in specs) > 1:
            raise SettingsError(f"two methods would be called {spec.name!r}. Name one of them: other={spec.method}")
    return specs


def _spec(text: str) -> MethodSpec:
    match = _SPEC.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text!r} is no method. Write it as {SPEC_SYNTAX}")
    name, method, reasoner, inner = match.groups()
    branch = method_card(method).options
    pairs = tuple(_pair(pair.strip(), branch, text) for pair in (inner or "").split(",") if pair.strip())
    usual = "-".join([method, *([reasoner] if reasoner else []), *(p.removeprefix(f"{branch}.") for p in pairs)])
    return MethodSpec(name or re.sub(r"[^\w.-]+", "-", usual), method, reasoner, pairs)


def _pair(text: str, branch: str, spec: str) -> str:
    key, equals, value = text.partition("=")
    if not equals or key.strip() in ("method", "reasoner"):
        raise SettingsError(f"{spec!r}: {text!r} is no setting of a method. Write it as {SPEC_SYNTAX}")
    whole = "." in key or key.strip() in RUN_SETTINGS
    return f"{key.strip() if whole else f'{branch}.{key.strip()}'}={value.strip()}"


class MethodRun(NamedTuple):
    """A method of a comparison with its settings; `fitted` names the rows on which a baseline was fitted, if it was."""

    spec: MethodSpec
    settings: Settings
    fitted: str | None = None


class RunResult(NamedTuple):
    """The predictions of a method for the rows at `places`, its mean cost for each of them, and their traits by key.

    `sequential` tells that each row was checked alone, and no reply came from the cache: its seconds are those of a single check.
    """

    places: NDArray[np.intp]
    predictions: Predictions
    failures: dict[str, int]
    cost: dict[str, float | None]
    traits: Mapping[str, Sequence[Hashable]] = {}
    sequential: bool = False


class RunTime(NamedTuple):
    """The seconds of all runs with one output, the rows that they checked, and the most checks that ran at once (0: unknown)."""

    rows: int = 0
    seconds: float = 0.0
    in_flight: int = 0

    @property
    def per_row(self) -> float | None:
        """Return the seconds of a row; None where none was checked."""
        return self.seconds / self.rows if self.rows else None


class TimedChecker(Checker):
    """A checker that shares backends with others, and measures the time of its checks without that of loading."""

    def __init__(self, settings: Settings, pool: BackendPool) -> None:
        super().__init__(settings)
        self.pool, self.seconds = pool, 0.0

    @cached_property
    def engine(self) -> Engine[Verdict]:
        """Return the engine, built on first use."""
        return build_engine(self.settings, self.pool)

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
    now = RunTime(summary.samples - summary.kept, checker.seconds, checker.settings.engine.in_flight)
    spent = _add_time(output, now, fresh=not summary.kept)
    result = read_run_result(output, rows)
    sequential = spent.in_flight == 1 and not result.cost["reused"]
    return result._replace(failures=summary.failures, cost={**result.cost, "seconds": spent.per_row}, sequential=sequential)


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
        rows.gold[table.place[entries]], table.settled[entries], table.label[entries] == INCONCLUSIVE, table.probability[entries]
    )


def read_predictions(input: Path, output: Path) -> Predictions:
    """Return the predictions of a finished run on labelled rows, in the order of its outcomes."""
    rows = read_labelled_rows(input)
    return table_predictions(read_outcome_table(output, rows.row_index), rows)[1]


def _add_time(output: Path, now: RunTime, *, fresh: bool) -> RunTime:
    """Add the time of this run to that of earlier ones with the same output, and return both together."""
    path = output.with_name(SECONDS_FILE)
    try:
        times: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or torn by a kill
        times = {}
    before = RunTime() if fresh or output.name not in times else RunTime(*times[output.name])
    if not now.rows:
        return before
    # runs of earlier versions have not stored how many checks ran at once
    known = before.in_flight or not before.rows
    in_flight = max(before.in_flight, now.in_flight) if known else 0
    spent = RunTime(before.rows + now.rows, round(before.seconds + now.seconds, 3), in_flight)
    path.write_text(json.dumps({**times, output.name: spent}, indent=1) + "\n", encoding="utf-8")
    return spent


def flagged_spans(verdict: Verdict) -> list[tuple[int, int]]:
    """Return the spans of the response that a verdict flags as unsupported: disjoint, in their order.

    Of an INCORRECT segment these are its flagged words; without those its INCORRECT findings, or else all of it, and of either
    only the characters that evidence contradicts, where it names some. A text without segments (an off-target answer) has none.
    """
    return merge_spans(span for segment in verdict.segments for span in _of_segment(segment))


def count_errors(verdict: Verdict) -> int:
    """Count the errors of a verdict: INCORRECT findings, INCORRECT segments without one, or an off-target answer."""
    if not verdict.segments:
        return int(verdict.label is Label.INCORRECT)
    return sum(
        len([f for f in _segment_errors(s) if f.unit != "words"]) or int(s.label is Label.INCORRECT) for s in verdict.segments
    )


def span_overlap(found: Spans, gold: Spans) -> tuple[int, int, int]:
    """Count the characters in both, in the first, and in the second of two lists of disjoint, sorted spans."""
    both = i = j = 0
    while i < len(found) and j < len(gold):
        both += max(0, min(found[i][1], gold[j][1]) - max(found[i][0], gold[j][0]))
        if found[i][1] < gold[j][1]:
            i += 1
        else:
            j += 1
    return both, _length(found), _length(gold)


def _of_segment(segment: Segment) -> Iterable[tuple[int, int]]:
    if segment.label is not Label.INCORRECT:
        return
    wrong = _segment_errors(segment)
    if words := [(f.start, f.end) for f in wrong if f.unit == "words"]:
        yield from words
        return
    against = [(e.response_start, e.response_end) for e in segment.evidence if e.relation == "contradicts"]
    for start, end in [(f.start, f.end) for f in wrong] or [(segment.start, segment.end)]:
        inside = [(max(start, a), min(end, b)) for a, b in against if max(start, a) < min(end, b)]
        yield from inside or [(start, end)]


def _segment_errors(segment: Segment) -> list[Finding]:
    return [f for f in segment.findings if f.label is Label.INCORRECT]


def _length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def verdict_traits(table: OutcomeTable) -> dict[str, list[Hashable]]:
    """Return the traits of every outcome by key: steps of both forms, segments, and whether both forms of knowledge agree."""
    return {
        "steps": table.all_steps.tolist(),
        "segments": table.segments.tolist(),
        "forms": [FORMS_AGREEMENT[agree] for agree in table.agree.tolist()],
    }
