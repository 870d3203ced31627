"""Shared parts of the retrieval tests: a dozen sentences, a fast stand-in for the model, and the model itself."""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.index.build import build_index
from knowhalu.ingest.sources import SourceRecord
from knowhalu.text.sentences import content_words

FACTS = {
    "Hamlet": "Hamlet is a tragedy written by William Shakespeare around 1600.",
    "Eiffel Tower": "The Eiffel Tower was completed in 1889 and stands in Paris.",
    "Photosynthesis": "Plants turn sunlight, water and carbon dioxide into sugar and oxygen.",
    "Mount Everest": "Mount Everest rises 8,849 metres above sea level in the Himalayas.",
    "Penicillin": "Alexander Fleming discovered penicillin in 1928.",
    "Python": "Guido van Rossum released the first version of the Python language in 1991.",
    "Apollo 11": "Neil Armstrong and Buzz Aldrin walked on the Moon in July 1969.",
    "Amazon River": "The Amazon carries more water to the sea than any other river.",
    "Mona Lisa": "Leonardo da Vinci painted the Mona Lisa, which hangs in the Louvre.",
    "Berlin Wall": "The wall that divided Berlin fell on 9 November 1989.",
    "Honey bee": "Bees dance to show each other where flowers are.",
    "Titanic": "The Titanic sank in 1912 after it struck an iceberg.",
}
QUESTIONS = {
    "Who wrote the play about the prince of Denmark?": "Hamlet",
    "How high is the tallest mountain?": "Mount Everest",
    "Which antibiotic was found by accident?": "Penicillin",
    "Who was the first person on the lunar surface?": "Apollo 11",
    "Which ship hit an iceberg?": "Titanic",
    "How do insects tell their hive about food?": "Honey bee",
}


class WordEmbedder:
    """A stand-in for a model: adds up a fixed random direction for each word."""

    symmetric = True

    def __init__(self, name: str = "words", dimension: int = 32) -> None:
        self.name, self.dimension = name, dimension
        self.fingerprint = hashlib.sha256(f"{name} {dimension}".encode()).hexdigest()
        self.calls: list[list[str]] = []

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts by their words; a text without words gets the direction of the empty word."""
        self.calls.append(list(texts))
        rows = [sum(self._direction(w) for w in content_words(t) or [""]) for t in texts]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _direction(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        return np.random.default_rng(seed).normal(size=self.dimension)


def records(texts: dict[str, str] = FACTS) -> list[SourceRecord]:
    """Make a record of each title and text."""
    return [SourceRecord(f"d{i}", title, text, f"test:{i}") for i, (title, text) in enumerate(texts.items(), 1)]


def same_paths() -> dict[str, str]:
    """Give the environment in which another Python imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])}


@pytest.fixture
def words() -> WordEmbedder:
    """Give a fresh stand-in embedder."""
    return WordEmbedder()


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """Give the shipped model in full precision."""
    return MiniLMEmbedder(precision="fp32")


@pytest.fixture
def folder(tmp_path: Path, words: WordEmbedder) -> Path:
    """Give a small index made by the stand-in embedder."""
    build_index(records(), tmp_path / "index", words)
    return tmp_path / "index"
