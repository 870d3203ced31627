"""Lexical search: BM25 over the memory-mapped lexical parts of an index.

Scores are those of Lucene's BM25 (Kamphuis et al. 2020, "Which BM25 do you mean?") and of `bm25s` with method "lucene": for a
term in `n` of `N` passages, `ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * length / average))`. `bm25s` itself
computes all scores in memory when it indexes, from an `N` and `average` that deletions would change.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.bm25_part import search_terms, search_terms_fingerprint, term_key
from knowhalu.index.container import Ints
from knowhalu.index.extension import StoredPassages, first_rows, open_parts
from knowhalu.index.part import IndexPart
from knowhalu.index.passages import Passages, top_rows
from knowhalu.index.protocols import check_k
from knowhalu.types import Passage

K1, B = 0.9, 0.4
Scores = NDArray[np.float64]


class _Postings(NamedTuple):
    rows: NDArray[np.int32]
    counts: NDArray[np.uint8]


class _LexicalSegment:
    """One lexical part: rows of the part count from 0, which is row `first` of the index."""

    def __init__(self, part: IndexPart, first: int) -> None:
        if part.head.settings.get("terms") != search_terms_fingerprint():
            raise IndexFormatError(f"{part.folder}: its terms were made by another version of knowhalu. {part.remedy}")
        self.part, self.first, self.size = part, first, part.head.passages
        self.keys = part.array("keys", "<u8", None)
        self.ends = part.array("ends", "<i8", len(self.keys) + 1)
        self.rows = part.array("rows", "<i4", None)
        self.counts = part.array("counts", "u1", len(self.rows))
        self.lengths = part.array("lengths", "<i4", self.size)

    def postings(self, number: int) -> _Postings:
        at = int(np.searchsorted(self.keys, np.uint64(number)))
        if at == len(self.keys) or int(self.keys[at]) != number:
            return _Postings(self.rows[:0], self.counts[:0])
        start, end = int(self.ends[at]), int(self.ends[at + 1])
        if not 0 <= start <= end <= len(self.rows):
            raise IndexFormatError(f"{self.part.folder}: a list of rows lies outside of its file. {self.part.remedy}")
        return _Postings(self.rows[start:end], self.counts[start:end])

    def all(self, postings: _Postings) -> Ints:
        """Return a whole list of rows, numbered across all segments."""
        rows = postings.rows
        if len(rows) and not (rows[0] >= 0 and rows[-1] < self.size and bool(np.all(rows[1:] > rows[:-1]))):
            raise IndexFormatError(f"{self.part.folder}: a list of rows is out of order. {self.part.remedy}")
        return rows.astype(np.int64) + self.first


class _Term(NamedTuple):
    """A term of a query: its weight, the upper bound of what it adds to a score, and its postings in each segment."""

    weight: float
    postings: list[_Postings]


class LexicalIndex:
    """Rank passages by BM25; passages that share no term with the query are not returned.

    `parts` cover consecutive rows of `passages`; `deleted` rows are neither returned nor counted, so scores are those of an
    index that never had them. Ties keep the order of the sources. Raises IndexFormatError where a part is damaged or the parts
    do not cover the passages.
    """

    def __init__(
        self, parts: Sequence[IndexPart], passages: Passages, *, deleted: Collection[int] = (), k1: float = K1, b: float = B
    ) -> None:
        self.passages, self.k1, self.b = passages, k1, b
        firsts = first_rows(parts, "lexical", len(passages))
        self._segments = [_LexicalSegment(part, first) for part, first in zip(parts, firsts, strict=True)]
        self._deleted = np.array(sorted(deleted), dtype=np.int64)
        deleted_terms = [search_terms(str(passages.get(int(row)))) for row in self._deleted]
        self._deleted_counts = Counter(term_key(t) for terms in deleted_terms for t in set(terms))
        self._live_count = len(passages) - len(deleted_terms)
        tokens = sum(int(s.part.head.settings.get("tokens", 0)) for s in self._segments) - sum(map(len, deleted_terms))
        self._average = max(1.0, tokens / max(1, self._live_count))

    @classmethod
    def open(cls, stored: StoredPassages) -> "LexicalIndex":
        """Open the lexical part of an index."""
        return cls(open_parts(stored, "lexical"), stored.passages, deleted=stored.deleted)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a query without a known term."""
        check_k(k)
        return [[self.passages.get(row, score) for row, score in self.rank(query, k)] for query in queries]

    def rank(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return the best rows of one query and their scores, best first."""
        rows, scores = np.zeros(0, dtype=np.int64), np.zeros(0)
        terms = sorted(self._query_terms(query), key=lambda term: -term.weight)
        rest = [0.0] * (len(terms) + 1)  # upper bound of what the terms from here on add to a score
        for i in range(len(terms) - 1, -1, -1):
            rest[i] = rest[i + 1] + terms[i].weight
        for i, term in enumerate(terms):
            # once k passages score more than this bound, no new passage can be among the best k (MaxScore)
            if len(rows) >= k and np.partition(scores, -k)[-k] > rest[i] * (1 + 1e-9):
                scores = scores + self._at(rows, term)
            else:
                rows, scores = _add_scores(rows, scores, *self._all(term))
        return top_rows(self.passages, rows, scores, k)

    def _query_terms(self, query: str) -> Iterator[_Term]:
        for number, times in Counter(term_key(t) for t in search_terms(query)).items():
            postings = [s.postings(number) for s in self._segments]
            holders = sum(len(p.rows) for p in postings) - self._deleted_counts[number]
            if holders > 0:
                yield _Term(times * math.log(1 + (self._live_count - holders + 0.5) / (holders + 0.5)), postings)

    def _all(self, term: _Term) -> tuple[Ints, Scores]:
        """Return every live row with the term, ascending, and what the term adds to its score."""
        parts = [(s, p) for s, p in zip(self._segments, term.postings, strict=True) if len(p.rows)]
        rows = np.concatenate([s.all(p) for s, p in parts])
        scores = np.concatenate([self._scored(s, p.rows, p.counts, term.weight) for s, p in parts])
        if len(self._deleted):
            keep = ~np.isin(rows, self._deleted, assume_unique=True)
            rows, scores = rows[keep], scores[keep]
        return rows, scores

    def _at(self, rows: Ints, term: _Term) -> Scores:
        """Return what a term adds to the score of each given row, without reading its whole list."""
        added = np.zeros(len(rows))
        for segment, postings in zip(self._segments, term.postings, strict=True):
            start, end = np.searchsorted(rows, [segment.first, segment.first + segment.size])
            local = (rows[start:end] - segment.first).astype(np.int32)
            at = np.searchsorted(postings.rows, local)
            has = np.flatnonzero(at < len(postings.rows))
            has = has[postings.rows[at[has]] == local[has]]
            added[start + has] = self._scored(segment, local[has], postings.counts[at[has]], term.weight)
        return added

    def _scored(self, segment: _LexicalSegment, rows: NDArray[np.int32], counts: NDArray[np.uint8], weight: float) -> Scores:
        lengths = segment.lengths[rows] / self._average
        scores: Scores = weight * counts / (counts + self.k1 * (1 - self.b + self.b * lengths))
        return scores


def _add_scores(rows: Ints, scores: Scores, more: Ints, extra: Scores) -> tuple[Ints, Scores]:
    """Merge two ascending lists of rows; a row in both gets the sum of its scores."""
    if not len(rows):
        return more, extra
    union, place = np.unique(np.concatenate([rows, more]), return_inverse=True)
    sums = np.bincount(place, weights=np.concatenate([scores, extra]), minlength=len(union))
    return union, sums.astype(np.float64, copy=False)
