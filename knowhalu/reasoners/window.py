"""The stretch of a source that a claim is judged by as a whole: found by the words that it shares with the claim.

Text that shares no words with the claim has no part in the choice, so whatever is added to a source, the stretch stays.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text import Span, content_words, pieces, word_count


class Piece(NamedTuple):
    """A sentence of a text, its words, and those that carry meaning."""

    span: Span
    size: int
    content: frozenset[str]


class Run(NamedTuple):
    """Sentences `first` to `last` and what they share with a claim."""

    shared: float
    size: int
    first: int
    last: int


@lru_cache(maxsize=256)
def read(text: str, limit: int) -> tuple[Piece, ...]:
    """Read the sentences of a text, those of more than `limit` words in pieces."""
    return tuple(Piece(p, word_count(p.text), frozenset(content_words(p.text))) for p in pieces(text, limit))


def densest(parts: Sequence[Piece], wanted: Mapping[str, float], limit: int) -> Run | None:
    """Return the shortest run of at most `limit` words that shares most with a claim, the first of equals; None without any."""
    best: Run | None = None
    shared = [p.content & wanted.keys() for p in parts]
    for first in range(len(parts)):
        if not shared[first]:
            continue
        seen: set[str] = set()
        size, worth = 0, 0.0
        for last in range(first, len(parts)):
            size += parts[last].size
            if size > limit and last > first:
                break
            if new := shared[last] - seen:
                seen |= new
                worth += sum(wanted[w] for w in new)
                if best is None or worth > best.shared + 1e-9 or (worth > best.shared - 1e-9 and size < best.size):
                    best = Run(worth, size, first, last)
    return best


def filled(text: str, parts: Sequence[Piece], run: Run, limit: int) -> Span:
    """Return a run with its neighbours, before and after in turn, as far as the limit and the paragraph go."""
    first, last, size = run.first, run.last, run.size
    while True:
        grown = False
        if first > 0 and size + parts[first - 1].size <= limit and not _parted(text, parts[first - 1], parts[first]):
            first, size, grown = first - 1, size + parts[first - 1].size, True
        if last + 1 < len(parts) and size + parts[last + 1].size <= limit and not _parted(text, parts[last], parts[last + 1]):
            last, size, grown = last + 1, size + parts[last + 1].size, True
        if not grown:
            a, b = parts[first].span.start, parts[last].span.end
            return Span(a, b, text[a:b])


def _parted(text: str, one: Piece, other: Piece) -> bool:
    return text.count("\n", one.span.end, other.span.start) > 1


def window(claim: str, texts: Sequence[str], limit: int) -> tuple[int, Span] | None:
    """Return the number of the text and the stretch of at most `limit` words of it that shares most with a claim.

    None where no text shares a word with it. Of stretches that share equally much the shortest counts, then the first.
    """
    wanted = dict.fromkeys(content_words(claim), 1.0)
    runs = [(i, run) for i, text in enumerate(texts) if (run := densest(read(text, limit), wanted, limit)) is not None]
    if not runs:
        return None
    number, run = max(runs, key=lambda r: (r[1].shared, -r[1].size))
    return number, filled(texts[number], read(texts[number], limit), run, limit)
