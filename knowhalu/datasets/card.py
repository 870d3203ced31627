"""The card of a data set: its task, what its labels mean, the layouts of its rows, and how a row maps to samples."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from knowhalu.types import Record

ENTAILED_LABELS = ("supports", "support", "supported", "entailment", "e")
NEUTRAL_LABELS = ("not enough info", "notenoughinfo", "not_enough_info", "nei", "neutral", "n")
REFUTED_LABELS = ("refutes", "refute", "refuted", "contradict", "contradicts", "contradiction", "contradicted", "c")
NOT_ENTAILED_LABELS = (*NEUTRAL_LABELS, *REFUTED_LABELS)
LABEL_SETS: Mapping[str, tuple[str, ...]] = {
    "@entailed": ENTAILED_LABELS,
    "@not-entailed": NOT_ENTAILED_LABELS,
    "@true": ("1", "true"),
    "@false": ("0", "false"),
}
"""Names that stand for several labels in a card."""
LAYOUTS_FIELD, USE_FIELD = "layouts", "use"


def _expand_labels(values: Any) -> Any:
    """Return labels as they are compared: names of `LABEL_SETS` expanded, numbers as digits, without case."""
    if not isinstance(values, list | tuple):
        return values
    words = [str(value).strip().casefold() for value in values]
    if unknown := [word for word in words if word.startswith("@") and word not in LABEL_SETS]:
        raise ValueError(f"{unknown[0]!r} names no set of labels; known: {', '.join(LABEL_SETS)}")
    return tuple(label for word in words for label in LABEL_SETS.get(word, (word,)))


Labels = Annotated[tuple[str, ...], BeforeValidator(_expand_labels)]
Names = tuple[str, ...]


class Layout(Record):
    """One layout of a data set's rows: the `fields` that every row has, and how a row becomes samples.

    A row has one `response` with a `label`, or a pair of responses (`right`, `wrong`), or is converted by the function `load`
    ("module:name"). `rows` names the function that reads the rows of a file; `beside` are further files that it needs. A
    `common` layout belongs to many sets, so it does not identify one.

    Of `ids`, `parts` and `types`, the first field that a row has is used. `question` is the question that the response answers;
    one that only accompanies it belongs in `kept`, which is copied to `meta`. Sources that are `joined` are the sentences of one
    text. `documents` decides whether sources are documents or knowledge; without it, their length does. Rows whose label is in
    `skipped` have no gold label and are left out.
    """

    fields: Names = ()
    load: str = ""
    rows: str = "knowhalu.io.rows:read_rows"
    beside: Names = ()
    common: bool = False
    response: str = ""
    label: str = ""
    faithful: Labels = ()
    hallucinated: Labels = ()
    skipped: Labels = ()
    right: str = ""
    wrong: str = ""
    sources: Names = ()
    joined: bool = False
    question: str = ""
    documents: bool | None = None
    ids: Names = ("id",)
    types: Names = ()
    parts: Names = ()
    kept: Names = ()

    @model_validator(mode="before")
    @classmethod
    def _fill_fields(cls, given: Any) -> Any:
        """Require every field that the mapping reads, unless the card lists the required ones itself."""
        if not isinstance(given, dict) or given.get("fields"):
            return given
        names = [given.get(name) for name in ("response", "right", "wrong", "question", "label")]
        sources = given.get("sources", ())
        named = [*names, *(sources if isinstance(sources, list | tuple) else ())]
        return {**given, "fields": [name for name in named if name]}

    @model_validator(mode="after")
    def _check_mapping(self) -> "Layout":
        labelled = bool(self.response and self.label and self.faithful and self.hallucinated)
        paired = bool(self.right and self.wrong)
        if labelled + paired + bool(self.load) != 1:
            raise ValueError("a layout needs either response, label, faithful and hallucinated, or right and wrong, or load")
        if shared := set(self.faithful) & set(self.hallucinated):
            raise ValueError(f"the label {min(shared)!r} is both faithful and hallucinated")
        return self


class DatasetCard(Record):
    """One data set: what it is, its task, what its labels mean here, its licence, and the layouts in which it comes.

    `files` are patterns of the names of its files. `split` is the field that names a row's split. A set of `pairs` has a
    faithful and a hallucinated response in each row. `derived` names the benchmark from which it was made; figures on such a set
    are never shown without the length rule and the length-matched rows.
    """

    name: str
    about: str = ""
    task: Literal["qa", "summary", "dialogue", "rag", "claim", "any"]
    labels: str
    layouts: tuple[Layout, ...] = Field(min_length=1)
    licence: str = "not stated"
    files: Names = ()
    split: str = "split"
    pairs: bool = False
    derived: str = ""

    @property
    def near(self) -> int:
        """Return the difference in words up to which the two responses of a pair count as equally long."""
        return 6 if self.task == "summary" else 2


def make_card(name: str, fields: Mapping[str, Any], shared: Mapping[str, Mapping[str, Any]]) -> DatasetCard:
    """Make a card from the fields of its table in TOML; `shared` are layouts that `use` refers to.

    A card without `layouts` has the fields of its only layout itself. Raises pydantic's ValidationError.
    """
    given = dict(fields)
    if LAYOUTS_FIELD not in given:
        given[LAYOUTS_FIELD] = [{field: given.pop(field) for field in Layout.model_fields if field in given}]
    if isinstance(given[LAYOUTS_FIELD], list):
        given[LAYOUTS_FIELD] = [_resolve_shared(layout, shared) for layout in given[LAYOUTS_FIELD]]
    if "labels" not in given:
        given["labels"] = _describe_labels(given[LAYOUTS_FIELD])
    return DatasetCard.model_validate({"name": name, **given})


def _resolve_shared(layout: Any, shared: Mapping[str, Mapping[str, Any]]) -> Any:
    """Replace the name of a shared layout by its fields; what the card gives itself takes precedence."""
    if not isinstance(layout, dict) or layout.get(USE_FIELD) not in shared:
        return layout
    return {**shared[layout[USE_FIELD]], **{field: value for field, value in layout.items() if field != USE_FIELD}}


def _describe_labels(layouts: Any) -> str:
    """Describe the labels of the first layout in words."""
    first = layouts[0] if isinstance(layouts, list) and layouts and isinstance(layouts[0], dict) else {}
    values = [first.get(name) for name in ("faithful", "hallucinated")]
    faithful, hallucinated = (", ".join(map(str, value)) if isinstance(value, list) else "" for value in values)
    if not faithful or not hallucinated:
        return "as the rows give them"
    return f"{faithful}: faithful; {hallucinated}: hallucinated"
