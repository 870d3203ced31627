"""From text to search terms: lower-cased words without the commonest ones, lightly stemmed. No language data is fetched."""

import hashlib
import re
from functools import lru_cache

from knowhalu.text import STOPWORDS, stem

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
"""Scripts that put no space between words: Chinese and Japanese."""
_PROBE = "The cats' 3.5 houses WERE running quickly; naïve_cities, co-operation, 東京タワー and time's classes."


def terms(text: str) -> list[str]:
    """Return the search terms of a text in order; runs of Chinese or Japanese become pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if not word.isascii() and _UNSPACED.search(word):
            found += _pairs(word)
        elif word not in STOPWORDS:
            found.append(stem(word))
    return found


def _pairs(word: str) -> list[str]:
    found, last = [], 0
    for run in _UNSPACED.finditer(word):
        found += [word[last : run.start()]] if run.start() > last else []
        piece, last = run.group(), run.end()
        found += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
    return found + ([word[last:]] if last < len(word) else [])


@lru_cache(maxsize=2**20)
def key(term: str) -> int:
    """Return the 64-bit number by which a term is known in an index: two of ten million share one with a chance of 3e-6."""
    return int.from_bytes(hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Return the hash that tells this way of making terms from any other: that of what it makes of a probe."""
    return hashlib.sha256("\n".join(terms(_PROBE)).encode()).hexdigest()
