"""Overlap of two texts: content words, word pairs, numbers and names that they share."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.quantities import number_value
from knowhalu.text.references import REFERS_BACK
from knowhalu.text.sentences import STOPWORDS, Span, content_words, names_by_letter, sentences, stem, word_count, words
from knowhalu.text.units import find_unit

MIN_REPEATED_WORDS = 5
"""Minimum words of a claim that may count as a quotation."""
_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nobody|nothing|without|cannot|fail(?:ed|s)? to|den(?:y|ies|ied)|unlikely|refus\w+)\b"
    r"|n['’]t\b",  # noqa: RUF001
    re.IGNORECASE,
)


class TextFacts(NamedTuple):
    """The comparable parts of a text: content words, word pairs, numbers, names, and the number of negations."""

    content: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    numbers: frozenset[str]
    names: frozenset[str]
    negations: int


@lru_cache(maxsize=8192)
def text_facts(text: str) -> TextFacts:
    """Extract the facts of a text."""
    content = tuple(content_words(text))
    tokens = words(text)
    numbers = {n for w in tokens if (n := number_value(w.text)) is not None}
    opening = {w.start for w in tokens[:1]} | {m.end() for m in re.finditer(r"[.!?:]\s+[\"“]?", text)}
    names = {
        stem(w.text.lower()) for w in tokens
        if w.text[0].isupper() and w.start not in opening
        and (names_by_letter(text, w) if len(w.text) == 1 else w.text.lower() not in STOPWORDS)
    }  # fmt: skip
    return TextFacts(
        content,
        frozenset(zip(content, content[1:], strict=False)),
        frozenset(numbers),
        frozenset(names),
        len(_NEGATION.findall(text)),
    )


_CAPITALISED = re.compile(r"(?<![\w’'-])[^\W\d_a-z][\w’'-]*")  # noqa: RUF001
_FIGURE_BEFORE, _FIGURE_AFTER = re.compile(r"\d[ -]?$"), re.compile(r" ?\d")


def name_words(text: str, source: str) -> set[str]:
    """Return the names in a text, as content words.

    The first word of a sentence is one where the source, too, has it with a capital only; a unit or currency beside a figure is
    none.
    """
    names: set[str] = set()
    starts = {s.start for s in sentences(text)}
    for m in _CAPITALISED.finditer(text):
        word = m.group()
        if len(word) == 1:
            names.update([word.lower()] if names_by_letter(text, Span(m.start(), m.end(), word)) else [])
            continue
        beside = _FIGURE_BEFORE.search(text, max(0, m.start() - 2), m.start()) or _FIGURE_AFTER.match(text, m.end())
        if beside and not word[1:].islower() and find_unit([word]):
            continue
        opens = m.start() in starts and (word not in source or re.search(rf"\b{re.escape(word.lower())}\b", source))
        if not opens:
            names.update(content_words(word))
    return names


def found_share(part: frozenset[str] | set[str], whole: frozenset[str] | set[str]) -> float:
    """Return the share of `whole` that is in `part`; 1 where `whole` is empty."""
    return len(part & whole) / len(whole) if whole else 1.0


_MARKS = " .!\"'“”’*_"  # noqa: RUF001


def find_repeated(claim: str, sentences: Iterable[str]) -> str | None:
    """Return the sentence that a claim repeats word for word; None for a short one, or one that refers back."""
    if word_count(claim) < MIN_REPEATED_WORDS or REFERS_BACK.match(claim):
        return None
    said = _bare(claim)
    return next((s for s in sentences if _bare(s) == said), None)


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(_MARKS).lower()


def coverage(claim: str, source: str) -> float:
    """Return the share of the claim's content words that the source has, each counted as often as it occurs."""
    wanted, seen = text_facts(claim).content, set(text_facts(source).content)
    return sum(w in seen for w in wanted) / len(wanted) if wanted else 1.0
