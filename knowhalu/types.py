"""The data types: samples, passages, knowledge, judgments, and the reasons why a text is inconclusive."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import count
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class InconclusiveReason(StrEnum):
    """Why a text is INCONCLUSIVE: the reason in words, and the next step for the user in one sentence."""

    NOTHING_RETRIEVED = (
        "nothing_retrieved", "no evidence was retrieved",
        "Add sources on the topic (--knowledge, --document, or documents for the index), or retrieve more passages a query.",
    )  # fmt: skip
    OFF_TOPIC = (
        "off_topic", "the sources do not cover the topic",
        "Look at the retrieved passages: if none covers the topic, add sources that do, or retrieve more passages a query.",
    )  # fmt: skip
    CONFLICTING = (
        "conflicting", "one source supports the text and another contradicts it",
        "Compare the evidence on both sides, and remove the source that is not reliable.",
    )  # fmt: skip
    UNSURE = (
        "unsure", "the model is not certain",
        "Use a stronger model (--reasoner llm, a larger model or another method), or fit thresholds to your own labelled rows.",
    )  # fmt: skip
    FORMS_DISAGREE = (
        "forms_disagree", "the two forms of knowledge disagree",
        "Compare the two judgments and their evidence, or let knowhalu calibrate fit when the second form overrides the first.",
    )  # fmt: skip
    NOTHING_TO_CHECK = (
        "nothing_to_check", "the text makes no claim that can be checked",
        "If the text states facts, write them as whole sentences and check it again.",
    )  # fmt: skip
    LANGUAGE = (
        "language", "the text or its sources are not in English",
        "Translate them, or use a language model that reads the language (--reasoner llm).",
    )  # fmt: skip

    description: str
    next_action: str

    def __new__(cls, value: str, description: str, next_action: str) -> Self:
        """Make a member that equals its value, with its texts."""
        member = str.__new__(cls, value)
        member._value_, member.description, member.next_action = value, description, next_action
        return member


NO_INFORMATION = "No specific information is available."
META_GROUP, META_PAIR, META_SET, META_PART = "group", "pair", "set", "part"
META_TYPE, META_SPANS, META_SAMPLES, META_HISTORY = "type", "spans", "samples", "history"
"""Keys of a sample's `meta` that are used: the group of rows that are not independent, the pair that two rows form, the data set
and its part, the error type of a hallucination, its characters as a list of [start, end], further responses, and the dialogue
before the response."""
META_SINGLE_CLAIM, META_ASKED, META_BEFORE = "single_claim", "asked", "text_before"
"""Keys of the `meta` of a part: whether it is the only claim of its response, the question if it is no whole answer to it, and
the response up to it."""


class Label(StrEnum):
    """The label of a text."""

    CORRECT = "CORRECT"
    INCORRECT = "INCORRECT"
    INCONCLUSIVE = "INCONCLUSIVE"


class HallucinationKind(StrEnum):
    """The kind of a hallucination (KnowHalu, table 1)."""

    OFF_TARGET = "off_target"
    FACTUAL = "factual"


class KnowledgeForm(StrEnum):
    """The form in which knowledge is written before the judgment: sentences, or triplets."""

    UNSTRUCTURED = "unstructured"
    STRUCTURED = "structured"


class Relation(StrEnum):
    """The relation of a source to a hypothesis (natural language inference)."""

    ENTAILMENT = "entailment"
    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"


class Task(StrEnum):
    """The kind of text; it follows from the fields of the sample."""

    QA = "qa"
    RAG = "rag"
    SUMMARY = "summary"
    CLAIM = "claim"


class Record(BaseModel):
    """The base of all data types: frozen, and unknown fields are errors."""

    # JSON has no NaN: a feature that is one is written as a string
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", populate_by_name=True)


def _check_unicode(value: Any) -> Any:
    try:
        value.encode() if isinstance(value, str) else None
    except UnicodeEncodeError as error:
        remedy = "read the text again as UTF-8, or replace the character"
        raise ValueError(f"character {error.start + 1} is half a character (a lone surrogate): {remedy}") from error
    return value


Text = Annotated[str, BeforeValidator(_check_unicode)]
NonEmptyText = Annotated[str, Field(min_length=1), BeforeValidator(_check_unicode)]


class Document(Record):
    """A source text given with a sample."""

    text: NonEmptyText
    title: Text = ""
    id: Text = ""


def _as_documents(value: Any) -> Any:
    value = [value] if isinstance(value, str) else value
    if isinstance(value, list | tuple):
        value = [{"text": v} if isinstance(v, str) else v for v in value]
        taken = {name for v in value if isinstance(name := dict(v).get("id") if isinstance(v, Mapping | Document) else None, str)}
        return tuple(_with_id(v, i, taken) for i, v in enumerate(value, 1))
    return value


def _with_id(document: Any, number: int, taken: set[str]) -> Any:
    """Return a document with an id: the given one, or the first free number from its place on."""
    if not isinstance(document, Mapping | Document) or dict(document).get("id"):
        return document
    name = next(f"document-{n}" for n in count(number) if f"document-{n}" not in taken)
    taken.add(name)
    return {**document, "id": name} if isinstance(document, Mapping) else document.model_copy(update={"id": name})


Documents = Annotated[tuple[Document, ...], BeforeValidator(_as_documents)]
NonEmptyTexts = Annotated[tuple[NonEmptyText, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]


class Sample(Record):
    """A text to check: a response, and the question or the documents to which it responds.

    `documents` are sources that are searched chunk by chunk; `knowledge` are passages that are all read. Without either, the
    evidence comes from an index.
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
        for name, value in (("response", self.response), ("question", self.question)):
            if value is not None and not value.strip():
                raise ValueError(f"{name} is empty")
        return self

    @property
    def task(self) -> Task:
        """Return the task that follows from the given fields."""
        with_documents, without = (Task.RAG, Task.QA) if self.question else (Task.SUMMARY, Task.CLAIM)
        return with_documents if self.documents else without


class Passage(Record):
    """A passage of a source: `text` is `[start:end]` of the document `document`."""

    id: str
    text: str
    title: str = ""
    score: float = 0.0
    document: str = ""
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        """Return title and text, as prompts and the verifier read the passage."""
        return f"{self.title}: {self.text}" if self.title else self.text


class Query(Record):
    """A sub-question: `specific` names what the answer claims, `general` does not; an unused form is empty."""

    specific: str
    general: str


class Quote(Record):
    """A sentence of a passage, byte for byte: `text == passage.text[start:end]`.

    `relevance` is its largest share of the words of the question, the claim or the query; 1 where the judgment rests on it, and 0
    where it is about another thing. The probabilities are those of the sentence alone, or where the judgment rests on it, those
    by all sentences that it rests on, None where these were not measured.
    """

    passage: str
    text: str
    start: int
    end: int
    supported: float | None
    contradicted: float | None
    relevance: float = 1.0


class Triplet(Record):
    """A fact in structured form, and the number of the quote from which it was extracted, or -1."""

    subject: str
    predicate: str
    object: str
    quote: int = -1

    def __str__(self) -> str:
        """Return the triplet as a prompt shows it."""
        return f"({self.subject}, {self.predicate}, {self.object})"


class Entity(Record):
    """A name, number, date or other entity in `[start:end]` of a text."""

    start: int
    end: int
    text: str
    type: str


class Claim(Record):
    """A decontextualised claim, made of `[start:end]` of a text."""

    start: int
    end: int
    text: str


class Knowledge(Record):
    """The knowledge of passages about a query, in one form. No passage supports the `unsupported` part, which is ignored."""

    form: KnowledgeForm
    quotes: tuple[Quote, ...] = ()
    triplets: tuple[Triplet, ...] = ()
    text: str = NO_INFORMATION
    unsupported: str = Field("", validation_alias=AliasChoices("unsupported", "unfounded"))

    @property
    def is_empty(self) -> bool:
        """Tell whether the passages hold nothing specific."""
        return self.text == NO_INFORMATION


class Step(Record):
    """One retrieval step: thought, query, passages, and the knowledge from them."""

    thought: str
    query: Query
    passages: tuple[Passage, ...]
    knowledge: Knowledge


OptionalReason = Annotated[InconclusiveReason | None, Field(validation_alias=AliasChoices("inconclusive_reason", "open"))]
"""The field `inconclusive_reason`, which older versions wrote as `open`."""
ConfidenceSource = Annotated[
    Literal["probability", "votes", "none"],
    BeforeValidator(lambda value: "none" if value == "nowhere" else value),
    Field(validation_alias=AliasChoices("confidence_source", "measured")),
]
"""The source of a confidence: a probability, the share of equal votes, or none. Older versions wrote `measured`, "nowhere"."""


class Judgment(Record):
    """A label from one form of knowledge, or from the sources as they are, with its confidence, rationale and steps.

    `confidence` is the probability of the label, `p_supported` that the text is supported, also where the label is INCONCLUSIVE;
    both are None where not measured. `inconclusive_reason` names what the sources lack, also where that counts as INCORRECT.
    `relation` tells for an INCORRECT text whether the sources contradict it or are neutral, where that is known.
    """

    form: KnowledgeForm | None = None
    label: Label
    confidence: float | None = Field(ge=0.0, le=1.0)
    p_supported: float | None = Field(0.5, ge=0.0, le=1.0, validation_alias=AliasChoices("p_supported", "supported"))
    rationale: str
    inconclusive_reason: OptionalReason = None
    relation: Relation | None = None
    confidence_source: ConfidenceSource = "probability"
    kind: HallucinationKind | None = None
    steps: tuple[Step, ...] = ()
    features: dict[str, float] = Field(default_factory=dict)


class Extraction(Record):
    """The result of the off-target check: the entity in an answer that the question asks for, or None and the reason."""

    entity: str | None
    asked_for: str
    reason: str
    confidence: float | None = Field(ge=0.0, le=1.0)
    refusal: bool = False

    @property
    def is_none(self) -> bool:
        """Tell whether the answer lacks what the question asks for."""
        return self.entity is None and not self.refusal
