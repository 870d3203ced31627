"""The front door for Python: check one text or many, with models and indexes loaded once, when first needed."""

from collections.abc import Generator, Iterable, Iterator
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from knowhalu.engine import Engine
from knowhalu.errors import InputError
from knowhalu.options import Settings
from knowhalu.types import Sample
from knowhalu.verdicts import Outcome


class Checker:
    """Check samples under one set of settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()

    @cached_property
    def engine(self) -> Engine:
        """Return the engine, with its method and backends built on first use."""
        from knowhalu.parts import build_engine

        return build_engine(self.settings)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """Return what decides the results: version, settings, and the hashes of the model and the index."""
        from knowhalu.parts import fingerprint

        return fingerprint(self.settings)

    @property
    def needs_sources(self) -> bool:
        """Tell whether a text must bring sources of its own: the method checks by some, and there is no index."""
        from knowhalu.names import method_card

        return not self.settings.retrieval.has_source and method_card(self.settings.method).sources

    def check(self, sample: Sample) -> Outcome:
        """Check one sample; what goes wrong comes back as a Failure with its reason."""
        return next(iter(self.stream([sample])))

    def stream(self, samples: Iterable[Sample]) -> Generator[Outcome, None, None]:
        """Check many samples; outcomes come as they are ready, in order if the settings say so."""
        return self.engine.run(samples, ordered=self.settings.engine.ordered)


def check(
    response: str | None = None,
    *,
    question: str | None = None,
    answer: str | None = None,
    summary: str | None = None,
    claim: str | None = None,
    document: str | None = None,
    documents: Iterable[Any] = (),
    knowledge: str | Iterable[str] = (),
    settings: Settings | None = None,
) -> Outcome:
    """Check one text: an answer to a question, a summary of a document, a claim, or a `response` in general.

    Raises InputError where the arguments do not make a sample, SettingsError, ModelError or IndexFormatError where the
    set-up is at fault.
    """
    given = [t for t in (response, answer, summary, claim) if t is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of response, answer, summary, claim (got {len(given)})")
    sources = [*([document] if document is not None else []), *documents]
    known = [knowledge] if isinstance(knowledge, str) else list(knowledge)
    try:
        sample = Sample(id="1", response=given[0], question=question, documents=sources, knowledge=known)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc'])) or 'sample'}: {first['msg']}") from error
    return Checker(settings).check(sample)


def check_all(samples: Iterable[Sample], *, settings: Settings | None = None) -> Iterator[Outcome]:
    """Check many samples; a generator that holds only what is in flight."""
    return Checker(settings).stream(samples)
