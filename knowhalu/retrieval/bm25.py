"""Lexical search: BM25 over the memory-mapped lexical parts of an index, which hold the rows and counts of every term.

Scores are those of Lucene's BM25 (Kamphuis et al. 2020, "Which BM25 do you mean?") and of `bm25s` with method "lucene": for a
term in `n` of `N` passages, `ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * length / average))`. `bm25s` itself
computes all scores in memory when it indexes, from an `N` and `average` that deletions would change.
"""

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import Ints
from knowhalu.index.extension import StoredPassages, first_rows, open_parts
from knowhalu.index.part import POSTINGS_PER_RUN, IndexPart, PartManifest, PartWriter, PostingRuns, write_posting_lists
from knowhalu.index.passages import PassageRows, Passages, top_rows
from knowhalu.index.protocols import check_k
from knowhalu.text.sentences import STOPWORDS, stem
from knowhalu.types import Passage

K1, B = 0.9, 0.4
MAX_TERM_COUNT = 255
"""Counts of a term in one passage are capped here: more would not change its score by 1 %."""
BLOCK_PASSAGES = 4096
"""Passages whose postings are added to the runs together."""
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts without spaces between words: Chinese and Japanese."""
_FINGERPRINT_TEXT = "The cats' 3.5 houses WERE running quickly; naïve_cities, co-operation, 東京タワー and time's classes."
Scores = NDArray[np.float64]


def search_terms(text: str) -> list[str]:
    """Return the search terms of a text in order: stems without stopwords, and character pairs of Chinese and Japanese."""
    terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        if not word.isascii() and _UNSPACED.search(word):
            terms += _character_pairs(word)
        elif word not in STOPWORDS:
            terms.append(stem(word))
    return terms


def _character_pairs(word: str) -> list[str]:
    pairs, last = [], 0
    for run in _UNSPACED.finditer(word):
        pairs += [word[last : run.start()]] if run.start() > last else []
        characters, last = run.group(), run.end()
        pairs += [characters[i : i + 2] for i in range(max(1, len(characters) - 1))]
    return pairs + ([word[last:]] if last < len(word) else [])


@lru_cache(maxsize=2**20)
def term_key(term: str) -> int:
    """Return the 64-bit hash that stands for a term; among ten million terms, two collide with a probability of 3e-6."""
    return int.from_bytes(hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=1)
def search_terms_fingerprint() -> str:
    """Return a hash of the definition of search terms: that of the terms of a fixed text."""
    return hashlib.sha256("\n".join(search_terms(_FINGERPRINT_TEXT)).encode()).hexdigest()


def build_lexical_part(passages: PassageRows, folder: Path, content: str, *, run: int = POSTINGS_PER_RUN) -> PartManifest:
    """Write the lexical part of an index into `folder`; title and text of a passage are indexed together.

    Memory holds one run of postings and the lengths of the passages, whatever the size of the index. The bytes depend on the
    passages only, not on the size of a `run`.
    """
    with PartWriter(folder, "lexical") as out:
        runs = PostingRuns(out.work / "runs", run)
        lengths = np.zeros(len(passages), dtype=np.int32)
        for start in range(0, len(passages), BLOCK_PASSAGES):
            keys, rows, counts = array("Q"), array("i"), array("B")
            for row in range(start, min(start + BLOCK_PASSAGES, len(passages))):
                terms = search_terms(str(passages.get(row)))
                lengths[row] = len(terms)
                for term, count in Counter(terms).items():
                    keys.append(term_key(term))
                    rows.append(row)
                    counts.append(min(count, MAX_TERM_COUNT))
            runs.add(np.array(keys, dtype=np.uint64), rows, counts)
        write_posting_lists(out, runs)
        out.add("lengths", lengths, "<i4")
        return out.finish(
            content, len(passages), {"terms": search_terms_fingerprint(), "tokens": int(lengths.sum(dtype=np.int64))}
        )


def is_lexical_part_current(part: IndexPart) -> bool:
    """Return whether a part was built with the present definition of search terms."""
    return part.head.settings.get("terms") == search_terms_fingerprint()


class _Postings(NamedTuple):
    rows: NDArray[np.int32]
    counts: NDArray[np.uint8]


class _LexicalSegment:
    """One lexical part: rows of the part count from 0, which is row `first` of the index."""

    def __init__(self, part: IndexPart, first: int) -> None:
        if not is_lexical_part_current(part):
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
        # upper bounds of what each term and those after it add to a score
        bounds = list(accumulate((term.weight for term in reversed(terms)), initial=0.0))[:0:-1]
        for term, bound in zip(terms, bounds, strict=True):
            # once k passages score more than this bound, no new passage can be among the best k (MaxScore)
            if len(rows) >= k and np.partition(scores, -k)[-k] > bound * (1 + 1e-9):
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
