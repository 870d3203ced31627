"""The BM25 part of an index: search terms, and for every term the rows that have it, and how often."""

import hashlib
import re
import shutil
from array import array
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np

from knowhalu.index.part import POSTINGS_PER_RUN, IndexPart, PartManifest, PartWriter, PostingRuns, write_posting_lists
from knowhalu.index.passages import PassageRows
from knowhalu.text.sentences import STOPWORDS, stem

MAX_TERM_COUNT = 255
"""The largest count of a term in one passage that is told apart: more would not move its score by a hundredth."""
BLOCK_PASSAGES = 4096
"""Passages whose postings are handed over together."""


def build_lexical_part(passages: PassageRows, folder: Path, content: str, *, run: int = POSTINGS_PER_RUN) -> PartManifest:
    """Write the lexical part of an index into `folder`; title and text of a passage are read as one.

    Memory holds one run of postings and the lengths of the passages, whatever the size of the index. The same passages
    give the same bytes, whatever `run` is.
    """
    with PartWriter(folder, "lexical") as out:
        runs = PostingRuns(out.work / "runs", run)
        lengths = np.zeros(len(passages), dtype=np.int32)
        for start in range(0, len(passages), BLOCK_PASSAGES):
            keys, rows, counts = array("Q"), array("i"), array("B")
            for row in range(start, min(start + BLOCK_PASSAGES, len(passages))):
                found = search_terms(str(passages.get(row)))
                lengths[row] = len(found)
                for term, count in Counter(found).items():
                    keys.append(term_key(term))
                    rows.append(row)
                    counts.append(min(count, MAX_TERM_COUNT))
            runs.add(np.array(keys, dtype=np.uint64), rows, counts)
        write_posting_lists(out, runs)
        out.add("lengths", lengths, "<i4")
        shutil.rmtree(runs.folder)
        return out.finish(
            content, len(passages), {"terms": search_terms_fingerprint(), "tokens": int(lengths.sum(dtype=np.int64))}
        )


def is_lexical_part_current(part: IndexPart) -> bool:
    """Tell whether a part's words were cut as they are now."""
    return part.head.settings.get("terms") == search_terms_fingerprint()


_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts that put no space between words: Chinese and Japanese."""
_FINGERPRINT_TEXT = "The cats' 3.5 houses WERE running quickly; naïve_cities, co-operation, 東京タワー and time's classes."


def search_terms(text: str) -> list[str]:
    """Return the search terms of a text in order; runs of Chinese or Japanese become pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if not word.isascii() and _UNSPACED.search(word):
            found += _character_pairs(word)
        elif word not in STOPWORDS:
            found.append(stem(word))
    return found


def _character_pairs(word: str) -> list[str]:
    found, last = [], 0
    for run in _UNSPACED.finditer(word):
        found += [word[last : run.start()]] if run.start() > last else []
        piece, last = run.group(), run.end()
        found += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
    return found + ([word[last:]] if last < len(word) else [])


@lru_cache(maxsize=2**20)
def term_key(term: str) -> int:
    """Return the 64-bit number by which a term is known in an index: two of ten million share one with a chance of 3e-6."""
    return int.from_bytes(hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=1)
def search_terms_fingerprint() -> str:
    """Return the hash that tells this way of making terms from any other: that of what it makes of a probe."""
    return hashlib.sha256("\n".join(search_terms(_FINGERPRINT_TEXT)).encode()).hexdigest()
