"""The options of retrieval; this module imports no backend."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from knowhalu.registry import RETRIEVERS, is_known
from knowhalu.types import Record

RetrievalMode = Literal["dense", "lexical", "hybrid", "late", "http", "qdrant"]
SERVER_MODES = ("http", "qdrant")
"""Modes in which a server is asked, whatever index is named."""


def _check_mode(name: Any) -> str:
    if not isinstance(name, str) or not is_known("retrievers", name):
        *others, last = map(repr, RETRIEVERS)
        raise ValueError(f"should be {', '.join(others)} or {last}, the name of an installed retriever, or module:Class")
    return name


class RetrievalOptions(Record):
    """Index or server that is searched for samples without sources, and how it is searched."""

    index: Path | None = Field(None, description="folder of the index that is searched if a sample has no sources")
    embedder: str = Field("minilm", description='embedder: "minilm", a sentence-transformers folder, or "flag:FOLDER"')
    query_prefix: str | None = Field(
        None, description="instruction before each query, which some embedders need, such as BGE; unset: that of the folder"
    )
    chunk_words: int = Field(40, ge=5, le=400, description="maximal number of words in a chunk of a sample's own documents")
    mode: Annotated[RetrievalMode | str, BeforeValidator(_check_mode)] = Field(
        "dense",
        description="search by vectors (dense), words (lexical), both (hybrid), tokens (late) or a server (http, qdrant)",
    )
    search: str = Field("", description='width of a FAISS search, such as "nprobe=64,refine=8"; empty: that of the index')
    candidates: int = Field(100, ge=1, le=10_000, description="hybrid: passages that each of the two searches contributes")
    fusion: Literal["scores", "ranks"] = Field("scores", description="hybrid: fusion by weighted scores or by reciprocal ranks")
    lexical_weight: float | None = Field(
        None, ge=0, description="hybrid: weight of BM25, vectors have 1; unset: 0.035 for scores, 1 for ranks"
    )
    token_encoder: str = Field("minilm-late", description='late: "minilm-late", or a ColBERT or PyLate folder')
    reranker: str | None = Field(
        None, description='model that reranks the passages found: "verifier", or the folder of a cross-encoder'
    )
    rerank: int = Field(20, ge=1, le=1000, description="passages to rerank per query")
    rerank_weight: float | None = Field(
        None, ge=0, description="weight of the reranker against the search score; unset: 0.8 for the verifier, others rank alone"
    )
    url: str | None = Field(None, description='address of the search server, for mode "http" or "qdrant"')
    collection: str = Field("knowhalu", description='name of the collection, for mode "qdrant"')
    timeout: float = Field(30.0, gt=0, description="timeout of a search server in seconds")
    retries: int = Field(3, ge=0, le=20, description="retries after an error of a search server or a lost connection")

    @property
    def has_source(self) -> bool:
        """Tell whether an index or a server is named."""
        return self.index is not None or self.url is not None or self.mode != "dense"
