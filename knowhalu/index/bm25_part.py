"""The BM25 part of an index: search terms, and for every term the rows that contain it, with its count in each."""

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
"""Counts of a term in one passage are capped here: more would not change its score by 1 %."""
BLOCK_PASSAGES = 4096
"""Passages whose postings are added to the runs together."""


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
        shutil.rmtree(runs.folder)
        return out.finish(
            content, len(passages), {"terms": search_terms_fingerprint(), "tokens": int(lengths.sum(dtype=np.int64))}
        )


def is_lexical_part_current(part: IndexPart) -> bool:
    """Return whether a part was built with the present definition of search terms."""
    return part.head.settings.get("terms") == search_terms_fingerprint()


_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts without spaces between words: Chinese and Japanese."""
_FINGERPRINT_TEXT = "The cats' 3.5 houses WERE running quickly; naïve_cities, co-operation, 東京タワー and time's classes."


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
