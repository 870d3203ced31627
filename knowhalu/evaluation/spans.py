"""The characters of a text that a verdict flags, compared with gold spans, and the number of errors it found."""

from collections.abc import Iterable, Sequence
from typing import Any

from knowhalu.errors import InputError
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.types import META_SPANS, Label, Sample

Spans = Sequence[tuple[int, int]]


def flagged_spans(verdict: Verdict) -> list[tuple[int, int]]:
    """Return the spans of the response that a verdict flags as unsupported: disjoint, in their order.

    Of an INCORRECT segment these are its flagged words; without those its INCORRECT findings, or else all of it, and of either
    only the characters that evidence contradicts, where it names some. A text without segments (an off-target answer) has none.
    """
    return merge_spans(span for segment in verdict.segments for span in _of_segment(segment))


def count_errors(verdict: Verdict) -> int:
    """Count the errors of a verdict: INCORRECT findings, INCORRECT segments without one, or an off-target answer."""
    if not verdict.segments:
        return int(verdict.label is Label.INCORRECT)
    return sum(
        len([f for f in _segment_errors(s) if f.unit != "words"]) or int(s.label is Label.INCORRECT) for s in verdict.segments
    )


def span_overlap(found: Spans, gold: Spans) -> tuple[int, int, int]:
    """Count the characters in both, in the first, and in the second of two lists of disjoint, sorted spans."""
    both = i = j = 0
    while i < len(found) and j < len(gold):
        both += max(0, min(found[i][1], gold[j][1]) - max(found[i][0], gold[j][0]))
        if found[i][1] < gold[j][1]:
            i += 1
        else:
            j += 1
    return both, _length(found), _length(gold)


def gold_spans(sample: Sample, place: str) -> list[tuple[int, int]] | None:
    """Return the gold spans of a sample, None where they are not known; raises InputError for invalid spans.

    A faithful sample without spans has an empty list.
    """
    value = sample.meta.get(META_SPANS)
    if value is None:
        return [] if sample.label == "faithful" else None
    if not isinstance(value, list) or not all(_is_span(v, len(sample.response)) for v in value):
        raise InputError(
            f"{place}, sample {sample.id!r}, field 'meta.{META_SPANS}': not spans of its {len(sample.response)} characters. "
            "Write [[start, end], ...], counted in characters from 0, or give the field another name."
        )
    return merge_spans((start, end) for start, end in value)


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort spans and join those that touch; empty ones are left out."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(s for s in spans if s[0] < s[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _of_segment(segment: Segment) -> Iterable[tuple[int, int]]:
    if segment.label is not Label.INCORRECT:
        return
    wrong = _segment_errors(segment)
    if words := [(f.start, f.end) for f in wrong if f.unit == "words"]:
        yield from words
        return
    against = [(e.response_start, e.response_end) for e in segment.evidence if e.relation == "contradicts"]
    for start, end in [(f.start, f.end) for f in wrong] or [(segment.start, segment.end)]:
        inside = [(max(start, a), min(end, b)) for a, b in against if max(start, a) < min(end, b)]
        yield from inside or [(start, end)]


def _segment_errors(segment: Segment) -> list[Finding]:
    return [f for f in segment.findings if f.label is Label.INCORRECT]


def _length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def _is_span(value: Any, length: int) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(type(v) is int for v in value)
    return is_pair and 0 <= value[0] <= value[1] <= length
