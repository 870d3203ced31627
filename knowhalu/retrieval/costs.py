"""What vectors and their search structures cost: bytes by FAISS's own account, seconds by the speed of this machine."""

import re
import sys
import time
from typing import Any

import numpy as np

from knowhalu.errors import SettingsError

ITERATIONS, SAMPLED = 10, 40
"""Rounds of k-means, and training vectors for each list."""
WALK = 40
"""Nodes that HNSW looks at for each one it adds."""
CODEWORDS = 256
SCATTERED = 20
"""How many times slower distances to scattered vectors are than those of a matrix product."""


def _made(factory: str, dimension: int) -> Any:
    import faiss

    try:
        return faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise SettingsError(f"factory {factory!r}: FAISS cannot make it for {dimension} dimensions. Try IVF4096,PQ48") from error


def _lists(factory: str) -> int:
    found = re.search(r"IVF(\d+)", factory)
    return int(found[1]) if found else 0


def _neighbours(factory: str) -> int:
    found = re.search(r"^(?:.*,)?HNSW(\d*)", factory) if "IVF" not in factory else None
    return int(found[1] or 32) if found else 0


def bytes_per_vector(factory: str, dimension: int) -> int:
    """Return the bytes that a vector takes in an index of this factory, with its number and its links."""
    import faiss

    made = _made(factory, dimension)
    inner = faiss.downcast_index(made.index) if isinstance(made, faiss.IndexPreTransform) else made
    codes = inner.storage if isinstance(inner, faiss.IndexHNSW) else inner
    return int(codes.sa_code_size()) + (8 if _lists(factory) else 0) + 8 * _neighbours(factory)


def search_seconds(factory: str, passages: int, dimension: int) -> float:
    """Estimate the time to train and fill an index of this factory; 0 for one that only compares."""
    if factory == "Flat":
        return 0.0
    lists = _lists(factory)
    near = WALK * 2 * _neighbours(factory) * SCATTERED
    coded = CODEWORDS if "PQ" in factory else 0
    trained = ITERATIONS * min(passages, SAMPLED * lists) * lists
    return 2 * dimension * (trained + passages * (lists + near + coded)) / _speed()


def _speed(size: int = 1024) -> float:
    """Return the floating-point operations in a second of a matrix product."""
    a = np.ones((size, size), np.float32)
    a @ a
    started = time.perf_counter()
    a @ a
    return 2 * size**3 / (time.perf_counter() - started)


def memory_now() -> int:
    """Return the most bytes that this process has held, with the embedder in it."""
    try:
        import resource
    except ImportError:  # there is none on Windows
        return 2**30
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
