"""Bounded caches of what verifiers computed; this module imports no torch."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any, Protocol, TypeVar

from knowhalu.requests import Entail, EntailmentPair, Probabilities, TagSpans

_Value = TypeVar("_Value")


class RecentlyUsed(OrderedDict[bytes, _Value]):
    """Values by key, the least recently used ones first; several threads may use it."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def look_up(self, keys: Iterable[bytes]) -> dict[bytes, _Value]:
        """Return the values of those keys that have one."""
        with self._lock:
            values = {key: self[key] for key in keys if key in self}
            for key in values:
                self.move_to_end(key)
        return values

    def store(self, values: Mapping[bytes, _Value], capacity: int) -> None:
        """Store values, and discard the least recently used ones over the capacity."""
        with self._lock:
            for key, value in values.items():
                self[key] = value
                self.move_to_end(key)
            while len(self) > capacity:
                self.popitem(last=False)

    def clear(self) -> None:
        """Discard all values."""
        with self._lock:
            super().clear()


class PairScorer(Protocol):
    """A backend that scores pairs."""

    def answer_many(self, requests: list[Any]) -> Sequence[list[Any]]:
        """Answer every request, in order."""


class ScoreCache:
    """Cache the probabilities of at most `capacity` pairs, about 200 bytes each, for methods compared on the same rows."""

    def __init__(self, backend: PairScorer, capacity: int) -> None:
        self.backend, self.capacity = backend, capacity
        self._cached: RecentlyUsed[Probabilities] = RecentlyUsed()

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[list[Any]]:
        """Answer all requests. Spans are not cached. An error of the backend is raised, and nothing of its call is cached."""
        keys = {pair: pair_key(pair) for request in requests if isinstance(request, Entail) for pair in request.pairs}
        known = self._cached.look_up(keys.values())
        missing = tuple(pair for pair, key in keys.items() if key not in known)
        tagging = [request for request in requests if isinstance(request, TagSpans)]
        needed = [*([Entail(missing)] if missing else []), *tagging]
        replies = list(self.backend.answer_many(needed)) if needed else []
        if missing:
            computed = dict(zip((keys[pair] for pair in missing), replies.pop(0), strict=True))
            self._cached.store(computed, self.capacity)
            known |= computed
        spans = iter(replies)
        return [next(spans) if isinstance(r, TagSpans) else [known[keys[pair]] for pair in r.pairs] for r in requests]


def pair_key(pair: EntailmentPair) -> bytes:
    """Return a hash of a pair."""
    # repr separates ("a", "b c") from ("a b", "c"), and an empty question from none; a lone surrogate has bytes, too
    return blake2b(repr(tuple(pair)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
