"""A response as sentences: which of them a verdict flags, and edits that replace or drop one and keep every other character."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from knowhalu.methods.common.verdict import deciding_segment
from knowhalu.methods.options import ReviseOptions
from knowhalu.results import Change, Evidence, Revision, RevisionStrategy, Segment, Verdict
from knowhalu.text.edits import TextEdit
from knowhalu.text.probabilities import all_measured
from knowhalu.text.sentences import Span, sentences
from knowhalu.types import Label, Sample

LIST_MARKER = re.compile(r"(?:[-•*–]|\(?\d{1,3}[.)])\s+")
"""The marker before an item of a list; it is kept with the item, but is no part of its statement."""
_LONE_LIST_MARKER = re.compile(r"\(?\d{1,3}[.)]")
LABEL_SEVERITY = {Label.CORRECT: 0, Label.INCONCLUSIVE: 1, Label.INCORRECT: 2}
"""Labels by severity."""


class SentenceVerdict(NamedTuple):
    """The verdict on one sentence: the worst label and probability of its segments; no label where none was judged.

    The probability is None where that of a segment was not measured.
    """

    label: Label | None
    probability: float | None
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
    """Split a text into units that can be edited alone: sentences, those of a list with their numbers."""
    spans: list[Span] = []
    for span in sentences(text):
        if spans and _LONE_LIST_MARKER.fullmatch(spans[-1].text) and "\n" not in text[spans[-1].end : span.start]:
            span = Span(spans[-1].start, span.end, text[spans.pop().start : span.end])
        spans.append(span)
    return tuple(spans)


class SentenceVerdicts:
    """Look up the verdict on any span of a text, by bisection, so that long texts do not take quadratic time."""

    def __init__(self, verdict: Verdict, segments: Iterable[Segment] | None = None) -> None:
        """Index a verdict, or some of its segments only."""
        self.probability = verdict.probability
        self.segments = sorted(verdict.segments if segments is None else segments, key=lambda s: s.start)
        self._starts = [s.start for s in self.segments]
        self._reach = list(accumulate((s.end for s in self.segments), max))

    def of(self, span: Span) -> SentenceVerdict:
        """Return the verdict on a span."""
        near = self.segments[bisect_right(self._reach, span.start) : bisect_left(self._starts, span.end)]
        segments = tuple(s for s in near if _overlaps(s, span))
        label = max((s.label for s in segments), key=LABEL_SEVERITY.__getitem__, default=None)
        measured = all_measured(s.probability for s in segments)
        return SentenceVerdict(label, max(measured, default=self.probability) if measured is not None else None, segments)


def _overlaps(segment: Segment, span: Span) -> bool:
    start, end = max(segment.start, span.start), min(segment.end, span.end)
    return start < end and bool(span.text[start - span.start : end - span.start].strip())


def make_edits(text: str, spans: Sequence[Span], new: Mapping[int, str]) -> dict[int, TextEdit]:
    """Return the edit of every sentence that gets a `new` text; "" drops it with the white space next to it.

    One separator is kept around sentences that are dropped in a row: the one at the edge of the text, or with most line breaks.
    """
    edits = {i: TextEdit(spans[i].start, spans[i].end, replacement) for i, replacement in new.items() if replacement}
    dropped = [i for i, replacement in sorted(new.items()) if not replacement]
    while dropped:
        run = [dropped.pop(0)]
        while dropped and dropped[0] == run[-1] + 1:
            run.append(dropped.pop(0))
        edits |= _drop_edits(text, spans, run)
    return dict(sorted(edits.items()))


def _drop_edits(text: str, spans: Sequence[Span], run: Sequence[int]) -> dict[int, TextEdit]:
    gaps = [(spans[i - 1].end if i else 0, spans[i].start) for i in run]
    gaps.append((spans[run[-1]].end, spans[run[-1] + 1].start if run[-1] + 1 < len(spans) else len(text)))
    if run[0] == 0:
        stays = 0
    elif run[-1] == len(spans) - 1:
        stays = len(run)
    else:
        stays = max(range(len(gaps)), key=lambda j: (text.count("\n", *gaps[j]), gaps[j][1] - gaps[j][0], -j))
    return {
        i: TextEdit(gaps[j][0] if j < stays else spans[i].start, gaps[j + 1][1] if j >= stays else spans[i].end, "")
        for j, i in enumerate(run)
    }


def spans_after_edits(spans: Sequence[Span], edits: Mapping[int, TextEdit]) -> dict[int, Span]:
    """Return the span of every remaining sentence after the edits."""
    after, shift = {}, 0
    for i, span in enumerate(spans):
        edit = edits.get(i)
        if edit is None or edit.new:
            text = span.text if edit is None else edit.new
            after[i] = Span(span.start + shift, span.start + shift + len(text), text)
        shift += len(edit.new) - (edit.end - edit.start) if edit is not None else 0
    return after


def changed_sentences(spans: Sequence[Span], edits: Iterable[TextEdit]) -> set[int]:
    """Return the numbers of the sentences in which an edit changes a character."""
    edits = list(edits)
    return {i for i, s in enumerate(spans) if any(e.start < s.end and s.start < e.end for e in edits)}


def diff_edits(old: str, new: str) -> list[TextEdit]:
    """Return edits that turn one text into another, sentence by sentence where they can be paired."""
    before, after = editable_spans(old), editable_spans(new)
    blocks = SequenceMatcher(None, [s.text for s in before], [s.text for s in after], autojunk=False).get_matching_blocks()
    equal = [(b.a + k, b.b + k) for b in blocks for k in range(b.size)]
    edits: list[TextEdit] = []
    for (i, j), (to_i, to_j) in pairwise([(-1, -1), *equal, (len(before), len(after))]):
        edits += _diff_region(old, new, _between(before, i, to_i, len(old)), _between(after, j, to_j, len(new)))
    return edits


def _between(spans: Sequence[Span], first: int, last: int, end: int) -> tuple[Span, ...]:
    """Return the sentences between two others, with an empty sentence at each end of their region."""
    start = spans[first].end if first >= 0 else 0
    stop = spans[last].start if last < len(spans) else end
    return (Span(start, start, ""), *spans[first + 1 : last], Span(stop, stop, ""))


def _diff_region(old: str, new: str, before: Sequence[Span], after: Sequence[Span]) -> list[TextEdit]:
    if len(before) != len(after):
        return [_trim_edit(old, TextEdit(before[0].start, before[-1].end, new[after[0].start : after[-1].end]))]
    edits = []
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        if i and old[before[i - 1].end : a.start] != (gap := new[after[i - 1].end : b.start]):
            edits.append(TextEdit(before[i - 1].end, a.start, gap))
        if a.text != b.text:
            edits.append(TextEdit(a.start, a.end, b.text))
    return edits


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
    old, new = ([" ".join(s.text.split()) for s in sentences(text)] for text in (original, revised))
    return "\n".join(unified_diff(old, new, "original", "revised", lineterm="", n=1))


class FlaggedSentence(NamedTuple):
    """A sentence that is not supported: its number and span, its segments that were flagged, and the reasons.

    `evidence` concerns characters of the sentence; `probability` is P(hallucinated) of the sentence.
    """

    number: int
    span: Span
    segments: tuple[Segment, ...]
    why: str
    probability: float | None
    evidence: tuple[Evidence, ...]

    def alone(self, verdict: Verdict) -> "FlaggedSentence":
        """Return the sentence with the reasons of a verdict on it by itself, where that verdict flags it too."""
        if verdict.hallucinated is False:
            return self
        evidence = shift_evidence(verdict.evidence, self.span.start)
        return self._replace(why=verdict.reason or self.why, probability=verdict.probability, evidence=evidence)


def flagged_sentences(spans: Sequence[Span], verdict: Verdict, options: ReviseOptions) -> list[FlaggedSentence]:
    """Return the flagged sentences; of a text that is hallucinated only as a whole, those of its least supported segment."""
    return _sentences_of(spans, verdict, _flagged_segments(verdict, options))


def _sentences_of(spans: Sequence[Span], verdict: Verdict, chosen: Iterable[Segment] | None) -> list[FlaggedSentence]:
    verdicts = SentenceVerdicts(verdict, chosen)
    flagged = []
    for number, span in enumerate(spans):
        _, probability, segments = verdicts.of(span)
        if segments:
            why = "; ".join(dict.fromkeys(w for s in segments for w in _flag_reasons(s, span)))
            evidence = (e for s in segments for e in s.evidence if e.response_start < span.end and span.start < e.response_end)
            flagged.append(FlaggedSentence(number, span, segments, why or verdict.reason, probability, tuple(evidence)))
    return flagged


def judged_sentences(spans: Sequence[Span], verdict: Verdict) -> list[FlaggedSentence]:
    """Return every sentence that the detector judged, whatever its label, with the reasons against it."""
    return _sentences_of(spans, verdict, None)


def _flagged_segments(verdict: Verdict, options: ReviseOptions) -> list[Segment]:
    bad = {Label.INCORRECT, Label.INCONCLUSIVE} if options.inconclusive else {Label.INCORRECT}
    flagged = [s for s in verdict.segments if s.label is not Label.CORRECT]
    if not flagged and verdict.hallucinated and verdict.segments:
        return [deciding_segment(verdict.segments)]
    return [
        s for s in flagged
        if s.label in bad and (s.label is Label.INCONCLUSIVE or s.probability is None or s.probability >= options.threshold)
    ]  # fmt: skip


def shift_evidence(evidence: Iterable[Evidence], by: int) -> tuple[Evidence, ...]:
    """Move evidence on a sentence by itself `by` characters, to the place of the sentence in its text."""
    return tuple(
        e.model_copy(update={"response_start": e.response_start + by, "response_end": e.response_end + by}) for e in evidence
    )


def _flag_reasons(segment: Segment, span: Span) -> Iterator[str]:
    """Yield the reasons of the findings within the sentence, else that of the judgment that decided."""
    findings = [f for f in segment.findings if f.label is not Label.CORRECT and f.start < span.end and span.start < f.end]
    for finding in findings:
        yield f"“{finding.text}”: {finding.reason}"
    if not findings:
        supplement = segment.supplement
        decisive = segment.base if supplement is None or segment.base.label is segment.label else supplement
        yield decisive.rationale


def off_target_reason(verdict: Verdict) -> str:
    """Return the reason why an answer that misses the question is not revised."""
    return f"it does not answer the question, and no source can change that: {verdict.reason}"


def refused_revision(
    sample: Sample, before: Verdict, how: RevisionStrategy, reason: str, changes: tuple[Change, ...] = ()
) -> Revision:
    """Return a revision without a text, and why."""
    return Revision(
        id=sample.id, method=before.method, how=how, status="refused", reason=reason, original=sample.response, revised=None,
        changes=changes, before=before, after=None,
    )  # fmt: skip


def unchanged_revision(sample: Sample, before: Verdict, how: RevisionStrategy) -> Revision:
    """Return the text as it is where no sentence is to be revised; refuse where a text is flagged, but no sentence of it."""
    is_flagged = any(s.label is not Label.CORRECT for s in before.segments)
    if before.hallucinated is not False and not is_flagged:
        reason = f"the method {before.method!r} flags the text ({before.reason}), but none of its sentences"
        return refused_revision(sample, before, how, reason)
    left = "the flagged sentences were left as they are, as the settings demand"
    return Revision(
        id=sample.id, method=before.method, how=how, status="unchanged", original=sample.response, revised=sample.response,
        reason=left if is_flagged else "the detector finds nothing to change", before=before, after=before,
    )  # fmt: skip
