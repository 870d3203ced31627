"""Drafts: a text as sentences that may be replaced or dropped one by one, while every other character stays as it is."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import accumulate
from typing import Literal, NamedTuple

from knowhalu.results import Segment, TextEdit, Verdict
from knowhalu.text.sentences import Span, sentences
from knowhalu.types import Label

LIST_MARKER = re.compile(r"(?:[-•*–]|\(?\d{1,3}[.)])\s+")
"""What stands before an item of a list; it belongs to the item and is no part of what it says."""
_LONE_LIST_MARKER = re.compile(r"\(?\d{1,3}[.)]")
LABEL_SEVERITY = {Label.CORRECT: 0, Label.INCONCLUSIVE: 1, Label.INCORRECT: 2}
"""How bad a label is."""


class SentenceVerdict(NamedTuple):
    """What a verdict says of a sentence: the worst of the segments that it stands in; no label where none was judged."""

    label: Label | None
    probability: float
    segments: tuple[Segment, ...]


class RewriteInput(NamedTuple):
    """A flagged sentence, the reason, and the text around it."""

    sentence: str
    why: str
    context: str


class ProposedRewrite(NamedTuple):
    """A possible replacement of a sentence."""

    text: str
    how: Literal["rewritten", "substituted"]


def editable_spans(text: str) -> tuple[Span, ...]:
    """Split a text into what may be changed alone: sentences, those of a list with their numbers."""
    found: list[Span] = []
    for span in sentences(text):
        if found and _LONE_LIST_MARKER.fullmatch(found[-1].text) and "\n" not in text[found[-1].end : span.start]:
            span = Span(found[-1].start, span.end, text[found.pop().start : span.end])
        found.append(span)
    return tuple(found)


class SentenceVerdicts:
    """What a verdict says of any place of its text; places are looked up by bisection, so that long texts take no square time."""

    def __init__(self, verdict: Verdict, segments: Iterable[Segment] | None = None) -> None:
        """Read a verdict, or some of its segments only."""
        self.probability = verdict.probability
        self.segments = sorted(verdict.segments if segments is None else segments, key=lambda s: s.start)
        self._starts = [s.start for s in self.segments]
        self._reach = list(accumulate((s.end for s in self.segments), max))

    def of(self, place: Span) -> SentenceVerdict:
        """Return what is said of the characters of a sentence."""
        near = self.segments[bisect_right(self._reach, place.start) : bisect_left(self._starts, place.end)]
        there = tuple(s for s in near if _overlaps(s, place))
        label = max((s.label for s in there), key=LABEL_SEVERITY.__getitem__, default=None)
        return SentenceVerdict(label, max((s.probability for s in there), default=self.probability), there)


def _overlaps(segment: Segment, place: Span) -> bool:
    start, end = max(segment.start, place.start), min(segment.end, place.end)
    return start < end and bool(place.text[start - place.start : end - place.start].strip())


def make_edits(text: str, spans: Sequence[Span], new: Mapping[int, str]) -> dict[int, TextEdit]:
    """Return the edit of every sentence that gets a `new` text; "" drops it with the white space that it leaves behind.

    Of the separators around sentences dropped in a row, one is left: that of the text's edge, or the one with most line breaks.
    """
    found = {i: TextEdit(spans[i].start, spans[i].end, put) for i, put in new.items() if put}
    dropped = [i for i, put in sorted(new.items()) if not put]
    while dropped:
        run = [dropped.pop(0)]
        while dropped and dropped[0] == run[-1] + 1:
            run.append(dropped.pop(0))
        found |= _drop_edits(text, spans, run)
    return dict(sorted(found.items()))


def _drop_edits(text: str, spans: Sequence[Span], run: Sequence[int]) -> dict[int, TextEdit]:
    borders = [*((spans[i - 1].end if i else 0, spans[i].start) for i in run)]
    borders.append((spans[run[-1]].end, spans[run[-1] + 1].start if run[-1] + 1 < len(spans) else len(text)))
    if run[0] == 0:
        stays = 0
    elif run[-1] == len(spans) - 1:
        stays = len(run)
    else:
        stays = max(range(len(borders)), key=lambda j: (text.count("\n", *borders[j]), borders[j][1] - borders[j][0], -j))
    return {
        i: TextEdit(borders[j][0] if j < stays else spans[i].start, borders[j + 1][1] if j >= stays else spans[i].end, "")
        for j, i in enumerate(run)
    }


def spans_after_edits(spans: Sequence[Span], made: Mapping[int, TextEdit]) -> dict[int, Span]:
    """Return where each sentence that is left stands after the edits, with its text."""
    found, shift = {}, 0
    for i, span in enumerate(spans):
        edit = made.get(i)
        if edit is None or edit.new:
            put = span.text if edit is None else edit.new
            found[i] = Span(span.start + shift, span.start + shift + len(put), put)
        shift += len(edit.new) - (edit.end - edit.start) if edit is not None else 0
    return found


def changed_sentences(spans: Sequence[Span], made: Iterable[TextEdit]) -> set[int]:
    """Return the numbers of the sentences of which an edit changes a character."""
    places = [(e.start, e.end) for e in made]
    return {i for i, s in enumerate(spans) if any(start < s.end and s.start < end for start, end in places)}


def diff_edits(old: str, new: str) -> list[TextEdit]:
    """Return edits that turn one text into another, sentence by sentence where they can be paired."""
    here, there = editable_spans(old), editable_spans(new)
    blocks = SequenceMatcher(None, [u.text for u in here], [u.text for u in there], autojunk=False).get_matching_blocks()
    pairs = [(b.a + k, b.b + k) for b in blocks for k in range(b.size)]
    found: list[TextEdit] = []
    last = (-1, -1)
    for pair in [*pairs, (len(here), len(there))]:
        found += _diff_region(old, new, _between(here, last[0], pair[0], len(old)), _between(there, last[1], pair[1], len(new)))
        last = pair
    return found


def _between(spans: Sequence[Span], first: int, last: int, end: int) -> tuple[Span, ...]:
    """Return the sentences between two others, with the borders of their region as empty sentences at both sides."""
    start = spans[first].end if first >= 0 else 0
    stop = spans[last].start if last < len(spans) else end
    return (Span(start, start, ""), *spans[first + 1 : last], Span(stop, stop, ""))


def _diff_region(old: str, new: str, here: Sequence[Span], there: Sequence[Span]) -> list[TextEdit]:
    if len(here) != len(there):
        return [_trim_edit(old, TextEdit(here[0].start, here[-1].end, new[there[0].start : there[-1].end]))]
    found = []
    for i, (a, b) in enumerate(zip(here, there, strict=True)):
        if i and old[here[i - 1].end : a.start] != (gap := new[there[i - 1].end : b.start]):
            found.append(TextEdit(here[i - 1].end, a.start, gap))
        if a.text != b.text:
            found.append(TextEdit(a.start, a.end, b.text))
    return found


def _trim_edit(old: str, edit: TextEdit) -> TextEdit:
    """Leave out the white space that both sides begin or end with."""
    start, end, new = edit
    while start < end and new and old[start] == new[0] and new[0].isspace():
        start, new = start + 1, new[1:]
    while start < end and new and old[end - 1] == new[-1] and new[-1].isspace():
        end, new = end - 1, new[:-1]
    return TextEdit(start, end, new)


def make_unified_diff(original: str, revised: str) -> str:
    """Return a unified diff with one sentence on each line."""
    lines = unified_diff(_sentence_lines(original), _sentence_lines(revised), "original", "revised", lineterm="", n=1)
    return "\n".join(lines)


def _sentence_lines(text: str) -> Sequence[str]:
    return [" ".join(s.text.split()) for s in sentences(text)]
