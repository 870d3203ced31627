"""The contracts of retrieval: what turns texts into vectors, and what finds passages."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from knowhalu.errors import InputError
from knowhalu.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose inner product is the cosine.

    `fingerprint` is a sha256 over the weights and whatever else changes the vectors of passages, `symmetric` tells
    whether queries are encoded just like passages, so that both may share one call.
    """

    @property
    def name(self) -> str:
        """Return the name by which the embedder is asked for."""

    @property
    def fingerprint(self) -> str:
        """Return the sha256 that tells this embedder from all others."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def symmetric(self) -> bool:
        """Tell whether `query` makes no difference to `encode`."""

    def encode(self, texts: Sequence[str], *, query: bool = False) -> "Vectors":
        """Encode texts in order: float32 `(len(texts), dimension)`, every row of length 1."""


class TokenEncoder(Protocol):
    """Turns every token of a text into a vector, for late interaction."""

    @property
    def name(self) -> str:
        """Return the name by which the encoder is asked for."""

    @property
    def fingerprint(self) -> str:
        """Return the sha256 that tells this encoder from all others."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    def encode(self, texts: Sequence[str], *, query: bool = False) -> "list[Vectors]":
        """Encode texts in order: for each, float32 `(tokens, dimension)`, every row of length 1."""


class Retriever(Protocol):
    """Finds the passages that say most about a query."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query.

        Raises InputError where `k` is not positive.
        """


def check_k(k: int) -> None:
    """Raise InputError unless `k` passages can be asked for."""
    if k < 1:
        raise InputError(f"k is {k}: ask for at least 1 passage")
