"""The front door for Python: check or revise one text or many, with models and indexes loaded once, when first needed."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic

from pydantic import ValidationError

from knowhalu.engine.engine import Engine, R
from knowhalu.errors import InputError
from knowhalu.profiles import apply_profile, read_profile
from knowhalu.results import Failure, Outcome, Revision, RevisionOutcome, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Document, Sample


class _Session(ABC, Generic[R]):
    """What checking and revising share: settings, and an engine that is built when it is first needed."""

    revises = False

    def __init__(self, settings: Settings | None = None) -> None:
        """Take settings, with those of the profile that they name; raises SettingsError where that cannot be used."""
        self.settings = apply_profile(settings or Settings())

    @property
    @abstractmethod
    def engine(self) -> Engine[R]:
        """Return the engine, with its method and backends built on first use."""

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Return what decides the results: version, settings, and the hashes of the verifier, the prompts and the index."""
        from knowhalu.build import fingerprint

        return fingerprint(self.settings, revises=self.revises)

    @property
    def answers(self) -> str:
        """Return which language model answers, as its server or its folder tells; "" where none thinks."""
        from knowhalu.build import llm_identity

        return llm_identity(self.settings, revises=self.revises)

    @property
    def needs_sources(self) -> bool:
        """Tell whether a text must bring sources of its own: there is no index."""
        return not self.settings.retrieval.has_source

    def stream(self, samples: Iterable[Sample]) -> Generator[R | Failure, None, None]:
        """Take many samples; outcomes come as they are ready, in order if the settings say so."""
        return self.engine.run(samples, ordered=self.settings.engine.ordered)


class Checker(_Session[Verdict]):
    """Check samples under one set of settings."""

    @cached_property
    def engine(self) -> Engine[Verdict]:
        """Return the engine, with its method and backends built on first use."""
        from knowhalu.build import build_engine

        return build_engine(self.settings)

    @property
    def needs_sources(self) -> bool:
        """Tell whether a text must bring sources of its own: the method checks by some, and there is no index."""
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
            rows = f"{shared:,} row{'s' * (shared > 1)}"
            cure = "Check other rows, or, where no figure is to come of it, add --allow-fitted"
            raise InputError(f"{place}: the profile {profile} was fitted on {rows} of it, so figures look too good. {cure}.")

    def check(self, sample: Sample) -> Outcome:
        """Check one sample; what goes wrong comes back as a Failure with its reason."""
        return next(iter(self.stream([sample])))


class Reviser(_Session[Revision]):
    """Revise samples under one set of settings: the method finds the faults, `revise.how` says how they are mended."""

    revises = True

    @cached_property
    def engine(self) -> Engine[Revision]:
        """Return the engine, with its detector, writer and backends built on first use."""
        from knowhalu.build import build_reviser

        return build_reviser(self.settings)

    def revise(self, sample: Sample) -> RevisionOutcome:
        """Revise one sample; what goes wrong comes back as a Failure with its reason."""
        return next(iter(self.stream([sample])))


def check(
    response: str | None = None,
    *,
    question: str | None = None,
    answer: str | None = None,
    summary: str | None = None,
    claim: str | None = None,
    document: str | None = None,
    documents: str | Mapping[str, Any] | Document | Iterable[Any] = (),
    knowledge: str | Iterable[str] = (),
    settings: Settings | None = None,
) -> Outcome:
    """Check one text: an answer to a question, a summary of a document, a claim, or a `response` in general.

    Raises InputError where the arguments do not make a sample, SettingsError, ModelError or IndexFormatError where the
    set-up is at fault.
    """
    sample = _make_sample((response, answer, summary, claim), question, document, documents, knowledge)
    return Checker(settings).check(sample)


def revise(
    response: str | None = None,
    *,
    question: str | None = None,
    answer: str | None = None,
    summary: str | None = None,
    claim: str | None = None,
    document: str | None = None,
    documents: str | Mapping[str, Any] | Document | Iterable[Any] = (),
    knowledge: str | Iterable[str] = (),
    settings: Settings | None = None,
) -> RevisionOutcome:
    """Revise one text so that its sources bear it out; the text is given as to `check`.

    Raises InputError where the arguments do not make a sample, SettingsError, ModelError or IndexFormatError where the
    set-up is at fault.
    """
    sample = _make_sample((response, answer, summary, claim), question, document, documents, knowledge)
    return Reviser(settings).revise(sample)


def _make_sample(
    texts: Iterable[str | None],
    question: str | None,
    document: str | None,
    documents: Any,
    knowledge: Any,
) -> Sample:
    """Make the sample of the arguments; raises InputError where they do not make one."""
    given = [t for t in texts if t is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of response, answer, summary, claim (got {len(given)})")
    if isinstance(documents, Mapping) and "text" not in documents:
        raise InputError('documents: an object without "text". Give {"text": ...}, or a list of texts or documents')
    if isinstance(knowledge, Mapping):
        raise InputError("knowledge: an object where texts are needed. Give a text or a list of texts")
    sources = [*([document] if document is not None else []), *_as_list(documents)]
    known = _as_list(knowledge)
    try:
        return Sample(id="1", response=given[0], question=question, documents=sources, knowledge=known)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc'])) or 'sample'}: {first['msg']}") from error


def _as_list(given: Any) -> list[Any]:
    """Return one text or document as a list of one; what holds several, as a list."""
    return [given] if isinstance(given, str | Mapping | Document) else list(given)


def check_all(samples: Iterable[Sample], *, settings: Settings | None = None) -> Iterator[Outcome]:
    """Check many samples; a generator that holds only what is in flight."""
    return Checker(settings).stream(samples)
