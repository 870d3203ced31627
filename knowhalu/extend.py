"""Base classes for extensions: methods, LLM backends and retrievers of other packages. See docs/extending.md.

An extension has a `name`, an `Options` class, which is its branch of the settings, and a one-line `about`. It is found by an
entry point with the same name in `knowhalu.methods`, `knowhalu.llms` or `knowhalu.retrievers`, or by its import path.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from knowhalu.errors import BackendError, ReplyError, StageError
from knowhalu.index.protocols import Embedder, check_k
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Completion, Conversation, Entail, EntailmentPair, Generate, Probabilities, Search, TagSpans, ask
from knowhalu.results import Verdict
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.types import Document, Passage, Record, Sample

__all__ = [
    "BackendError", "Completion", "Conversation", "Document", "Embedder", "Entail", "EntailmentPair", "Generate", "LLMBackend",
    "LLMOptions", "Method", "Passage", "Probabilities", "Record", "ReplyError", "RetrievalOptions", "RetrieverBackend",
    "Sample", "Search", "StageError", "TagSpans", "Verdict", "ask", "check_k",
]  # fmt: skip
NEEDS_SOURCES = "sources, or an index"


class Method:
    """A way to check a text: a generator that yields requests and returns a Verdict.

    `reasoners` are the models that it can use, "encoder" (`Entail` and `TagSpans`), "llm" (`Generate`), or none; the one in use
    is `self.reasoner`. A method without `needs_sources` also checks a text that brings no source where there is no index.
    `stages` maps each reasoner to the options that name other methods; these methods are in `self.methods`, by option.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    needs: ClassVar[str] = NEEDS_SOURCES
    cost: ClassVar[str] = "not stated"
    reasoners: ClassVar[Sequence[str]] = ("encoder",)
    needs_sources: ClassVar[bool] = True
    stages: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    class Options(Record):
        """Options of the method."""

    def __init__(self, options: Any = None, *, reasoner: str = "", methods: Mapping[str, Any] | None = None) -> None:
        self.options = options if options is not None else self.Options()
        self.reasoner, self.methods = reasoner, methods or {}

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        raise NotImplementedError(f"{type(self).__name__} has no `check`")


class LLMBackend:
    """A way to reach a language model.

    A subclass defines `async def answer(self, request: Generate) -> Completion` for a client that awaits, or
    `def answer_many(self, requests: list[Generate]) -> list[Completion | Exception]` for a library that blocks. Both raise
    BackendError or ReplyError with the reason where there is no usable reply. `self.llm` are the settings of the branch `llm`,
    of which a backend reads what applies to it.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""

    class Options(Record):
        """Options of the backend."""

    def __init__(self, options: Any = None, llm: LLMOptions | None = None) -> None:
        self.options, self.llm = options if options is not None else self.Options(), llm or LLMOptions()

    def identity(self) -> Any:
        """Return as JSON text which model answers; it is part of the key of every cached reply. May be async."""
        return json.dumps({"model": self.llm.model, "backend": self.name, "options": self.options.model_dump(mode="json")})

    async def close(self) -> None:
        """Close connections."""


class RetrieverBackend:
    """A way to search for passages.

    `self.retrieval` are the settings of the branch `retrieval`, `self.embedder` is the embedder that they name; it is None
    unless the class `needs_embedder`.
    """

    name: ClassVar[str]
    about: ClassVar[str] = ""
    needs_embedder: ClassVar[bool] = False

    class Options(Record):
        """Options of the retriever."""

    def __init__(self, options: Any = None, retrieval: RetrievalOptions | None = None, embedder: Embedder | None = None) -> None:
        self.options, self.retrieval = options if options is not None else self.Options(), retrieval or RetrievalOptions()
        self.embedder = embedder

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query.

        Raises InputError where `k` is not positive (`check_k`), BackendError where the search fails.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `search`")

    def seal(self) -> str | None:
        """Return a hash of the searched content, which is stored with the outcomes; None where it cannot be known."""
        return None
