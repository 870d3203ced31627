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
    """Where evidence comes from when a sample brings none of its own."""

    index: Path | None = Field(None, description="index that is asked where a sample brings no source")
    embedder: str = Field("minilm", description='"minilm", a sentence-transformers folder, or "flag:FOLDER"')
    chunk_words: int = Field(40, ge=5, le=400, description="words of a chunk of a sample's own documents")
    mode: Annotated[RetrievalMode | str, BeforeValidator(_check_mode)] = Field(
        "dense", description="how the index is searched: by vectors, words, both, tokens; or a running server, which is asked"
    )
    search: str = Field(
        "", description='how widely a FAISS index is searched, such as "nprobe=64,refine=8"; empty: as it was built for'
    )
    candidates: int = Field(100, ge=1, le=10_000, description="passages that each search of a hybrid gives to the fusion")
    fusion: Literal["scores", "ranks"] = Field(
        "scores", description="how a hybrid joins: by weighted scores, or by reciprocal ranks"
    )
    lexical_weight: float | None = Field(
        None, ge=0, description="weight of words beside 1 of vectors in a hybrid; None: 0.035 for scores, 1 for ranks"
    )
    token_encoder: str = Field("minilm-late", description='"minilm-late", or a ColBERT or PyLate folder, for mode "late"')
    reranker: str | None = Field(
        None, description='"verifier", or the folder of a cross-encoder: it reranks the retrieved passages'
    )
    rerank: int = Field(20, ge=1, le=1000, description="passages that a reranker reads for each query")
    rerank_weight: float | None = Field(
        None, ge=0, description="weight of the reranker beside the search; None: 0.8 for the verifier, others decide alone"
    )
    url: str | None = Field(None, description='address of the search server; read where mode is "http" or "qdrant"')
    collection: str = Field("knowhalu", description='name of the collection; read where mode is "qdrant"')
    timeout: float = Field(30.0, gt=0, description="seconds that a search server may take")
    retries: int = Field(3, ge=0, le=20, description="further tries after a search server's error or a lost connection")

    @property
    def has_source(self) -> bool:
        """Tell whether an index or a server is named."""
        return self.index is not None or self.url is not None or self.mode != "dense"
