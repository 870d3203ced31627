"""Big jobs: samples from a file, outcomes or revisions into a file, and after an interruption on from where it was."""

import os
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

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


class OutcomeSummary(NamedTuple):
    """What is held of an outcome: the label, of a revision its status, or the failure's stage and reason."""

    label: str = ""
    hallucinated: bool | None = None
    kind: str | None = None
    changes: tuple[str, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class RunProgress:
    """How far a run is. `done` counts what earlier runs left (`kept`) too; `seconds` are this run's."""

    done: int
    total: int
    kept: int
    failed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Return outcomes per second in this run."""
        return (self.done - self.kept) / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class RunSummary:
    """What a finished run found: counts over all of its samples, time over this run, scores where there is gold.

    `changes` counts what revisions did to sentences.
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
        """Return how many samples have no verdict."""
        return sum(self.failures.values())

    @property
    def rate(self) -> float:
        """Return checks per second in this run."""
        return (self.samples - self.kept) / self.seconds if self.seconds > 0 else 0.0


def detect(
    checker: Checker,
    input: Path,
    output: Path,
    *,
    restart: bool = False,
    retry_failures: bool = True,
    progress: Callable[[RunProgress], None] | None = None,
) -> RunSummary:
    """Check every sample of `input` and leave exactly one line for each in `output`.

    All of the input is read and validated before a model is loaded. Killed and called again, it goes on where it was.
    Raises InputError for the input, ResumeError where `output` is another run's or in use.
    """
    return _run_file(checker, input, output, restart, retry_failures, progress)


def revise(
    reviser: Reviser,
    input: Path,
    output: Path,
    *,
    restart: bool = False,
    retry_failures: bool = True,
    progress: Callable[[RunProgress], None] | None = None,
) -> RunSummary:
    """Revise every sample of `input` and leave exactly one line for each in `output`, as `detect` does; no score is made."""
    return replace(_run_file(reviser, input, output, restart, retry_failures, progress), score=None, length=None)


def _run_file(
    door: Checker | Reviser,
    input: Path,
    output: Path,
    restart: bool,
    retry_failures: bool,
    progress: Callable[[RunProgress], None] | None,
) -> RunSummary:
    if output.exists() and input.exists() and os.path.samefile(input, output):
        raise InputError(f"{output}: the output is the input. Give another -o.")
    if output.suffix == ".gz":
        raise InputError(f"{output}: outcomes are appended line by line, which gzip cannot do. Leave out .gz.")
    book = RunState(input, needs_sources=door.needs_sources)
    if isinstance(door, Checker):
        door.refuse_fitted((f"{content:016x}" for content in book.inputs.contents), str(input))
    with OutcomeJournal(output, door.fingerprint, restart=restart) as ledger:
        for entry in ledger.entries():
            book.take_entry(entry, retry_failures=retry_failures)
        began, kept = time.perf_counter(), book.done
        if kept < len(book.results):
            ledger.sign(door.answers)
            # closed at once also where writing fails (a full disk): a run left open would keep the process from ending
            with closing(door.stream(book.waiting())) as outcomes:
                for outcome in outcomes:
                    place, content = book.find(outcome.id)
                    result, line = _serialize(outcome, content)
                    book.take(place, result, ledger.append(line))
                    if progress is not None:
                        progress(RunProgress(book.done, len(book.results), kept, book.failed, time.perf_counter() - began))
        if book.done < len(book.results):
            raise KnowHaluError(f"{len(book.results) - book.done} samples got no outcome; run the same command again")
        if not book.is_tidy(ordered=door.settings.engine.ordered):
            ledger.compact(book.offsets if door.settings.engine.ordered else sorted(book.offsets))
        return book.summary(kept, time.perf_counter() - began)


class RunState:
    """What is held in memory of a run: for every sample some hashes and numbers, whatever the length of its text."""

    def __init__(self, path: Path, *, needs_sources: bool) -> None:
        """Read and validate the whole input; raises InputError at the first row that cannot be checked."""
        self.path = path
        self.places: dict[bytes, int] = {}
        self.inputs, self.words, self.golds = InputHashes(), array("L"), array("b")
        for place, sample in enumerate(read_samples(path)):
            if needs_sources and not sample.documents and not sample.knowledge:
                cure = "Add one of them to the row, or an index: --index FOLDER."
                raise InputError(f"{path}, sample {sample.id!r}: has neither documents nor knowledge to check by. {cure}")
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
        """Return the place of a sample in the input, and the hash of its content."""
        place = self.places.get(hash_id(name))
        if place is None:
            raise InputError(f"{self.path}: the sample {name!r} came after the run began. Leave the file alone during a run.")
        return place, self.inputs[place]

    def take(self, place: int, result: OutcomeSummary, offset: int) -> None:
        """Note an outcome and where its line starts."""
        self.results[place] = self._known.setdefault(result, result)
        self.offsets[place] = offset
        self.done += 1
        self.failed += result.failure is not None
        self.written += 1
        self._in_order, self._last = self._in_order and place > self._last, place

    def take_entry(self, entry: JournalEntry, *, retry_failures: bool) -> None:
        """Note an outcome of an earlier run, unless it is to be tried again.

        Raises ResumeError where its sample is gone from the input or has changed.
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
        """Tell whether the file already holds one line for each sample, in the order that is wanted."""
        return self.written == len(self.results) and (self._in_order or not ordered)

    def summary(self, kept: int, seconds: float) -> RunSummary:
        """Count what was found."""
        results = [r for r in self.results if r is not None]
        said = [r for r in results if r.failure is None]
        rows = zip(self.golds, results, self.words, strict=True)
        labelled = [(g == HALLUCINATED, r.hallucinated, w) for g, r, w in rows if g != UNLABELLED and r.failure is None]
        return RunSummary(
            samples=len(results),
            kept=kept,
            seconds=seconds,
            labels=dict(Counter(r.label for r in said).most_common()),
            kinds=dict(Counter(r.kind for r in said if r.kind is not None).most_common()),
            changes=dict(Counter(how for r in said for how in r.changes).most_common()),
            failures=dict(Counter(r.failure for r in results if r.failure is not None).most_common()),
            score=score_labels((gold, found) for gold, found, _ in labelled) if labelled else None,
            length=fit_threshold_rule((gold, count) for gold, _, count in labelled),
        )


def _serialize(outcome: Outcome | Revision, content: str) -> tuple[OutcomeSummary, str]:
    """Return what is held of an outcome, and its line; one that cannot be written, as half a character cannot, is a failure."""
    try:
        return _summarize(outcome), format_outcome(outcome, content)
    except ValueError as error:
        failure = Failure(id=outcome.id, stage="write", reason=f"the outcome cannot be written as JSON ({error})")
        return _summarize(failure), format_outcome(failure, content)


def _summarize(outcome: Outcome | Revision) -> OutcomeSummary:
    if isinstance(outcome, Failure):
        return OutcomeSummary(failure=f"{outcome.stage}: {outcome.reason}"[:160])
    if isinstance(outcome, Revision):
        return OutcomeSummary(outcome.status, changes=_sentence_changes(outcome.status, [c.how for c in outcome.changes]))
    return OutcomeSummary(str(outcome.label), outcome.hallucinated, outcome.kind and str(outcome.kind))


def _summarize_entry(entry: JournalEntry) -> OutcomeSummary:
    fields = entry.fields
    try:
        if "stage" in fields:
            return OutcomeSummary(failure=f"{fields['stage']}: {fields['reason']}"[:160])
        if "status" in fields:
            return OutcomeSummary(
                fields["status"], changes=_sentence_changes(fields["status"], [c["how"] for c in fields["changes"]])
            )
        return OutcomeSummary(fields["label"], fields["hallucinated"], fields["kind"])
    except KeyError as error:
        raise ResumeError(f"{entry.place}: not an outcome of KnowHalu ({error} is missing). {RESTART_HINT}") from error


def _sentence_changes(status: str, hows: list[str]) -> tuple[str, ...]:
    """Return what was done to sentences; nothing was to those of a text that was refused."""
    return tuple(sorted(hows)) if status != "refused" else ()
