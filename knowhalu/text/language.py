"""The language of a text, by py3langid, which brings its model along and reads no pickle."""

from functools import cache, lru_cache
from typing import Any

from knowhalu.text.sentences import STOPWORDS, Span, words

MIN_WORDS = 4
"""The fewest words in Latin script by which a language can be told."""
MIN_MARGIN = 10.0
"""How far, in log-odds, another language must be more likely than English."""
MAX_ENGLISH_SHARE = 0.2
"""The largest share of small English words in a text of another language, its names left out."""
_SHARED = frozenset(
    "a i o in on is as do no me he we so to or at an her was am by all far under over here men en most t s d m re".split()
)
"""Small English words that are words of other languages, too."""
_OTHER = frozenset(
    """
    der die das den dem ein eine und ist sind wurde von mit für nicht auf le la les des du est une dans pour avec et
    qui que el los las una es por con para del il di che è nel della gli os uma é em com não um het een van de op och
    att är på som og er w z na jest się ve bir bu yang dan pada ini az egy je v se
    """.split()
)
"""Small words of other languages in Latin script."""


@cache
def _identifier() -> Any:
    import py3langid

    return py3langid


def _is_bare(tokens: list[Span], at: int) -> bool:
    """Tell whether a word is no name or part of one, as "van" in "Ludwig van Beethoven" is; small English words always count."""
    word = tokens[at].text
    if not word.isalpha() or (not word.islower() and at and word.lower() not in STOPWORDS):
        return False
    beside = [tokens[i].text[0].isupper() for i in (at - 1, at + 1) if 0 <= i < len(tokens)]
    return word.lower() not in _OTHER or not (all(beside) and beside)


@lru_cache(maxsize=4096)
def is_foreign(text: str) -> bool:
    """Tell whether a text is clearly in another language than English; names, numbers and short texts are not."""
    letters = [c for c in text if c.isalpha()]
    if not letters:
        return False
    if sum(c > "\u024f" for c in letters) > len(letters) / 3:
        return True  # another script
    tokens = words(text)
    if len(tokens) < MIN_WORDS:
        return False
    # names, titles and identifiers of other languages stand in English texts, so they are left out
    bare = [w.text.lower() for i, w in enumerate(tokens) if _is_bare(tokens, i)]
    english, shared = (sum(w in STOPWORDS and (w in _SHARED) is common for w in bare) for common in (False, True))
    if english + shared / 2 > MAX_ENGLISH_SHARE * len(bare):
        return False
    if not _OTHER.intersection(bare):
        text = " ".join(dict.fromkeys(bare))
        if text.isascii() or len(set(bare)) < MIN_WORDS:
            return False
    ranks = dict(_identifier().rank(text))
    best = max(ranks, key=ranks.__getitem__)
    return bool(best != "en" and ranks[best] - ranks["en"] > MIN_MARGIN)
