"""Searches for the engine: the chunks of a sample's own documents, or an index. Models are loaded when they are first used."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from knowhalu.errors import BackendError
from knowhalu.index.protocols import Embedder, Retriever
from knowhalu.registry import RETRIEVERS, load_extension
from knowhalu.requests import Search
from knowhalu.retrieval.documents import DocumentRetriever, DocumentSearch
from knowhalu.retrieval.options import SERVER_MODES, RetrievalOptions
from knowhalu.types import Passage


class SearchBackend:
    """Answer `Search` requests. `extension_options` are those of a retriever that is an extension.

    Raises IndexFormatError at once where an index does not open, rather than in the middle of a run.
    """

    def __init__(self, options: RetrievalOptions, extension_options: Any = None) -> None:
        self.options, self.extension_options = options, extension_options
        if options.has_source:
            _ = self.index

    @cached_property
    def embedder(self) -> Embedder:
        """Return the embedder that the settings name."""
        from knowhalu.encoder.embedder import load_embedder

        return load_embedder(self.options.embedder)

    @cached_property
    def documents(self) -> DocumentRetriever:
        """Return the retriever over a sample's own documents."""
        return DocumentRetriever(self.embedder, words=self.options.chunk_words)

    @cached_property
    def index(self) -> Retriever | None:
        """Return the retriever over the index or server that the settings name, or None."""
        return self._opened[0] if self.options.has_source else None

    @property
    def seal(self) -> str | None:
        """Return the seal that the searched index had when it was opened; None for a server."""
        return self._opened[1] if self.options.has_source else None

    @cached_property
    def _opened(self) -> tuple[Retriever, str | None]:
        from knowhalu.engine.retriever_factory import open_extension, open_retriever, with_reranker

        if self.options.mode not in RETRIEVERS:
            needs_embedder = getattr(load_extension("retrievers", self.options.mode), "needs_embedder", False)
            extension = open_extension(self.options, self.extension_options, self.embedder if needs_embedder else None)
            return with_reranker(extension, self.options), extension.seal()
        # a search by words, by tokens or by a server needs no embedder, so none is loaded
        embedder = self.embedder if self.options.mode in ("dense", "hybrid", "qdrant") else None
        while True:
            seal = self._present_seal()
            opened = open_retriever(self.options, embedder)
            if seal == self._present_seal():  # otherwise the index was changed meanwhile, and the opened state is unknown
                return opened, seal

    def _present_seal(self) -> str | None:
        if self.options.index is None or self.options.mode in SERVER_MODES:
            return None
        from knowhalu.index.manifest import read_manifest

        return read_manifest(self.options.index).seal

    def answer_many(self, requests: Sequence[Search]) -> list[list[list[Passage]] | Exception]:
        """Answer all searches: one call for those in documents, and one call for each k for those in the index."""
        replies: list[list[list[Passage]] | Exception] = [BackendError("retrieval", _NO_SOURCE_MESSAGE)] * len(requests)
        in_documents = [i for i, r in enumerate(requests) if r.documents]
        if in_documents:
            passages = self.documents.search_many(
                [DocumentSearch(requests[i].documents, requests[i].queries, requests[i].k) for i in in_documents]
            )
            for i, reply in zip(in_documents, passages, strict=True):
                replies[i] = reply
        in_index = [i for i, r in enumerate(requests) if not r.documents]
        if self.index is not None:
            for k in {requests[i].k for i in in_index}:
                same = [i for i in in_index if requests[i].k == k]
                for i, answer in zip(same, _search_all(self.index, [requests[i] for i in same], k), strict=True):
                    replies[i] = answer
        return replies


def _search_all(index: Retriever, requests: Sequence[Search], k: int) -> list[list[list[Passage]] | Exception]:
    """Search for all in one call, or one by one where a server refuses, so that a bad query fails only its own request."""
    try:
        flat = iter(index.search([q for r in requests for q in r.queries], k))
    except BackendError as error:
        if error.reply is None or len(requests) == 1:  # a server that does not reply would be waited for once per request
            return [error] * len(requests)
        return [reply for r in requests for reply in _search_all(index, [r], k)]
    return [[next(flat) for _ in r.queries] for r in requests]


_NO_SOURCE_MESSAGE = (
    "this sample has no documents and no knowledge, and no index is open: give the sample a source, or build an index "
    "(scripts/build_index.py) and name it with --index FOLDER"
)
