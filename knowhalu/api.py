"""The public face for Python: check or revise one text or many; models and indexes are loaded once, on first use."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import cached_property, lru_cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, Unpack

from knowhalu.engine.engine import Engine, R
from knowhalu.errors import InputError, counted
from knowhalu.io.frames import read_row, read_rows
from knowhalu.profiles import apply_profile, read_profile
from knowhalu.results import Failure, Outcome, Revision, RevisionOutcome, Verdict
from knowhalu.settings import Settings, merge_settings
from knowhalu.types import Document, Sample

if TYPE_CHECKING:
    from knowhalu.build import BackendPool

Row = Sample | Mapping[str, Any]
Sources = str | Mapping[str, Any] | Document | Iterable[str | Mapping[str, Any] | Document]


class TextFields(TypedDict, total=False):
    """A text and its sources: exactly one of `response`, `answer`, `summary`, `claim`; the names are those of a row of a file."""

    id: str
    response: str
    answer: str
    summary: str
    claim: str
    question: str | None
    document: Sources
    documents: Sources
    knowledge: str | Iterable[str]
    meta: Mapping[str, Any]


class _Session(ABC, Generic[R]):
    """Settings, and an engine that is built on first use; safe to use from several threads and inside a running event loop."""

    revises = False

    def __init__(self, settings: Settings | Path | str | None = None, *, index: Path | str | None = None, **options: Any) -> None:
        """Take `Settings`, the path of a TOML file, or settings by name; those by name take precedence.

        `index` stands for `retrieval={"index": ...}`. A branch such as `retrieval` or `llm` is a mapping of its settings. The
        profile that the settings name is applied. Raises SettingsError for an unknown name or a value that is not allowed.
        """
        chosen = merge_settings(settings, options)
        self.settings = apply_profile(chosen if index is None else merge_settings(chosen, {"retrieval": {"index": index}}))
        self._lock = RLock()
        self._engine: Engine[R] | None = None

    @abstractmethod
    def _build(self) -> Engine[R]:
        """Build the engine with its method and backends."""

    @property
    def engine(self) -> Engine[R]:
        """Return the engine, built on first use; raises SettingsError, ModelError or IndexFormatError."""
        with self._lock:
            if self._engine is None:
                self._engine = self._build()
            return self._engine

    def close(self) -> None:
        """Release models, indexes and connections; the next use loads them again."""
        with self._lock:
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Return what determines the results: version, settings, and hashes of the verifier, the prompts and the index."""
        from knowhalu.build import fingerprint

        return fingerprint(self.settings, revises=self.revises)

    @property
    def llm_identity(self) -> str:
        """Return the language model of the runs, as its server or its folder identifies it; "" without one."""
        from knowhalu.build import llm_identity

        return llm_identity(self.settings, revises=self.revises)

    @property
    def needs_sources(self) -> bool:
        """Tell whether each text needs sources of its own, because there is no index."""
        return not self.settings.retrieval.has_source

    def stream(self, samples: Iterable[Sample]) -> Generator[R | Failure, None, None]:
        """Yield an outcome for each sample; only what is in flight is held. `engine.ordered` sets the order."""
        return self.engine.run(samples, ordered=self.settings.engine.ordered)


class Checker(_Session[Verdict]):
    """Check texts, and revise them, under one set of settings."""

    def __init__(self, settings: Settings | Path | str | None = None, *, index: Path | str | None = None, **options: Any) -> None:
        super().__init__(settings, index=index, **options)
        self._reviser: Reviser | None = None
        self._pool: BackendPool | None = None

    def _build(self) -> Engine[Verdict]:
        from knowhalu.build import build_engine

        return build_engine(self.settings, self._backends())

    def _backends(self) -> "BackendPool":
        """Return the backends that checks and revisions share."""
        from knowhalu.build import BackendPool

        with self._lock:
            self._pool = self._pool or BackendPool()
            return self._pool

    def close(self) -> None:
        """Release models, indexes and connections; the next use loads them again."""
        with self._lock:
            self._engine = self._reviser = self._pool = None

    @property
    def needs_sources(self) -> bool:
        """Tell whether each text needs sources of its own: the method reads sources, and there is no index."""
        from knowhalu.registry import method_card

        return super().needs_sources and method_card(self.settings.method).needs_sources

    def refuse_fitted(self, contents: Iterable[str], place: str) -> None:
        """Refuse rows, by the hashes of their contents, that the profile was fitted on, unless the settings allow them.

        Raises InputError with the number of such rows.
        """
        if self.settings.profile is None or self.settings.allow_fitted:
            return
        profile = self.settings.profile
        if shared := read_profile(profile).data.shared(contents):
            rows = counted(shared, "row")
            remedy = "Check other rows, or, where no figure is to come of it, add --allow-fitted"
            raise InputError(f"{place}: the profile {profile} was fitted on {rows} of it, so figures are optimistic. {remedy}.")

    def check(self, text: Row | str | None = None, /, **fields: Unpack[TextFields]) -> Outcome:
        """Check one text, given as a Sample, a mapping, or by its fields; an error of the check is returned as a Failure.

        Raises InputError where the arguments are not a text, and SettingsError, ModelError or IndexFormatError where a part
        cannot be loaded.
        """
        return next(iter(self.stream([_make_sample(text, fields)])))

    def check_all(self, rows: Iterable[Row]) -> Iterator[Outcome]:
        """Check many rows (Samples, mappings, a pandas DataFrame, a data set); outcomes come as they are ready, in order.

        Rows of known length are all validated before the first is checked. Raises InputError naming the row; for rows of unknown
        length, the iterator raises it after the outcomes before that row.
        """
        return self.stream(read_rows(rows))

    async def acheck(self, text: Row | str | None = None, /, **fields: Unpack[TextFields]) -> Outcome:
        """Check one text as `check` does, without blocking the event loop."""
        async with aclosing(self._astream([_make_sample(text, fields)])) as outcomes:
            return await anext(outcomes)

    async def astream(self, rows: Iterable[Row] | AsyncIterable[Row]) -> AsyncGenerator[Outcome]:
        """Check many rows as `check_all` does, without blocking the event loop; rows may come from an async iterable, too."""
        samples = _read_async(rows) if isinstance(rows, AsyncIterable) else read_rows(rows)
        async with aclosing(self._astream(samples)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def _astream(self, samples: Iterable[Sample] | AsyncIterable[Sample]) -> AsyncGenerator[Outcome]:
        engine = await asyncio.to_thread(lambda: self.engine)  # loading takes seconds
        async with aclosing(engine.stream(samples, ordered=self.settings.engine.ordered)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    @property
    def reviser(self) -> "Reviser":
        """Return a reviser with the same settings and backends."""
        with self._lock:
            if self._reviser is None:
                self._reviser = Reviser(self.settings, backends=self._backends())
                self._reviser._lock = self._lock  # both build their engines on the same backends
            return self._reviser

    def revise(self, text: Row | str | None = None, /, **fields: Unpack[TextFields]) -> RevisionOutcome:
        """Revise one text, given as to `check`, until its sources support it; raises as `check` does."""
        return self.reviser.revise(text, **fields)

    def revise_all(self, rows: Iterable[Row]) -> Iterator[RevisionOutcome]:
        """Revise many rows, given as to `check_all`; raises as `check_all` does."""
        return self.reviser.revise_all(rows)


class Reviser(_Session[Revision]):
    """Revise texts under one set of settings: the method flags sentences, and `revise.how` is the strategy."""

    revises = True

    def __init__(
        self, settings: Settings | Path | str | None = None, *, backends: "BackendPool | None" = None, **options: Any
    ) -> None:
        super().__init__(settings, **options)
        self._backends = backends

    def _build(self) -> Engine[Revision]:
        from knowhalu.build import build_reviser

        return build_reviser(self.settings, self._backends)

    def revise(self, text: Row | str | None = None, /, **fields: Unpack[TextFields]) -> RevisionOutcome:
        """Revise one text, given as to `Checker.check`; an error is returned as a Failure."""
        return next(iter(self.stream([_make_sample(text, fields)])))

    def revise_all(self, rows: Iterable[Row]) -> Iterator[RevisionOutcome]:
        """Revise many rows, given as to `Checker.check_all`."""
        return self.stream(read_rows(rows))


def check(text: Row | str | None = None, /, *, settings: Settings | None = None, **fields: Unpack[TextFields]) -> Outcome:
    """Check one text, given as to `Checker.check`; models stay loaded between calls with the same settings."""
    return _checker(merge_settings(settings, {})).check(text, **fields)


def check_all(rows: Iterable[Row], *, settings: Settings | None = None) -> Iterator[Outcome]:
    """Check many rows, given as to `Checker.check_all`; models stay loaded between calls with the same settings."""
    return _checker(merge_settings(settings, {})).check_all(rows)


def revise(
    text: Row | str | None = None, /, *, settings: Settings | None = None, **fields: Unpack[TextFields]
) -> RevisionOutcome:
    """Revise one text, given as to `Checker.check`; models stay loaded between calls with the same settings."""
    return _checker(merge_settings(settings, {})).revise(text, **fields)


@lru_cache(maxsize=1)
def _checker(settings: Settings) -> Checker:
    return Checker(settings)


def _make_sample(text: Row | str | None, fields: Mapping[str, Any]) -> Sample:
    """Make the sample of the arguments of a call; raises InputError naming the argument."""
    if isinstance(text, Sample):
        if fields:
            raise InputError(f"a Sample was given together with {', '.join(fields)}. Set these fields in the Sample")
        return text
    if text is not None and not isinstance(text, str | Mapping):
        raise InputError(f"the text to check is a {type(text).__name__}. Give a text, a mapping of fields or a Sample")
    if isinstance(text, str) and "response" in fields:
        raise InputError("a text was given together with response. Give one of them")
    first = {"response": text} if isinstance(text, str) else dict(text or {})
    return read_row(first | dict(fields), "the arguments", "1")


async def _read_async(rows: AsyncIterable[Row]) -> AsyncIterator[Sample]:
    number = 0
    async for row in rows:
        number += 1
        yield read_row(row, f"row {number}", str(number))
