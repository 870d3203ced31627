"""Which sentences of a response a verdict doubts, and why; and the revisions that change nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from knowhalu.methods.revise.edits import SentenceVerdicts
from knowhalu.methods.revise.options import ReviseOptions
from knowhalu.results import Change, Evidence, Revision, RevisionStrategy, Segment, Verdict
from knowhalu.text.sentences import Span
from knowhalu.types import Label, Sample


class FlaggedSentence(NamedTuple):
    """A sentence that is not borne out: its number and place, the segments that say so, and what they say.

    `evidence` speaks of characters of the sentence; `probability` is that of the sentence being hallucinated.
    """

    number: int
    span: Span
    segments: tuple[Segment, ...]
    why: str
    probability: float
    evidence: tuple[Evidence, ...]

    def alone(self, verdict: Verdict) -> "FlaggedSentence":
        """Return the doubt as a verdict on the sentence by itself puts it, where it is in doubt there too."""
        if verdict.hallucinated is False:
            return self
        evidence = shift_evidence(verdict.evidence, self.span.start)
        return self._replace(why=verdict.reason or self.why, probability=verdict.probability, evidence=evidence)


def flagged_sentences(spans: Sequence[Span], verdict: Verdict, options: ReviseOptions) -> list[FlaggedSentence]:
    """Return the sentences in doubt; of a text that is hallucinated only as a whole, those of its least probable segment."""
    told = SentenceVerdicts(verdict, _flagged_segments(verdict, options))
    found = []
    for number, span in enumerate(spans):
        read = told.of(span)
        if read.segments:
            why = "; ".join(dict.fromkeys(w for s in read.segments for w in _flag_reasons(s, span)))
            evidence = (e for s in read.segments for e in s.evidence)
            mine = tuple(e for e in evidence if e.response_start < span.end and span.start < e.response_end)
            found.append(FlaggedSentence(number, span, read.segments, why or verdict.reason, read.probability, mine))
    return found


def _flagged_segments(verdict: Verdict, options: ReviseOptions) -> list[Segment]:
    bad = {Label.INCORRECT, Label.INCONCLUSIVE} if options.inconclusive else {Label.INCORRECT}
    flagged = [s for s in verdict.segments if s.label is not Label.CORRECT]
    if not flagged and verdict.hallucinated and verdict.segments:
        return [max(verdict.segments, key=lambda s: s.probability)]
    return [s for s in flagged if s.label in bad and (s.label is Label.INCONCLUSIVE or s.probability >= options.threshold)]


def shift_evidence(evidence: Iterable[Evidence], by: int) -> tuple[Evidence, ...]:
    """Return evidence on a sentence by itself as evidence on the text that it stands in, `by` characters further on."""
    return tuple(
        e.model_copy(update={"response_start": e.response_start + by, "response_end": e.response_end + by}) for e in evidence
    )


def _flag_reasons(segment: Segment, span: Span) -> Iterator[str]:
    """Give the reasons: those of the findings within the sentence, else that of the judgment that decided."""
    findings = [f for f in segment.findings if f.label is not Label.CORRECT and f.start < span.end and span.start < f.end]
    for finding in findings:
        yield f"“{finding.text}”: {finding.reason}"
    if not findings:
        supplement = segment.supplement
        decisive = segment.base if supplement is None or segment.base.label is segment.label else supplement
        yield decisive.rationale


def off_target_reason(verdict: Verdict) -> str:
    """Say why an answer that misses the question is not revised."""
    return f"it does not answer the question, which no source can mend: {verdict.reason}"


def unlocated_reason(verdict: Verdict) -> str:
    """Say that a method found fault, but in no place."""
    return f"the method {verdict.method!r} doubts it ({verdict.reason}) and does not say where"


def refused_revision(
    sample: Sample, before: Verdict, how: RevisionStrategy, reason: str, changes: tuple[Change, ...] = ()
) -> Revision:
    """Return a revision without a text, and why."""
    return Revision(
        id=sample.id, method=before.method, how=how, status="refused", reason=reason, original=sample.response, revised=None,
        changes=changes, before=before, after=None,
    )  # fmt: skip


def unchanged_revision(sample: Sample, before: Verdict, how: RevisionStrategy) -> Revision:
    """Return the text as it is where no sentence is to be revised; refuse where a doubted text has no sentence in doubt."""
    stands = any(s.label is not Label.CORRECT for s in before.segments)
    if before.hallucinated is not False and not stands:
        return refused_revision(sample, before, how, unlocated_reason(before))
    reason = "what is in doubt was let stand, as the settings say" if stands else "the detector finds nothing to change"
    return Revision(
        id=sample.id, method=before.method, how=how, status="unchanged", reason=reason, original=sample.response,
        revised=sample.response, before=before, after=before,
    )  # fmt: skip
