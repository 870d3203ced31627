"""What a check ends in: a verdict with its segments and evidence on two sides, or a failure with its reason."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from knowhalu.reasons import OpenReason
from knowhalu.types import Extraction, Judgment, Kind, Label, Record, Relation, Task

STANDS: Mapping[Relation, str] = {
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


def _why(reason: OpenReason | None, relation: Relation | None) -> str:
    return reason.says if reason is not None else STANDS[relation] if relation is not None else ""


def _refuse_unfitting(label: Label, why: OpenReason | None, relation: Relation | None) -> None:
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
    open: OpenReason | None = None
    relation: Relation | None = None
    probability: float
    base: Judgment
    supplement: Judgment | None = None
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @model_validator(mode="after")
    def _has_fitting_reasons(self) -> "Segment":
        _refuse_unfitting(self.label, self.open, self.relation)
        return self

    @property
    def why(self) -> str:
        """Return in words why it is open, or how the sources stand to what is wrong; nothing where that is not known."""
        return _why(self.open, self.relation)

    @property
    def forms_agree(self) -> bool | None:
        """Tell whether both forms of knowledge led to the same label; None where only one was judged by."""
        return None if self.supplement is None else self.supplement.label is self.base.label


class Unchecked(Record):
    """A piece of the response that nothing was asked of, and why; `text == response[start:end]`."""

    start: int
    end: int
    text: str
    reason: str


class Stage(Record):
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
    open: OpenReason | None = None
    relation: Relation | None = None
    kind: Kind | None
    probability: float = Field(ge=0.0, le=1.0)
    reason: str
    extraction: Extraction | None = None
    segments: tuple[Segment, ...] = ()
    index: str | None = None
    unchecked: tuple[Unchecked, ...] = ()
    unscaled: float | None = None
    stages: tuple[Stage, ...] = ()
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_fitting_reasons(self) -> "Verdict":
        _refuse_unfitting(self.label, self.open, self.relation)
        return self

    @property
    def why(self) -> str:
        """Return in words why it is open, or how the sources stand to what is wrong; nothing where that is not known."""
        return _why(self.open, self.relation)

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
