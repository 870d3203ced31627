"""The language of a text, by py3langid, which brings its model along and reads no pickle."""

from functools import cache, lru_cache
from typing import Any

from knowhalu.text.sentences import STOPWORDS, words

MIN_WORDS = 4
"""The fewest words in Latin script by which a language can be told."""
MIN_MARGIN = 10.0
"""How far, in log-odds, another language must be more likely than English."""
MAX_ENGLISH_SHARE = 0.2
"""The largest share of small English words in a text of another language."""


@cache
def _identifier() -> Any:
    import py3langid

    return py3langid


@lru_cache(maxsize=4096)
def is_foreign(text: str) -> bool:
    """Tell whether a text is clearly in another language than English; names, numbers and short texts are not."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum(c > "\u024f" for c in letters) > len(letters) / 2:
        return True  # another script
    tokens = [w.text.lower() for w in words(text)]
    if len(tokens) < MIN_WORDS or sum(w in STOPWORDS for w in tokens) > MAX_ENGLISH_SHARE * len(tokens):
        return False
    ranks = dict(_identifier().rank(text))
    best = max(ranks, key=ranks.__getitem__)
    return bool(best != "en" and ranks[best] - ranks["en"] > MIN_MARGIN)
