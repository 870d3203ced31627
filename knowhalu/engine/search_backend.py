"""Searches for the engine: the chunks of a sample's own documents, or the index, server or extension that the settings name.

Classes are imported and models loaded when they are first used.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowhalu.errors import BackendError, SettingsError
from knowhalu.index.protocols import Embedder, Retriever
from knowhalu.registry import RETRIEVERS, load_extension, make_extension
from knowhalu.requests import EntailmentPair, Search
from knowhalu.retrieval.documents import DocumentRetriever, DocumentSearch
from knowhalu.retrieval.options import SERVER_MODES, RetrievalOptions
from knowhalu.text.sentences import content_words
from knowhalu.types import Passage

if TYPE_CHECKING:
    from knowhalu.encoder.backend import EncoderBackend
    from knowhalu.extend import RetrieverBackend
    from knowhalu.retrieval.hybrid import PassageScorer, QueryPassage

DEFAULT_LEXICAL_WEIGHT = 0.035
"""Weight of a BM25 score relative to a cosine: the best on the training splits of SciFact and of SQuAD's sentences."""

DEFAULT_VERIFIER_WEIGHT, VERIFIER_LOGIT_WEIGHT = 0.8, 0.1
"""Weights of the verifier relative to a search, and of its log odds relative to the shared words, chosen on the same splits."""
_NO_SOURCE_MESSAGE = (
    "this sample has no documents and no knowledge, and no index is open: give the sample a source, or build an index "
    "(scripts/build_index.py) and name it with --index FOLDER"
)


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
        return _load_embedder(self.options)

    @cached_property
    def documents(self) -> DocumentRetriever:
        """Return the retriever over a sample's own documents."""
        return DocumentRetriever(self.embedder, words=self.options.chunk_words)

    @cached_property
    def index(self) -> Retriever | None:
        """Return the retriever over the index or server that the settings name, or None."""
        return self._opened[0]

    @property
    def seal(self) -> str | None:
        """Return the seal that the searched index had when it was opened; None for a server."""
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Retriever | None, str | None]:
        if not self.options.has_source:
            return None, None
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


def open_retriever(options: RetrievalOptions, embedder: Embedder | None = None) -> Retriever:
    """Open an index in one of its modes, a server or an extension, with the reranker that `options` name.

    An extension has its default options. Raises SettingsError where the index or the address is missing, IndexFormatError where
    the index does not open.
    """
    if options.mode not in RETRIEVERS:
        return with_reranker(open_extension(options, None, embedder), options)
    opened = _open_server(options, embedder) if options.mode in SERVER_MODES else _open_index(options, embedder)
    return with_reranker(opened, options)


def open_extension(options: RetrievalOptions, extension_options: Any, embedder: Embedder | None) -> "RetrieverBackend":
    """Make the retriever of an extension; raises SettingsError where its class is no RetrieverBackend."""
    from knowhalu.extend import RetrieverBackend

    kind = load_extension("retrievers", options.mode)
    if not (isinstance(kind, type) and issubclass(kind, RetrieverBackend)):
        raise SettingsError(f"retrieval.mode {options.mode!r} is no subclass of knowhalu.extend.RetrieverBackend")
    if kind.needs_embedder and embedder is None:
        embedder = _load_embedder(options)
    retriever: RetrieverBackend = make_extension("retrievers", options.mode, extension_options, options, embedder)
    return retriever


def _load_embedder(options: RetrievalOptions) -> Embedder:
    from knowhalu.encoder.embedder import load_embedder

    return load_embedder(options.embedder, query_prefix=options.query_prefix)


def with_reranker(retriever: Retriever, options: RetrievalOptions) -> Retriever:
    """Put the reranker that `options` name after a retriever; return the retriever where they name none."""
    if options.reranker is None:
        return retriever
    from knowhalu.retrieval.hybrid import RerankingRetriever

    default = DEFAULT_VERIFIER_WEIGHT if options.reranker == "verifier" else None
    blend = default if options.rerank_weight is None else options.rerank_weight
    return RerankingRetriever(retriever, load_reranker(options.reranker), depth=options.rerank, blend=blend)


def _open_server(options: RetrievalOptions, embedder: Embedder | None) -> Retriever:
    if options.url is None:
        raise SettingsError(f"retrieval.mode is {options.mode!r}, but no server is named: set retrieval.url")
    if options.mode == "qdrant":
        from knowhalu.retrieval.qdrant import QdrantRetriever

        return QdrantRetriever.connect(
            options.url, options.collection, embedder or _load_embedder(options), timeout=options.timeout
        )
    from knowhalu.retrieval.http import HttpRetriever

    return HttpRetriever(options.url, timeout=options.timeout, retries=options.retries)


def _open_index(options: RetrievalOptions, embedder: Embedder | None) -> Retriever:
    if options.index is None:
        raise SettingsError(f"retrieval.mode is {options.mode!r}, but no index is named: set retrieval.index")
    if options.search and options.mode in ("late", "lexical"):
        raise SettingsError(f"search {options.search!r}: mode {options.mode} does not search vectors. Leave it out")
    if options.mode == "late":
        return _open_late(options.index, options.token_encoder)
    if options.mode == "lexical":
        return _open_lexical(options.index)
    from knowhalu.retrieval.faiss import FaissIndex

    dense = FaissIndex.open(options.index, embedder or _load_embedder(options), options.search)
    if options.mode == "dense":
        return dense
    from knowhalu.retrieval.hybrid import HybridRetriever

    default = DEFAULT_LEXICAL_WEIGHT if options.fusion == "scores" else 1.0
    weights = (1.0, default if options.lexical_weight is None else options.lexical_weight)
    retrievers = (dense, _open_lexical(options.index))
    return HybridRetriever(retrievers, by=options.fusion, depth=options.candidates, weights=weights)


def _open_lexical(folder: Path) -> Retriever:
    from knowhalu.index.extension import open_stored_passages
    from knowhalu.retrieval.bm25 import LexicalIndex

    return LexicalIndex.open(open_stored_passages(folder))


def _open_late(folder: Path, encoder: str) -> Retriever:
    from knowhalu.encoder.embedder import load_token_encoder
    from knowhalu.index.extension import open_parts, open_stored_passages
    from knowhalu.retrieval.late import LateInteractionIndex

    stored = open_stored_passages(folder)
    open_parts(stored, "late")  # raises for a missing part before a model is loaded
    return LateInteractionIndex.open(stored, load_token_encoder(encoder))


def load_reranker(name_or_folder: str) -> "PassageScorer":
    """Load a reranker: "verifier", or the folder of a cross-encoder such as BGE's.

    Raises ModelError where the folder is missing or unusable, MissingExtra where a library is not installed.
    """
    if name_or_folder == "verifier":
        from knowhalu.encoder.backend import EncoderBackend

        return VerifierScorer(EncoderBackend())
    from knowhalu.encoder.adapters import CrossEncoderScorer

    scorer = CrossEncoderScorer(Path(name_or_folder))
    return lambda pairs: scorer.score([(p.query, str(p.passage)) for p in pairs])


class VerifierScorer:
    """Score passages by the share of the query's words that they contain, and by the verifier.

    The verifier was trained on claims. A passage is relevant to a question whether it supports or contradicts it, so the
    verifier's score is the log odds of P(supported) + P(contradicted).
    """

    def __init__(self, encoder: "EncoderBackend", weight: float = VERIFIER_LOGIT_WEIGHT) -> None:
        self.encoder, self.weight = encoder, weight

    def __call__(self, pairs: "Sequence[QueryPassage]") -> list[float]:
        """Score pairs, in order."""
        probabilities = self.encoder.score([EntailmentPair(str(p.passage), p.query) for p in pairs])
        odds = [math.log((1.001 - p.neutral) / (0.001 + p.neutral)) for p in probabilities]
        return [query_coverage(p.query, str(p.passage)) + self.weight * o for p, o in zip(pairs, odds, strict=True)]


def query_coverage(query: str, text: str) -> float:
    """Return the share of a query's content words that a text contains."""
    words = set(content_words(query))
    return len(words & set(content_words(text))) / len(words) if words else 0.0
