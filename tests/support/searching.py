"""Small indexes for the tests of searching: passages in memory, parts built from them, a token encoder without a model."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowhalu.index.container import HEAD_BYTES
from knowhalu.index.late_part import build_late_part
from knowhalu.index.part import IndexPart
from knowhalu.index.passages import PassageList
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part
from knowhalu.retrieval.late import LateInteractionIndex, ProbeLimits
from knowhalu.text.sentences import content_words
from knowhalu.types import Passage
from tests.support.indexing import records


def corpus(texts: Sequence[str]) -> PassageList:
    return PassageList(Passage(id=f"d{i}#1", document=f"d{i}", text=t, end=len(t)) for i, t in enumerate(texts))


def facts() -> PassageList:
    return PassageList(Passage(id=f"{r.id}#1", document=r.id, text=r.text, title=r.title, end=len(r.text)) for r in records())


class WordVectors:
    """A stand-in for a token encoder: a fixed random direction for each word."""

    def __init__(self, dimension: int = 16) -> None:
        self.name, self.dimension = f"words {dimension}", dimension
        self.fingerprint = hashlib.sha256(self.name.encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[NDArray[np.float32]]:
        return [np.array([self._direction(w) for w in content_words(t) or [""]], dtype=np.float32) for t in texts]

    def _direction(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        found = np.random.default_rng(seed).normal(size=self.dimension)
        return found / np.linalg.norm(found)


def lexical(folder: Path, passages: PassageList, **options) -> LexicalIndex:
    build_lexical_part(passages, folder / "lexical", "content")
    return LexicalIndex([IndexPart(folder / "lexical", "lexical", "content")], passages, **options)


def late(
    folder: Path, passages: PassageList, encoder=None, probing: ProbeLimits | None = None, **options
) -> LateInteractionIndex:
    encoder = encoder or WordVectors()
    build_late_part(passages, folder / "late", "content", encoder, **{"bits": 8, **options})
    return LateInteractionIndex([IndexPart(folder / "late", "late", "content")], passages, encoder, probing=probing)


def overwrite_array(path: Path, values: NDArray) -> None:
    """Overwrite the numbers of an array file in place, behind its head, so that an opened part sees them."""
    with path.open("r+b") as file:
        file.seek(HEAD_BYTES)
        file.write(values.tobytes())
