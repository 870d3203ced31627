"""Results: verdicts with segments and evidence, revisions with their changes, and failures with their reasons."""

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

from pydantic import AliasChoices, Field, model_validator

from knowhalu.critiques import Critique
from knowhalu.errors import CheckFailed
from knowhalu.io.notebook import render_html, revision_html, verdict_html
from knowhalu.text.edits import TextEdit, apply_edits
from knowhalu.text.probabilities import describe_probability
from knowhalu.text.sentences import sanitize
from knowhalu.types import Extraction, HallucinationKind, Judgment, Label, OptionalReason, Record, Relation, Sample, Task


class _Result(Record):
    """The base of what a check or a revision returns: a verdict, a revision or a failure."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data, ready for JSON."""
        return dict(json.loads(self.model_dump_json()))

    def unwrap(self) -> Self:
        """Return the result itself, where a Failure raises CheckFailed."""
        return self

    def __str__(self) -> str:
        return repr(self)


class Evidence(Record):
    """Characters of the response, those of a source that support or contradict them, alone or together, and the probability.

    `quote == passage.text[start:end]`; `document_start` is the place of the quote in the document `document`.
    """

    response_start: int
    response_end: int
    relation: Literal["supports", "contradicts"]
    probability: float | None
    passage: str
    title: str
    quote: str
    start: int
    end: int
    document: str
    document_start: int


class Finding(Record):
    """A claim, an entity or a citation of a segment, judged on its own, or words that the sources do not support.

    Its place is `response[start:end]`; `text` is a decontextualised claim or those characters. `type` is the type of the entity
    or citation, `p_supported` the probability that the sources support it, None where it was not measured.
    """

    unit: Literal["claim", "entity", "citation", "words"]
    start: int
    end: int
    text: str
    type: str = ""
    label: Label
    relation: Relation | None = None
    p_supported: float | None = Field(ge=0.0, le=1.0, validation_alias=AliasChoices("p_supported", "supported"))
    reason: str


class _Explained(Record):
    """The base of segments and verdicts: a label, and the reasons for it, which outcomes of older versions lack."""

    if TYPE_CHECKING:
        label: Label
        inconclusive_reason: OptionalReason
        relation: Relation | None

    @model_validator(mode="after")
    def _has_fitting_reasons(self) -> Self:
        if self.inconclusive_reason is not None and self.label is not Label.INCONCLUSIVE:
            raise ValueError(f"only an INCONCLUSIVE text has an inconclusive_reason, and this one is {self.label}")
        if self.relation is not None and (self.label is not Label.INCORRECT or self.relation is Relation.ENTAILMENT):
            raise ValueError("only an INCORRECT text has a relation, and it is a contradiction or neutral")
        return self

    @property
    def why(self) -> str:
        """Return in words why it is inconclusive, or the relation of the sources to an error; empty where unknown."""
        if self.inconclusive_reason is not None:
            return self.inconclusive_reason.description
        phrases = {Relation.CONTRADICTION: "contradicted by the sources", Relation.NEUTRAL: "not supported by the sources"}
        return phrases[self.relation] if self.relation is not None else ""


class Segment(_Explained):
    """A part of the response and its judgments: `text == response[start:end]`.

    `inconclusive_reason` and `relation` are as in the verdict.
    """

    start: int
    end: int
    text: str
    label: Label
    inconclusive_reason: OptionalReason = None
    relation: Relation | None = None
    probability: float | None
    base: Judgment
    supplement: Judgment | None = None
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def forms_agree(self) -> bool | None:
        """Tell whether both forms of knowledge led to the same label; None where only one was judged."""
        return None if self.supplement is None else self.supplement.label is self.base.label


class SkippedSpan(Record):
    """A part of the response that was not checked, and why; `text == response[start:end]`."""

    start: int
    end: int
    text: str
    reason: str


class CascadeStage(Record):
    """The result of one stage of a cascade, and whether it decided."""

    name: str
    method: str
    label: Label
    hallucinated: bool | None
    probability: float | None = Field(ge=0.0, le=1.0)
    reason: str
    decided: bool


class Usage(Record):
    """The cost of a check; `reused` replies come from the reply cache and cost neither calls nor tokens."""

    pairs: int = 0
    searches: int = 0
    calls: int = 0
    reused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


class Verdict(_Explained, _Result):
    """The result of a check, with every step that led to it.

    `probability` is that of the text being hallucinated, combined from its segments, or None where one was not measured.
    `inconclusive_reason` is set for INCONCLUSIVE texts, `relation` for an INCORRECT one that was compared with sources: whether
    they contradict it or are neutral. `unscaled` is the probability before a profile's scaling, `index` the seal of the searched
    index, `stages` those of a cascade, and `thinking` what a model thought before its replies, from which no label is read.
    """

    id: str
    task: Task
    method: str
    label: Label
    hallucinated: bool | None
    inconclusive_reason: OptionalReason = None
    relation: Relation | None = None
    kind: HallucinationKind | None
    probability: float | None = Field(ge=0.0, le=1.0)
    reason: str
    extraction: Extraction | None = None
    segments: tuple[Segment, ...] = ()
    index: str | None = None
    skipped: tuple[SkippedSpan, ...] = Field((), validation_alias=AliasChoices("skipped", "unchecked"))
    unscaled: float | None = None
    stages: tuple[CascadeStage, ...] = ()
    thinking: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)

    @classmethod
    def of(cls, sample: Sample, method: str, *, p_supported: float, threshold: float = 0.5, reason: str = "") -> "Verdict":
        """Make the verdict of a method that has one probability: a text under the threshold is hallucinated."""
        wrong, text = p_supported < threshold, sample.response
        label, confidence = (Label.INCORRECT, 1 - p_supported) if wrong else (Label.CORRECT, p_supported)
        reason = reason or f"P(supported) = {p_supported:.3f}, threshold {threshold:g}"
        judgment = Judgment(label=label, confidence=confidence, p_supported=p_supported, rationale=reason)
        segment = Segment(start=0, end=len(text), text=text, label=label, probability=1 - p_supported, base=judgment)
        return cls(
            id=sample.id, task=sample.task, method=method, label=label, hallucinated=wrong,
            kind=HallucinationKind.FACTUAL if wrong else None, probability=1 - p_supported, reason=reason, segments=(segment,),
        )  # fmt: skip

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return the evidence of all segments."""
        return tuple(e for s in self.segments for e in s.evidence)

    @property
    def best_evidence(self) -> Evidence | None:
        """Return the most probable evidence for the decision, or of any where none is for it."""
        wanted = {True: "contradicts", False: "supports", None: ""}[self.hallucinated]
        found = [e for e in self.evidence if e.relation == wanted] or self.evidence
        return max(found, key=lambda e: e.probability or 0.0, default=None)

    @property
    def response(self) -> str:
        """Return as much of the response as the verdict holds, each segment at its place; gaps are dotted."""
        text = ""
        for start, part in sorted([(s.start, s.text) for s in self.segments] + [(s.start, s.text) for s in self.skipped]):
            if start >= len(text):
                gap = start - len(text)
                text += (" " * gap if gap < 3 else " … ".ljust(gap)) + part
        return text

    def __repr__(self) -> str:
        decided = {True: "hallucinated", False: "faithful", None: "inconclusive"}[self.hallucinated]
        kind = f" ({self.kind})" if self.kind is not None else ""
        sure = describe_probability(self.probability, sign="=")
        return f"Verdict({self.id!r}: {decided}{kind}, {sure}, method={self.method!r})"

    def _repr_html_(self) -> str:
        return verdict_html(self)


class Failure(_Result):
    """A check or a revision without a result: the stage that failed, the reason, and the raw reply where there was one."""

    id: str
    stage: str
    reason: str
    reply: str | None = None

    hallucinated: ClassVar[None] = None
    label: ClassVar[None] = None
    probability: ClassVar[None] = None

    def unwrap(self) -> NoReturn:
        """Raise CheckFailed with the stage and the reason."""
        raise CheckFailed(self.id, self.stage, self.reason)

    def __repr__(self) -> str:
        return f"Failure({self.id!r}: {' '.join(sanitize(f'{self.stage}: {self.reason}').split())})"

    def _repr_html_(self) -> str:
        return render_html(repr(self), "", self.reply or "", ())


Outcome = Verdict | Failure
RevisionStrategy = Literal["guarded", "conli", "factored", "self-correction"]
"""Strategies of revision: the guarded one of this project, and three published ones."""


class Change(Record):
    """Characters of the original, `text == original[start:end]`, and their replacement `new`, "" where they were dropped.

    "kept" is a flagged sentence left unchanged; "added" has no characters in the original. `before` and `after` are probabilities
    of being hallucinated, None where not judged. Spans of `evidence` are of the original, of `support` of the revised text.
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


class Revision(_Result):
    """A text revised until its sources support it, with all changes.

    `method` is the detector's name. A refused revision has no `revised` text; its changes are what would have been dropped.
    `unflagged_changed` counts changed sentences that the detector had passed, `critiques` are those of Factored Verification.
    `usage`, `seconds` and `thinking` are of the whole revision, and empty in `before` and `after`; `index` is as in a verdict.
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
    critiques: tuple[Critique, ...] = ()
    before: Verdict
    after: Verdict | None
    thinking: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)
    index: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> "Revision":
        if any(self.original[c.start : c.end] != c.text for c in self.changes):
            raise ValueError("a change does not quote the original")
        if (self.revised is None) != (self.status == "refused"):
            raise ValueError("a revision has a revised text unless it is refused")
        if self.revised is not None and apply_edits(self.original, self.edits) != self.revised:
            raise ValueError("the changes do not make the revised text")
        return self

    @property
    def edits(self) -> tuple[TextEdit, ...]:
        """Return the changes without their reasons."""
        return tuple(TextEdit(c.start, c.end, c.new) for c in self.changes)

    def __repr__(self) -> str:
        return f"Revision({self.id!r}: {self.status}, {len(self.changes)} changes, how={self.how!r}, method={self.method!r})"

    def _repr_html_(self) -> str:
        return revision_html(self)


RevisionOutcome = Revision | Failure
