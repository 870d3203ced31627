"""Divide a response into pieces: segments with their labels, and words that a source supports or contradicts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowhalu.results import Evidence, Segment, Verdict
from knowhalu.types import Label

MAX_RESPONSE_CHARS = 20_000
"""Characters of a response that are shown at most."""
SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "open"


class HighlightedText(NamedTuple):
    """Characters of the response with one mark; `evidence` are the numbers, from 1, of the evidence that ends with them."""

    text: str
    mark: str
    evidence: tuple[int, ...] = ()


class HighlightedSegment(NamedTuple):
    """A segment in pieces, with its label; text between segments has none."""

    label: Label | None
    probability: float | None
    pieces: tuple[HighlightedText, ...]


def highlight_segments(response: str, verdict: Verdict) -> list[HighlightedSegment]:
    """Divide a response into its segments, and these where highlights begin and end; it is cut off at `MAX_RESPONSE_CHARS`.

    A response without segments (an off-target answer) is one piece.
    """
    shown, at = response[:MAX_RESPONSE_CHARS], 0
    found: list[HighlightedSegment] = []
    evidence = list(enumerate(verdict.evidence, 1))
    for segment in sorted(verdict.segments, key=lambda s: s.start):
        start, end = max(at, segment.start), min(segment.end, len(shown))
        if start >= end:
            continue
        if start > at:
            found.append(HighlightedSegment(None, None, (HighlightedText(shown[at:start], ""),)))
        own = [(n, e) for n, e in evidence if e.response_start < end and e.response_end > start]
        found.append(HighlightedSegment(segment.label, segment.probability, tuple(_pieces(shown, start, end, segment, own))))
        at = end
    rest = shown[at:]
    if len(response) > len(shown):
        rest += f" … [{len(response) - len(shown):,} more characters are not shown]"
    label, probability = (None, None) if verdict.segments else (verdict.label, verdict.probability)
    return [*found, HighlightedSegment(label, probability, (HighlightedText(rest, ""),))] if rest else found


def _pieces(
    response: str, start: int, end: int, segment: Segment, evidence: Sequence[tuple[int, Evidence]]
) -> Iterator[HighlightedText]:
    marks = [(e.response_start, e.response_end, CONTRADICTED if e.relation == "contradicts" else SUPPORTED) for _, e in evidence]
    marks += [
        (f.start, f.end, CONTRADICTED if f.label is Label.INCORRECT else INCONCLUSIVE)
        for f in segment.findings if f.label is not Label.CORRECT
    ]  # fmt: skip
    cuts = sorted({start, end} | {at for a, b, _ in marks for at in (a, b) if start < at < end})
    for a, b in zip(cuts, cuts[1:], strict=False):
        there = {mark for begin, stop, mark in marks if begin <= a and stop >= b}
        mark = next((m for m in (CONTRADICTED, INCONCLUSIVE, SUPPORTED) if m in there), "")
        ends = tuple(n for n, e in evidence if min(e.response_end, end) == b and e.response_start < b)
        yield HighlightedText(response[a:b], mark, ends)
