"""Jobs: check or revise the rows of a file into another file; an interrupted job continues where it stopped."""

import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

from knowhalu.api import Checker, Reviser
from knowhalu.errors import InputError, KnowHaluError, ResumeError
from knowhalu.evaluation.metrics import Score, ThresholdRule, fit_threshold_rule, score_labels
from knowhalu.io.journal import RESTART_HINT, JournalEntry, OutcomeJournal
from knowhalu.io.outcomes import format_outcome
from knowhalu.io.samples import InputHashes, hash_id, read_samples
from knowhalu.results import Failure, Outcome, Revision
from knowhalu.text.sentences import word_count
from knowhalu.types import Sample

UNLABELLED, FAITHFUL, HALLUCINATED = 0, 1, 2
MIN_ESTIMATED_OUTCOMES, MIN_ESTIMATED_SECONDS = 3, 1.0
"""Outcomes after the first one, and seconds, from which the remaining time of a run is estimated."""


class OutcomeSummary(NamedTuple):
    """The part of an outcome that is kept in memory: the label or the status of a revision, or the failure's stage and reason."""

    label: str = ""
    hallucinated: bool | None = None
    kind: str | None = None
    changes: tuple[str, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run. `done` includes the outcomes of earlier runs (`kept`); `seconds` are of this run.

    `waited` are the seconds until its first outcome, in which the models were loaded and the first checks ran.
    """

    done: int
    total: int
    kept: int
    failed: int
    seconds: float
    waited: float = 0.0

    @property
    def rate(self) -> float:
        """Return outcomes per second in this run."""
        return (self.done - self.kept) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimate the remaining time by the outcomes since the first one; None where these are too few to tell."""
        since, seconds = self.done - self.kept - 1, self.seconds - self.waited
        if since < MIN_ESTIMATED_OUTCOMES or seconds < MIN_ESTIMATED_SECONDS:
            return None
        return (self.total - self.done) * seconds / since


@dataclass(frozen=True)
class RunSummary:
    """The result of a finished run: counts over all samples, time of this run, scores where there are gold labels.

    `changes` counts the changes of revisions by kind.
    """

    samples: int
    kept: int
    seconds: float
    labels: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    score: Score | None = None
    length: ThresholdRule | None = None

    @property
    def failed(self) -> int:
        """Return the number of samples without a verdict."""
        return sum(self.failures.values())

    @property
    def rate(self) -> float:
        """Return checks per second in this run."""
        return (self.samples - self.kept) / self.seconds if self.seconds > 0 else 0.0


class JobOptions(TypedDict, total=False):
    """How a job runs: whether it starts again, whether it retries failures (by default), and who is told of its progress."""

    restart: bool
    retry_failures: bool
    progress: Callable[[RunProgress], None] | None


def detect(checker: Checker, input: Path, output: Path, **options: Unpack[JobOptions]) -> RunSummary:
    """Check every sample of `input`, and write exactly one line for each to `output`.

    The whole input is validated before a model is loaded. A run that was interrupted or killed continues on the next call.
    Raises InputError for the input, and ResumeError where `output` belongs to another run or is in use.
    """
    return _run_file(checker, input, output, **options)


def revise(reviser: Reviser, input: Path, output: Path, **options: Unpack[JobOptions]) -> RunSummary:
    """Revise every sample of `input`, and write exactly one line for each to `output`, as `detect` does; without scores."""
    return replace(_run_file(reviser, input, output, **options), score=None, length=None)


def _run_file(
    checker: Checker | Reviser,
    input: Path,
    output: Path,
    *,
    restart: bool = False,
    retry_failures: bool = True,
    progress: Callable[[RunProgress], None] | None = None,
) -> RunSummary:
    if output.exists() and input.exists() and os.path.samefile(input, output):
        raise InputError(f"{output}: the output is the input. Give another -o.")
    if output.suffix == ".gz":
        raise InputError(f"{output}: outcomes are appended line by line, which a gzip file does not allow. Leave out .gz.")
    state = RunState(input, needs_sources=checker.needs_sources)
    if isinstance(checker, Checker):
        checker.refuse_fitted((f"{content:016x}" for content in state.inputs.contents), str(input))
    with OutcomeJournal(output, checker.fingerprint, restart=restart) as journal:
        for entry in journal.entries():
            state.take_entry(entry, retry_failures=retry_failures)
        started, kept, waited = time.perf_counter(), state.done, 0.0
        if kept < len(state.results):
            journal.sign(checker.llm_identity)
            # closed also where writing fails (a full disk): an open run would keep the process from ending
            with closing(checker.stream(state.waiting())) as outcomes:
                for outcome in outcomes:
                    place, content = state.find(outcome.id)
                    result, line = _serialize(outcome, content)
                    state.take(place, result, journal.append(line))
                    seconds = time.perf_counter() - started
                    waited = waited or seconds
                    if progress is not None:
                        progress(RunProgress(state.done, len(state.results), kept, state.failed, seconds, waited))
        if state.done < len(state.results):
            raise KnowHaluError(f"{len(state.results) - state.done} samples got no outcome. Run the same command again")
        if not state.is_tidy(ordered=checker.settings.engine.ordered):
            journal.compact(state.offsets if checker.settings.engine.ordered else sorted(state.offsets))
        return state.summary(kept, time.perf_counter() - started)


class RunState:
    """The state of a run in memory: a few hashes and numbers for each sample, whatever the length of its text."""

    def __init__(self, path: Path, *, needs_sources: bool) -> None:
        """Read and validate the whole input; raises InputError at the first row that cannot be checked."""
        self.path = path
        self.places: dict[bytes, int] = {}
        self.inputs, self.words, self.golds = InputHashes(), array("L"), array("b")
        for place, sample in enumerate(read_samples(path)):
            if needs_sources and not sample.documents and not sample.knowledge:
                remedy = "Add one of them to the row, or an index: --index FOLDER."
                raise InputError(f"{path}, sample {sample.id!r}: has neither documents nor knowledge. {remedy}")
            self.places[hash_id(sample.id)] = place
            self.inputs.add(sample)
            self.words.append(word_count(sample.response))
            self.golds.append({None: UNLABELLED, "faithful": FAITHFUL, "hallucinated": HALLUCINATED}[sample.label])
        self.results: list[OutcomeSummary | None] = [None] * len(self.places)
        self.offsets = array("q", [-1]) * len(self.places)
        self.written = self.done = self.failed = 0
        self._in_order, self._last = True, -1
        self._known: dict[OutcomeSummary, OutcomeSummary] = {}

    def find(self, name: str) -> tuple[int, str]:
        """Return the place of a sample in the input, and the hash of its content; raises InputError for an unknown sample."""
        place = self.places.get(hash_id(name))
        if place is None:
            raise InputError(f"{self.path}: the sample {name!r} was added during the run. Do not change the file during a run.")
        return place, self.inputs[place]

    def take(self, place: int, result: OutcomeSummary, offset: int) -> None:
        """Record an outcome and the offset of its line."""
        self.results[place] = self._known.setdefault(result, result)
        self.offsets[place] = offset
        self.done += 1
        self.failed += result.failure is not None
        self.written += 1
        self._in_order, self._last = self._in_order and place > self._last, place

    def take_entry(self, entry: JournalEntry, *, retry_failures: bool) -> None:
        """Record an outcome of an earlier run, unless it is to be retried.

        Raises ResumeError where its sample was removed from the input or has changed.
        """
        name = str(entry.fields.get("id"))
        place = self.places.get(hash_id(name))
        if place is None:
            raise ResumeError(
                f"{entry.place}: the sample {name!r} is not in {self.path}; it is another run's output. {RESTART_HINT}"
            )
        if not self.inputs.is_same(place, entry.fields.get("input")):
            raise ResumeError(f"{entry.place}: the sample {name!r} has changed in {self.path} since then. {RESTART_HINT}")
        earlier = self.results[place]
        if earlier is not None:
            self.done -= 1
            self.failed -= earlier.failure is not None
        self.take(place, _summarize_entry(entry), entry.offset)
        if retry_failures and "stage" in entry.fields:
            self.results[place] = None
            self.done -= 1
            self.failed -= 1

    def waiting(self) -> Iterator[Sample]:
        """Yield the samples that have no outcome yet."""
        return (s for s in read_samples(self.path) if self.results[self.find(s.id)[0]] is None)

    def is_tidy(self, *, ordered: bool) -> bool:
        """Tell whether the file holds one line for each sample, in the input's order if `ordered`."""
        return self.written == len(self.results) and (self._in_order or not ordered)

    def summary(self, kept: int, seconds: float) -> RunSummary:
        """Return the summary of the run; `kept` outcomes are from earlier runs."""
        results = [r for r in self.results if r is not None]
        decided = [r for r in results if r.failure is None]
        rows = zip(self.golds, results, self.words, strict=True)
        labelled = [(g == HALLUCINATED, r.hallucinated, w) for g, r, w in rows if g != UNLABELLED and r.failure is None]
        return RunSummary(
            samples=len(results),
            kept=kept,
            seconds=seconds,
            labels=dict(Counter(r.label for r in decided).most_common()),
            kinds=dict(Counter(r.kind for r in decided if r.kind is not None).most_common()),
            changes=dict(Counter(how for r in decided for how in r.changes).most_common()),
            failures=dict(Counter(r.failure for r in results if r.failure is not None).most_common()),
            score=score_labels((gold, hallucinated) for gold, hallucinated, _ in labelled) if labelled else None,
            length=fit_threshold_rule((gold, count) for gold, _, count in labelled),
        )


def _serialize(outcome: Outcome | Revision, content: str) -> tuple[OutcomeSummary, str]:
    """Return the summary of an outcome and its line; an outcome that cannot be written (a lone surrogate) becomes a Failure."""
    try:
        return _summarize(outcome), format_outcome(outcome, content)
    except ValueError as error:
        failure = Failure(id=outcome.id, stage="write", reason=f"the outcome cannot be written as JSON ({error})")
        return _summarize(failure), format_outcome(failure, content)


def _summarize(outcome: Outcome | Revision) -> OutcomeSummary:
    if isinstance(outcome, Failure):
        return OutcomeSummary(failure=f"{outcome.stage}: {outcome.reason}"[:160])
    if isinstance(outcome, Revision):
        return _summarize_revision(outcome.status, (change.how for change in outcome.changes))
    return OutcomeSummary(str(outcome.label), outcome.hallucinated, outcome.kind and str(outcome.kind))


def _summarize_entry(entry: JournalEntry) -> OutcomeSummary:
    fields = entry.fields
    try:
        if "stage" in fields:
            return OutcomeSummary(failure=f"{fields['stage']}: {fields['reason']}"[:160])
        if "status" in fields:
            return _summarize_revision(fields["status"], (change["how"] for change in fields["changes"]))
        return OutcomeSummary(fields["label"], fields["hallucinated"], fields["kind"])
    except KeyError as error:
        raise ResumeError(f"{entry.place}: not an outcome of KnowHalu ({error} is missing). {RESTART_HINT}") from error


def _summarize_revision(status: str, hows: Iterable[str]) -> OutcomeSummary:
    """Return the summary of a revision by the kinds of its changes; a refused text was not changed."""
    return OutcomeSummary(status, changes=tuple(sorted(hows)) if status != "refused" else ())
