"""The words of the project: what is checked, what was retrieved, what was decided, and why it was left open."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import count
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class InconclusiveReason(StrEnum):
    """What was missing for a decision."""

    NOTHING_RETRIEVED = "nothing_retrieved"
    OFF_TOPIC = "off_topic"
    CONFLICTING = "conflicting"
    UNSURE = "unsure"
    FORMS_DISAGREE = "forms_disagree"
    NOTHING_TO_CHECK = "nothing_to_check"

    @property
    def says(self) -> str:
        """Return the reason in words."""
        return _DESCRIPTIONS[self]

    @property
    def next_action(self) -> str:
        """Return in one sentence what the user does next."""
        return _NEXT_ACTIONS[self]


_DESCRIPTIONS: Mapping[InconclusiveReason, str] = {
    InconclusiveReason.NOTHING_RETRIEVED: "there is no source to check it by",
    InconclusiveReason.OFF_TOPIC: "the sources speak of something else",
    InconclusiveReason.CONFLICTING: "one source supports it and another contradicts it",
    InconclusiveReason.UNSURE: "the judge is not sure",
    InconclusiveReason.FORMS_DISAGREE: "the two forms of knowledge disagree",
    InconclusiveReason.NOTHING_TO_CHECK: "it states nothing that can be checked",
}
_NEXT_ACTIONS: Mapping[InconclusiveReason, str] = {
    InconclusiveReason.NOTHING_RETRIEVED: (
        "Add sources that speak of it (--knowledge, --document, or documents for the index), or fetch more passages for each "
        "query."
    ),
    InconclusiveReason.OFF_TOPIC: (
        "Look at the passages that were found: if none speaks of the matter, add sources that do, or fetch more passages for "
        "each query."
    ),
    InconclusiveReason.CONFLICTING: "Read the quotes for and against it, and leave out the source that is not to be trusted.",
    InconclusiveReason.UNSURE: (
        "Ask a stronger judge (--reasoner llm, a larger model or another method), or set the thresholds on labelled rows of your "
        "own (knowhalu calibrate)."
    ),
    InconclusiveReason.FORMS_DISAGREE: (
        "Read the two judgments and the knowledge that each rests on, or let knowhalu calibrate find which form to believe when."
    ),
    InconclusiveReason.NOTHING_TO_CHECK: "If it states facts, write them as whole sentences and check it again.",
}


NO_INFORMATION = "No specific information is available."
META_GROUP, META_PAIR, META_SET, META_PART = "group", "pair", "set", "part"
META_TYPE, META_SPANS, META_SAMPLES = "type", "spans", "samples"
"""Names in a sample's `meta` that have a meaning: a group that is not independent, what makes two rows a pair, the data set and
the part of it, the error type of a hallucination, its characters as a list of [start, end], and further responses to the same."""


class Label(StrEnum):
    """What a judgment says of a text."""

    CORRECT = "CORRECT"
    INCORRECT = "INCORRECT"
    INCONCLUSIVE = "INCONCLUSIVE"


class HallucinationKind(StrEnum):
    """How a text is hallucinated (KnowHalu, table 1)."""

    OFF_TARGET = "off_target"
    FACTUAL = "factual"


class KnowledgeForm(StrEnum):
    """The form in which knowledge is put before it is judged by."""

    UNSTRUCTURED = "unstructured"
    STRUCTURED = "structured"


class Relation(StrEnum):
    """How a source stands to a hypothesis (natural language inference)."""

    ENTAILMENT = "entailment"
    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"


class Task(StrEnum):
    """What kind of text is checked; it follows from the fields of the sample."""

    QA = "qa"
    RAG = "rag"
    SUMMARY = "summary"
    CLAIM = "claim"


class Record(BaseModel):
    """The base of all words: frozen, and unknown fields are errors."""

    # a feature that is not a number must survive the way to disk and back: JSON has no word for it
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def _check_unicode(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            cure = "read the text anew as UTF-8, or replace the character"
            raise ValueError(f"character {error.start + 1} is half a character (a lone surrogate): {cure}") from error
    return value


Text = Annotated[str, BeforeValidator(_check_unicode)]
NonEmptyText = Annotated[str, Field(min_length=1), BeforeValidator(_check_unicode)]


class Document(Record):
    """A source text that comes with a sample."""

    text: NonEmptyText
    title: Text = ""
    id: Text = ""


def _as_documents(value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list | tuple):
        value = [{"text": v} if isinstance(v, str) else v for v in value]
        taken = {name for v in value if isinstance(name := _id_of(v), str)}
        return tuple(_with_id(v, i, taken) for i, v in enumerate(value, 1))
    return value


def _id_of(document: Any) -> Any:
    return document.get("id") if isinstance(document, Mapping) else getattr(document, "id", None)


def _with_id(document: Any, number: int, taken: set[str]) -> Any:
    """Return a document with an id: its own, or its number, or the next number that no other has."""
    if _id_of(document) or not isinstance(document, Mapping | Document):
        return document
    name = next(f"document-{n}" for n in count(number) if f"document-{n}" not in taken)
    taken.add(name)
    return {**document, "id": name} if isinstance(document, Mapping) else document.model_copy(update={"id": name})


Documents = Annotated[tuple[Document, ...], BeforeValidator(_as_documents)]
NonEmptyTexts = Annotated[tuple[NonEmptyText, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]


class Sample(Record):
    """What is to be checked: a response, and what it answers or summarises.

    `documents` are its own sources, searched chunk by chunk; `knowledge` are given passages, all of them read. With
    neither, the evidence comes from an index.
    """

    id: Text = ""
    response: Text
    question: Text | None = None
    documents: Documents = ()
    knowledge: NonEmptyTexts = ()
    label: Literal["faithful", "hallucinated"] | None = None
    kind: HallucinationKind | None = None
    meta: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_blank(self) -> "Sample":
        for name in ("response", "question"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise ValueError(f"{name} is empty")
        return self

    @property
    def task(self) -> Task:
        """Return the task that the given fields make."""
        if self.question:
            return Task.RAG if self.documents else Task.QA
        return Task.SUMMARY if self.documents else Task.CLAIM


class Passage(Record):
    """A piece of a source: `text` stands at `[start:end]` of the document `document`."""

    id: str
    text: str
    title: str = ""
    score: float = 0.0
    document: str = ""
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        """Return title and article, as a reader sees the passage."""
        return f"{self.title}: {self.text}" if self.title else self.text


class Query(Record):
    """One sub-question: `specific` names what the answer claims, `general` does not; one that is not in use is empty."""

    specific: str
    general: str


class Quote(Record):
    """A sentence of a passage, byte for byte: `text == passage.text[start:end]`.

    `relevance` is the share of the words of the question, the claim or the query that it has, whichever is largest.
    """

    passage: str
    text: str
    start: int
    end: int
    supported: float
    contradicted: float
    relevance: float = 1.0


class Triplet(Record):
    """One fact in structured form, and the quote that it was read from."""

    subject: str
    predicate: str
    object: str
    quote: int = -1

    def __str__(self) -> str:
        """Return the triplet as a prompt shows it."""
        return f"({self.subject}, {self.predicate}, {self.object})"


class Entity(Record):
    """A name, number, date or the like that a text speaks of; it stands in `text[start:end]` of it."""

    start: int
    end: int
    text: str
    type: str


class Claim(Record):
    """One statement of a text, worded so that it can be understood alone; it comes from `text[start:end]` of it."""

    start: int
    end: int
    text: str


class Knowledge(Record):
    """What the passages say about a query, in one form. No passage bears out what is `unfounded`: it counts for nothing."""

    form: KnowledgeForm
    quotes: tuple[Quote, ...] = ()
    triplets: tuple[Triplet, ...] = ()
    text: str = NO_INFORMATION
    unfounded: str = ""

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing specific was found."""
        return self.text == NO_INFORMATION


class Step(Record):
    """One hop: what was thought, asked, retrieved and learned."""

    thought: str
    query: Query
    passages: tuple[Passage, ...]
    knowledge: Knowledge


class Judgment(Record):
    """A label from one form of knowledge, or from the sources as they are, how sure it is, why, and by which steps.

    `confidence` is the probability of the label; `supported` that of the text being true, also where the label leaves it open.
    `measured` says where the confidence comes from: a probability, the share of equal votes, or nowhere. `open` says why the
    sources leave the text open, also where that counts as INCORRECT; `relation` of what is INCORRECT, whether they contradict it
    or are silent (neutral), where that is known.
    """

    form: KnowledgeForm | None = None
    label: Label
    confidence: float = Field(ge=0.0, le=1.0)
    supported: float = Field(0.5, ge=0.0, le=1.0)
    rationale: str
    open: InconclusiveReason | None = None
    relation: Relation | None = None
    measured: Literal["probability", "votes", "nowhere"] = "probability"
    kind: HallucinationKind | None = None
    steps: tuple[Step, ...] = ()
    features: dict[str, float] = Field(default_factory=dict)


class Extraction(Record):
    """What the off-target check took from an answer: the entity asked for, or nothing and why."""

    entity: str | None
    asked_for: str
    reason: str
    confidence: float = Field(ge=0.0, le=1.0)
    refusal: bool = False

    @property
    def is_none(self) -> bool:
        """Tell whether the answer does not deliver what was asked for."""
        return self.entity is None and not self.refusal
