"""Contracts of retrieval: embedders, token encoders and retrievers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from knowhalu.errors import InputError
from knowhalu.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """A model that encodes texts; `fingerprint` is a sha256 of the weights and of everything else that changes the vectors."""

    @property
    def name(self) -> str:
        """Return the name of the encoder in settings."""

    @property
    def fingerprint(self) -> str:
        """Return the sha256 that identifies the encoder."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""


class Embedder(Encoder, Protocol):
    """Embeds texts as vectors whose inner product is the cosine."""

    @property
    def symmetric(self) -> bool:
        """Return whether queries are encoded like passages, so that both may share a call."""

    def encode(self, texts: Sequence[str], *, query: bool = False) -> "Vectors":
        """Encode texts in order: float32 `(len(texts), dimension)`, every row of length 1."""


class TokenEncoder(Encoder, Protocol):
    """Embeds every token of a text, for late interaction."""

    def encode(self, texts: Sequence[str], *, query: bool = False) -> "list[Vectors]":
        """Encode texts in order: for each, float32 `(tokens, dimension)`, every row of length 1."""


class Retriever(Protocol):
    """Finds the passages most relevant to a query."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query.

        Raises InputError where `k` is not positive.
        """


def check_k(k: int) -> None:
    """Raise InputError unless `k` is positive."""
    if k < 1:
        raise InputError(f"k is {k}: request at least 1 passage")
