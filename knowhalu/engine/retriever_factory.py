"""Builds the retriever that the settings name; each class is imported where it is made."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowhalu.errors import SettingsError
from knowhalu.index.protocols import Embedder, Retriever
from knowhalu.registry import RETRIEVERS, load_extension, make_extension
from knowhalu.requests import EntailmentPair
from knowhalu.retrieval.options import SERVER_MODES, RetrievalOptions
from knowhalu.text.sentences import content_words

if TYPE_CHECKING:
    from knowhalu.encoder.backend import EncoderBackend
    from knowhalu.extend import RetrieverBackend
    from knowhalu.index.extension import StoredPassages
    from knowhalu.retrieval.rerank import PassageScorer, QueryPassage

DEFAULT_LEXICAL_WEIGHT = 0.035
"""Weight of a BM25 score relative to a cosine: the best on the training splits of SciFact and of SQuAD's sentences."""

DEFAULT_VERIFIER_WEIGHT, VERIFIER_LOGIT_WEIGHT = 0.8, 0.1
"""Weights of the verifier relative to a search, and of its log odds relative to the shared words, chosen on the same splits."""


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

    return load_embedder(options.embedder)


def with_reranker(retriever: Retriever, options: RetrievalOptions) -> Retriever:
    """Put the reranker that `options` name after a retriever; return the retriever where they name none."""
    if options.reranker is None:
        return retriever
    from knowhalu.retrieval.rerank import RerankingRetriever

    usual = DEFAULT_VERIFIER_WEIGHT if options.reranker == "verifier" else None
    blend = usual if options.rerank_weight is None else options.rerank_weight
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

    usual = DEFAULT_LEXICAL_WEIGHT if options.fusion == "scores" else 1.0
    weights = (1.0, usual if options.lexical_weight is None else options.lexical_weight)
    both = (dense, _open_lexical(options.index))
    return HybridRetriever(both, by=options.fusion, depth=options.candidates, weights=weights)


def _open_stored(folder: Path) -> "StoredPassages":
    from knowhalu.index.extension import open_stored_passages

    return open_stored_passages(folder)


def _open_lexical(folder: Path) -> Retriever:
    from knowhalu.retrieval.bm25 import LexicalIndex

    return LexicalIndex.open(_open_stored(folder))


def _open_late(folder: Path, encoder: str) -> Retriever:
    from knowhalu.encoder.embedder import load_token_encoder
    from knowhalu.index.extension import open_parts
    from knowhalu.retrieval.late import LateInteractionIndex

    stored = _open_stored(folder)
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
