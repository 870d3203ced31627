"""Results: verdicts with segments and evidence, revisions with their changes, and failures with their reasons."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from knowhalu.text.sentences import sentences
from knowhalu.types import Extraction, HallucinationKind, InconclusiveReason, Judgment, Label, Record, Relation, Sample, Task

RELATION_PHRASES: Mapping[Relation, str] = {
    Relation.CONTRADICTION: "the sources contradict it", Relation.NEUTRAL: "the sources do not say it",
}  # fmt: skip
"""How the sources stand to a wrong text, in words."""


class Evidence(Record):
    """Characters of the response beside characters of a source, and how they stand to one another.

    `quote == passage.text[start:end]`; `document` and `document_start` say where it stands in the source.
    """

    response_start: int
    response_end: int
    relation: Literal["supports", "contradicts"]
    probability: float
    passage: str
    title: str
    quote: str
    start: int
    end: int
    document: str
    document_start: int


class Finding(Record):
    """A claim, an entity or a citation of a segment, judged alone, or words that the sources do not bear out.

    It stands in `response[start:end]`; `text` says it in words of its own where the response does not. `type` is that of the
    entity or the citation. `supported` is the probability that the sources bear it out.
    """

    unit: Literal["claim", "entity", "citation", "words"]
    start: int
    end: int
    text: str
    type: str = ""
    label: Label
    relation: Relation | None = None
    supported: float = Field(ge=0.0, le=1.0)
    reason: str


def _reason_phrase(reason: InconclusiveReason | None, relation: Relation | None) -> str:
    return reason.says if reason is not None else RELATION_PHRASES[relation] if relation is not None else ""


def _check_reasons(label: Label, why: InconclusiveReason | None, relation: Relation | None) -> None:
    """Raise ValueError for a reason that does not belong to a label; outcomes of older versions have none."""
    if why is not None and label is not Label.INCONCLUSIVE:
        raise ValueError(f"open says why a text is INCONCLUSIVE, and this one is {label}")
    if relation is not None and (label is not Label.INCORRECT or relation is Relation.ENTAILMENT):
        raise ValueError("relation says of what is INCORRECT whether the sources contradict it or are neutral")


class Segment(Record):
    """A piece of the response and what was found of it: `text == response[start:end]`.

    `open` and `relation` are as in the verdict.
    """

    start: int
    end: int
    text: str
    label: Label
    open: InconclusiveReason | None = None
    relation: Relation | None = None
    probability: float
    base: Judgment
    supplement: Judgment | None = None
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @model_validator(mode="after")
    def _has_fitting_reasons(self) -> "Segment":
        _check_reasons(self.label, self.open, self.relation)
        return self

    @property
    def why(self) -> str:
        """Return in words why it is open, or how the sources stand to what is wrong; nothing where that is not known."""
        return _reason_phrase(self.open, self.relation)

    @property
    def forms_agree(self) -> bool | None:
        """Tell whether both forms of knowledge led to the same label; None where only one was judged by."""
        return None if self.supplement is None else self.supplement.label is self.base.label


class SkippedSpan(Record):
    """A piece of the response that nothing was asked of, and why; `text == response[start:end]`."""

    start: int
    end: int
    text: str
    reason: str


class CascadeStage(Record):
    """What one stage of a cascade said of a text, and whether that decided."""

    name: str
    method: str
    label: Label
    hallucinated: bool | None
    probability: float = Field(ge=0.0, le=1.0)
    reason: str
    decided: bool


class Usage(Record):
    """What a check cost; `reused` replies were kept on disk from earlier and cost neither calls nor tokens."""

    pairs: int = 0
    searches: int = 0
    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class Verdict(Record):
    """The final word on a sample, with every step that led to it.

    `probability` is that of the text being hallucinated, from all its segments; `reason` says in words why. `open` is why an
    INCONCLUSIVE text was left open, and nothing else has it. `relation` says of an INCORRECT one whether the sources
    contradict it or do not say it (neutral); None where it was not held against sources, or where that was not asked. Where a
    profile has scaled it, `unscaled` is what the method said. `index` is the seal of the index that was searched for it,
    `stages` are those of a cascade.
    """

    id: str
    task: Task
    method: str
    label: Label
    hallucinated: bool | None
    open: InconclusiveReason | None = None
    relation: Relation | None = None
    kind: HallucinationKind | None
    probability: float = Field(ge=0.0, le=1.0)
    reason: str
    extraction: Extraction | None = None
    segments: tuple[Segment, ...] = ()
    index: str | None = None
    unchecked: tuple[SkippedSpan, ...] = ()
    unscaled: float | None = None
    stages: tuple[CascadeStage, ...] = ()
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_fitting_reasons(self) -> "Verdict":
        _check_reasons(self.label, self.open, self.relation)
        return self

    @property
    def why(self) -> str:
        """Return in words why it is open, or how the sources stand to what is wrong; nothing where that is not known."""
        return _reason_phrase(self.open, self.relation)

    @classmethod
    def of(cls, sample: Sample, method: str, *, p_supported: float, threshold: float = 0.5, reason: str = "") -> "Verdict":
        """Make the verdict of a method that has one probability: a text under the threshold is hallucinated."""
        wrong = p_supported < threshold
        label = Label.INCORRECT if wrong else Label.CORRECT
        reason = reason or f"P(supported) = {p_supported:.3f}, threshold {threshold:g}"
        judgment = Judgment(
            label=label, confidence=1 - p_supported if wrong else p_supported, supported=p_supported, rationale=reason
        )
        segment = Segment(
            start=0, end=len(sample.response), text=sample.response, label=label, probability=1 - p_supported, base=judgment
        )
        return cls(
            id=sample.id, task=sample.task, method=method, label=label, hallucinated=wrong,
            kind=HallucinationKind.FACTUAL if wrong else None, probability=1 - p_supported, reason=reason, segments=(segment,),
        )  # fmt: skip

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of all segments."""
        return tuple(e for s in self.segments for e in s.evidence)


class Failure(Record):
    """What came back instead of a verdict: the stage, the reason, and the raw reply where there was one."""

    id: str
    stage: str
    reason: str
    reply: str | None = None


Outcome = Verdict | Failure


RevisionStrategy = Literal["guarded", "conli", "factored", "self-correction"]
"""Ways to revise: our own, and three that were published."""


class TextEdit(NamedTuple):
    """Characters of a text, and what is to stand in their place."""

    start: int
    end: int
    new: str


class RewriteInput(NamedTuple):
    """A sentence that is doubted, why, and the text that it stands in."""

    sentence: str
    why: str
    context: str


class ProposedRewrite(NamedTuple):
    """A wording that might take the place of a sentence."""

    text: str
    how: Literal["rewritten", "substituted"]


class Change(Record):
    """A stretch of the original, `text == original[start:end]`, and what stands in its place: "" where it was dropped.

    What was "kept" stands as it was although it was doubted; what was "added" has no stretch in the original. `before` and
    `after` are probabilities of being hallucinated, None where they were not judged. `evidence` speaks of the original, `support`
    of the revised text; their spans are of those texts.
    """

    start: int
    end: int
    text: str
    new: str
    how: Literal["rewritten", "substituted", "dropped", "added", "kept"]
    why: str
    evidence: tuple[Evidence, ...] = ()
    support: tuple[Evidence, ...] = ()
    before: float | None = None
    after: float | None = None


class Revision(Record):
    """A text made to say what its sources bear out, with all that was changed in it.

    `method` is the detector's name. A refused revision has no `revised` text; its changes say what would have had to go.
    `unflagged_changed` counts sentences that were changed though the detector had passed them. Usage and seconds are of the
    whole revision, with all of its checks; those within `before` and `after` are empty. `index` is the seal of the index that was
    searched, None where none was.
    """

    id: str
    method: str
    how: RevisionStrategy
    status: Literal["revised", "unchanged", "refused"]
    reason: str
    original: str
    revised: str | None
    diff: str = ""
    changes: tuple[Change, ...] = ()
    unflagged_changed: int = 0
    before: Verdict
    after: Verdict | None
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)
    index: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Revision":
        if any(self.original[c.start : c.end] != c.text for c in self.changes):
            raise ValueError("a change does not quote the original")
        if (self.revised is None) != (self.status == "refused"):
            raise ValueError("a revision has a text unless it is refused")
        if self.revised is not None and apply_edits(self.original, self.edits) != self.revised:
            raise ValueError("the changes do not make the revised text")
        return self

    @property
    def edits(self) -> tuple[TextEdit, ...]:
        """Return the changes without their reasons."""
        return tuple(TextEdit(c.start, c.end, c.new) for c in self.changes)


RevisionOutcome = Revision | Failure


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Return the text with its edits made; raises ValueError where two of them overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        if edit.start < at:
            raise ValueError(f"two changes overlap at character {edit.start}")
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])


def make_unified_diff(original: str, revised: str) -> str:
    """Return what differs as a unified diff, one sentence on each line."""
    lines = unified_diff(_sentence_lines(original), _sentence_lines(revised), "original", "revised", lineterm="", n=1)
    return "\n".join(lines)


def _sentence_lines(text: str) -> Sequence[str]:
    return [" ".join(s.text.split()) for s in sentences(text)]
