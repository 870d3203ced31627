"""What the verifier said of a pair is kept for the life of the process: methods compared on the same rows ask much the same."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any, Protocol

from knowhalu.requests import Entail, EntailmentPair, Probabilities, TagSpans


class PairScorer(Protocol):
    """A backend that judges pairs."""

    def answer_many(self, requests: list[Any]) -> Sequence[list[Any]]:
        """Answer every request, in order."""


class ScoreCache:
    """Ask a verifier only for pairs that it was not asked for lately; at most `most` pairs are kept, some 200 bytes each."""

    def __init__(self, backend: PairScorer, most: int) -> None:
        self.backend, self.most = backend, most
        self._known: OrderedDict[bytes, Probabilities] = OrderedDict()
        self._lock = Lock()

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[list[Any]]:
        """Answer all requests; an error of the verifier is raised, and nothing of its call is kept. Marks are not kept."""
        keys = {pair: _pair_key(pair) for request in requests if isinstance(request, Entail) for pair in request.pairs}
        found = self._recalled(keys)
        missing = tuple(pair for pair in keys if pair not in found)
        marks = [request for request in requests if isinstance(request, TagSpans)]
        asked = [*([Entail(missing)] if missing else []), *marks]
        replies = list(self.backend.answer_many(asked)) if asked else []
        if missing:
            found.update(zip(missing, replies.pop(0), strict=True))
            self._keep({keys[pair]: found[pair] for pair in missing})
        marked = iter(replies)
        return [next(marked) if isinstance(r, TagSpans) else [found[pair] for pair in r.pairs] for r in requests]

    def _recalled(self, keys: dict[EntailmentPair, bytes]) -> dict[EntailmentPair, Probabilities]:
        with self._lock:
            known = {pair: key for pair, key in keys.items() if key in self._known}
            for key in known.values():
                self._known.move_to_end(key)
            return {pair: self._known[key] for pair, key in known.items()}

    def _keep(self, fresh: dict[bytes, Probabilities]) -> None:
        with self._lock:
            self._known.update(fresh)
            while len(self._known) > self.most:
                self._known.popitem(last=False)


def _pair_key(pair: EntailmentPair) -> bytes:
    # repr tells ("a", "b c") from ("a b", "c"), and a question that is empty from none; a lone surrogate has bytes too
    return hashlib.blake2b(repr(tuple(pair)).encode("utf-8", "surrogatepass"), digest_size=16).digest()
