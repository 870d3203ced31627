"""Late interaction over the memory-mapped late parts of an index: candidates by centroids, then MaxSim (PLAID, section 4).

1. Each token of the query probes its nearest centroids; passages with a token near these are candidates.
2. Candidates are scored with centroids instead of their tokens, and the best are kept.
3. Their tokens are restored and scored by MaxSim.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import Floats, Ints
from knowhalu.index.extension import StoredPassages, first_rows, open_parts
from knowhalu.index.late_part import ALLOWED_BITS, ResidualCodec, ResidualCodes, centroid_key_step, maxsim
from knowhalu.index.part import IndexPart
from knowhalu.index.passages import Passages, top_rows
from knowhalu.index.protocols import TokenEncoder, check_k
from knowhalu.types import Passage

MAX_PASSAGE_TOKENS = 2**16
"""Most tokens of a passage; more are damage."""
BLOCK_TOKENS = 2**18
"""Tokens scored at once."""


class ProbeLimits(NamedTuple):
    """Effort of a search: centroids per token of the query, and candidates for exact scoring, at least and per `k`."""

    centroids: int = 8
    candidates: int = 256
    for_each: int = 4


class _LateSegment:
    """One late part: rows of the part count from 0, which is row `first` of the index."""

    def __init__(self, part: IndexPart, first: int, encoder: TokenEncoder) -> None:
        self.part, self.first, self.size = part, first, part.head.passages
        settings = part.head.settings
        if (settings.get("fingerprint"), settings.get("dimension")) != (encoder.fingerprint, encoder.dimension):
            raise IndexFormatError(
                f"{part.folder}: was built with the encoder {settings.get('encoder')!r}, not with {encoder.name!r}. "
                f"Open it with that one. {part.remedy}"
            )
        bits, dimension = settings.get("bits"), encoder.dimension
        if bits not in ALLOWED_BITS or not isinstance(bits, int):
            raise IndexFormatError(f"{part.folder}: its residuals have {bits} bits. {part.remedy}")
        centers = part.array("centers", "<f4", None, dimension)
        borders, values = part.array("borders", "<f4", 2**bits - 1), part.array("values", "<f4", 2**bits)
        if not len(centers):
            raise IndexFormatError(f"{part.folder}: has no centroids. {part.remedy}")
        self.codec = ResidualCodec(centers, borders, values)
        self.tokens = part.array("tokens", "<i8", self.size + 1)
        self.codes = part.array("codes", "<i4", None)
        self.residuals = part.array("residuals", "u1", len(self.codes), dimension * bits // 8)
        self.keys = part.array("keys", "<u8", None)
        self.ends = part.array("ends", "<i8", len(self.keys) + 1)
        self.rows = part.array("rows", "<i4", None)

    def candidates(self, near: Ints) -> Ints:
        """Return the rows that have a token near one of these centroids, ascending."""
        keys = np.unique(near).astype(np.uint64) * centroid_key_step(len(self.codec.centroids))
        at = np.searchsorted(self.keys, keys)
        at = at[at < len(self.keys)]
        at = at[np.isin(self.keys[at], keys)]
        lists = [self.rows[self.ends[i] : self.ends[i + 1]] for i in at]
        rows = np.unique(np.concatenate([self.rows[:0], *lists])).astype(np.int64)
        if len(rows) and (rows[0] < 0 or rows[-1] >= self.size):
            raise IndexFormatError(f"{self.part.folder}: a list contains rows that the part does not have. {self.part.remedy}")
        return rows

    def places(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the concatenated places of all tokens of some rows, and where each row begins among them."""
        first, counts = self.tokens[rows], self.tokens[rows + 1] - self.tokens[rows]
        fits = (
            first.min() >= 0
            and 0 < counts.min()
            and counts.max() <= MAX_PASSAGE_TOKENS
            and int((first + counts).max()) <= len(self.codes)
        )
        if not fits:
            raise IndexFormatError(f"{self.part.folder}: tokens of a passage lie outside of their file. {self.part.remedy}")
        starts = np.cumsum(counts) - counts
        return np.repeat(first - starts, counts) + np.arange(int(counts.sum())), starts

    def _score_blocks(self, rows: Ints, score: Callable[[Ints, Ints], Floats]) -> Floats:
        """Score rows in blocks of about `BLOCK_TOKENS` tokens, by their `places`."""
        sizes = np.cumsum(self.tokens[rows + 1] - self.tokens[rows])
        blocks = np.split(rows, np.searchsorted(sizes, np.arange(BLOCK_TOKENS, int(sizes[-1]), BLOCK_TOKENS)))
        return np.concatenate([score(*self.places(block)) for block in blocks if len(block)])

    def roughly(self, near: Floats, rows: Ints) -> Floats:
        """Score rows by the centroids of their tokens; `near` has the similarity of each centroid to each token of the query."""
        return self._score_blocks(
            rows, lambda places, starts: np.maximum.reduceat(near[self._checked_codes(places)], starts, axis=0).sum(axis=1)
        )

    def exactly(self, query: Floats, rows: Ints) -> Floats:
        """Score rows by MaxSim over their restored tokens."""

        def score(places: Ints, starts: Ints) -> Floats:
            codes = ResidualCodes(self._checked_codes(places), self.residuals[places])
            return maxsim(query, self.codec.restore(codes), starts)

        return self._score_blocks(rows, score)

    def _checked_codes(self, places: Ints) -> NDArray[np.int32]:
        codes: NDArray[np.int32] = self.codes[places]
        if codes.min() < 0 or codes.max() >= len(self.codec.centroids):
            raise IndexFormatError(f"{self.part.folder}: a token has a centroid that does not exist. {self.part.remedy}")
        return codes


class LateInteractionIndex:
    """Rank passages by late interaction; ties keep the order of the sources.

    `parts` cover consecutive rows of `passages`; `deleted` rows are not returned. Raises IndexFormatError where a part is
    damaged or built by another encoder, or the parts do not cover the passages.
    """

    def __init__(
        self,
        parts: Sequence[IndexPart],
        passages: Passages,
        encoder: TokenEncoder,
        *,
        deleted: Collection[int] = (),
        probing: ProbeLimits | None = None,
    ) -> None:
        self.passages, self.encoder, self.probing = passages, encoder, probing or ProbeLimits()
        self._deleted = np.array(sorted(deleted), dtype=np.int64)
        firsts = first_rows(parts, "late", len(passages))
        self._segments = [_LateSegment(part, first, encoder) for part, first in zip(parts, firsts, strict=True)]

    @classmethod
    def open(cls, stored: StoredPassages, encoder: TokenEncoder, *, probing: ProbeLimits | None = None) -> "LateInteractionIndex":
        """Open the late-interaction part of an index."""
        return cls(open_parts(stored, "late"), stored.passages, encoder, deleted=stored.deleted, probing=probing)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query. The score is MaxSim."""
        check_k(k)
        numbers = [i for i, query in enumerate(queries) if query.strip()]
        results: list[list[Passage]] = [[] for _ in queries]
        encoded = self.encoder.encode([queries[i] for i in numbers], query=True) if numbers else []
        for i, vectors in zip(numbers, encoded, strict=True):
            results[i] = [self.passages.get(row, score) for row, score in self.rank(vectors, k)]
        return results

    def rank(self, query: Floats, k: int) -> list[tuple[int, float]]:
        """Return the best rows for the token vectors of one query `(tokens, dimension)`, and their scores, best first."""
        rows, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.float32)]
        depth = max(self.probing.candidates, self.probing.for_each * k)
        for segment in self._segments:
            candidates = self._candidates(segment, query, depth)
            if len(candidates):
                rows.append(candidates + segment.first)
                scores.append(segment.exactly(query, candidates))
        return top_rows(self.passages, np.concatenate(rows), np.concatenate(scores), k)

    def _candidates(self, segment: _LateSegment, query: Floats, depth: int) -> Ints:
        """Return at most `depth` rows of a segment for exact scoring; all rows of a segment that has no more."""
        if segment.size <= depth:
            every = np.flatnonzero(segment.tokens[1:] > segment.tokens[:-1])
            return self._drop_deleted(every, segment)
        near = segment.codec.centroids @ query.T
        probes = min(self.probing.centroids, len(near))
        rows = self._drop_deleted(segment.candidates(np.argpartition(-near, probes - 1, axis=0)[:probes]), segment)
        if len(rows) <= depth:
            return rows
        scores = segment.roughly(near, rows)
        return np.sort(rows[np.lexsort((rows, -scores))[:depth]])

    def _drop_deleted(self, rows: Ints, segment: _LateSegment) -> Ints:
        return rows[~np.isin(rows + segment.first, self._deleted)] if len(self._deleted) else rows
