"""Searches for the engine: a sample's own documents chunk by chunk, or an index; opened when first asked for."""

from collections.abc import Sequence
from functools import cached_property

from knowhalu.encoder.embedder import load_embedder
from knowhalu.errors import BackendError
from knowhalu.index.protocols import Embedder, Retriever
from knowhalu.requests import Search
from knowhalu.retrieval.documents import DocumentRetriever, DocumentSearch
from knowhalu.retrieval.options import SERVER_MODES, RetrievalOptions
from knowhalu.types import Passage


class SearchBackend:
    """Answer `Search` requests; an index that does not open is an IndexFormatError at once, not in the middle of a run."""

    def __init__(self, options: RetrievalOptions) -> None:
        self.options = options
        if options.has_source:
            _ = self.index

    @cached_property
    def embedder(self) -> Embedder:
        """Return the embedder that the settings name."""
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
        """Return the seal of the index that is searched, as it was opened; None for a server."""
        return self._opened[1] if self.options.has_source else None

    @cached_property
    def _opened(self) -> tuple[Retriever, str | None]:
        from knowhalu.engine.retriever_factory import open_retriever

        # a search by words, by tokens or by a server needs no embedder: it is loaded where a mode asks for it
        embedder = self.embedder if self.options.mode in ("dense", "hybrid", "qdrant") else None
        while True:
            seal = self._present_seal()
            opened = open_retriever(self.options, embedder)
            if seal == self._present_seal():  # else it was changed meanwhile, and which state was opened is unknown
                return opened, seal

    def _present_seal(self) -> str | None:
        if self.options.index is None or self.options.mode in SERVER_MODES:
            return None
        from knowhalu.index.manifest import read_manifest

        return read_manifest(self.options.index).seal

    def answer_many(self, requests: Sequence[Search]) -> list[list[list[Passage]] | Exception]:
        """Answer all searches together: one call for the documents', one for the index's of the same k."""
        replies: list[list[list[Passage]] | Exception] = [BackendError("retrieval", _NO_SOURCE_MESSAGE)] * len(requests)
        own = [i for i, r in enumerate(requests) if r.documents]
        if own:
            found = self.documents.search_many(
                [DocumentSearch(requests[i].documents, requests[i].queries, requests[i].k) for i in own]
            )
            for i, passages in zip(own, found, strict=True):
                replies[i] = passages
        others = [i for i, r in enumerate(requests) if not r.documents]
        if self.index is not None:
            for k in {requests[i].k for i in others}:
                same = [i for i in others if requests[i].k == k]
                for i, reply in zip(same, _search_all(self.index, [requests[i] for i in same], k), strict=True):
                    replies[i] = reply
        return replies


def _search_all(index: Retriever, requests: Sequence[Search], k: int) -> list[list[list[Passage]] | Exception]:
    """Ask for all in one call, or one by one where a server refuses that: one bad query is no fault of the others."""
    try:
        flat = iter(index.search([q for r in requests for q in r.queries], k))
    except BackendError as error:
        if error.reply is None or len(requests) == 1:  # a server that says nothing would be waited for again and again
            return [error] * len(requests)
        return [reply for r in requests for reply in _search_all(index, [r], k)]
    return [[next(flat) for _ in r.queries] for r in requests]


_NO_SOURCE_MESSAGE = (
    "this sample has no documents and no knowledge, and no index is open: give the sample a source, or build an index "
    "(scripts/build_index.py) and name it with --index FOLDER"
)
