"""The stretch of a source that a claim is judged by as a whole: found by the words that it shares with the claim.

Only what a search found has a part in the choice, with its neighbours: whatever is added elsewhere, the stretch stays.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text import SHORT, Span, content_words, pieces, word_count


class Piece(NamedTuple):
    """A sentence of a text, its words, those that carry meaning, and the number of its paragraph."""

    span: Span
    size: int
    content: frozenset[str]
    paragraph: int


class Source(NamedTuple):
    """A text, and the starts and ends of what a search found in it."""

    text: str
    found: Sequence[tuple[int, int]]


class Run(NamedTuple):
    """Sentences `first` to `last` and what they share with a claim."""

    shared: int
    size: int
    first: int
    last: int


def read(text: str, limit: int) -> tuple[Piece, ...]:
    """Read the sentences of a text, those of more than `limit` words in pieces."""
    return (_short if len(text) <= SHORT else _long)(text, limit)


def _read(text: str, limit: int) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for p in pieces(text, limit):
        parted = bool(found) and text.count("\n", found[-1].span.end, p.start) > 1
        paragraph = found[-1].paragraph + parted if found else 0
        found.append(Piece(p, word_count(p.text), frozenset(content_words(p.text)), paragraph))
    return tuple(found)


_short = lru_cache(maxsize=256)(_read)
_long = lru_cache(maxsize=8)(_read)  # a reading takes many times the memory of its text


def densest(parts: Sequence[Piece], wanted: AbstractSet[str], near: AbstractSet[int], limit: int) -> Run | None:
    """Return the shortest run of at most `limit` words that shares most with a claim, the first of equals.

    A run has one of the sentences `near` at least, and goes over no paragraph without one; None where no such run shares a word.
    """
    best: Run | None = None
    paragraphs = {parts[i].paragraph for i in near}
    shared = [p.content & wanted for p in parts]
    for first in range(len(parts)):
        seen: set[str] = set()
        size, touches = 0, False
        for last in range(first, len(parts) if shared[first] or first in near else first):
            size += parts[last].size
            if (size > limit and last > first) or parts[last].paragraph not in paragraphs:
                break
            seen |= shared[last]
            touches = touches or last in near
            if touches and seen and (best is None or (len(seen), -size) > (best.shared, -best.size)):
                best = Run(len(seen), size, first, last)
    return best


def filled(text: str, parts: Sequence[Piece], run: Run, limit: int) -> Span:
    """Return a run with its neighbours, before and after in turn, as far as the limit and their paragraph go."""
    _, size, first, last = run
    grows = True
    while grows:
        grows = False
        if first > 0 and parts[first - 1].paragraph == parts[first].paragraph and size + parts[first - 1].size <= limit:
            first, grows = first - 1, True
            size += parts[first].size
        after = parts[last + 1] if last + 1 < len(parts) else None
        if after is not None and after.paragraph == parts[last].paragraph and size + after.size <= limit:
            last, size, grows = last + 1, size + after.size, True
    a, b = parts[first].span.start, parts[last].span.end
    return Span(a, b, text[a:b])


def window(claim: str, sources: Sequence[Source], limit: int) -> tuple[int, Span] | None:
    """Return the number of the source and the stretch of at most `limit` words of it that shares most words with a claim.

    The stretch takes in some of what was found there. Of stretches that share equally much the shortest counts, then the
    first; None where none shares a word.
    """
    wanted = frozenset(content_words(claim))
    runs: list[tuple[int, Run]] = []
    for number, (text, found) in enumerate(sources):
        parts = read(text, limit) if found else ()
        near = {i for i, p in enumerate(parts) if any(a < p.span.end and p.span.start < b for a, b in found)}
        if (run := densest(parts, wanted, near, limit)) is not None:
            runs.append((number, run))
    if not runs:
        return None
    number, run = max(runs, key=lambda r: (r[1].shared, -r[1].size))
    text = sources[number].text
    return number, filled(text, read(text, limit), run, limit)
