"""Convert one row to samples, by the fields that its layout names; every error names the place and the field."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

from knowhalu.datasets.card import Layout
from knowhalu.errors import InputError
from knowhalu.io import samples as fields
from knowhalu.io.rows import Row, read_rows
from knowhalu.registry import import_object
from knowhalu.types import META_GROUP, META_PAIR, META_PART, META_TYPE, HallucinationKind, Sample

MIN_DOCUMENT_WORDS = 120
"""Words above which a source is a document, searched chunk by chunk; a shorter one is knowledge, read whole."""


class RowReader:
    """The fields of one row."""

    def __init__(self, row: Row, fields: Mapping[str, Any] | None = None, within: str = "") -> None:
        self.row, self.within = row, within
        self.fields = row.fields if fields is None else fields

    def __contains__(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def fault(self, name: str, problem: str, remedy: str) -> NoReturn:
        """Raise an InputError that names the place, the field, the problem and the remedy."""
        raise InputError(f"{self.row.place}, field {self.within + name!r}: {problem}. {remedy}.")

    def text(self, name: str) -> str:
        """Return a text that is not blank; raises InputError for anything else."""
        if name not in self:
            self.fault(name, "is missing", "Add it, or leave the row out")
        return fields.check_text(self.fields[name], self.row.place, self.within + name)

    def maybe(self, name: str) -> str | None:
        """Return a text, or None where there is none or it is blank."""
        value = self.fields.get(name)
        return None if value is None or (isinstance(value, str) and not value.strip()) else self.text(name)

    def texts(self, name: str) -> list[str]:
        """Return a text or a list of texts as a list, without blank ones."""
        value = self.fields.get(name)
        several = value if isinstance(value, list) else [] if value is None else [value]
        given = [(i, v) for i, v in enumerate(several) if v is not None and v != "" and not (isinstance(v, str) and v.isspace())]
        return [fields.check_text(v, self.row.place, f"{self.within}{name}[{i}]") for i, v in given]

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        value = self.fields.get(name)
        if not isinstance(value, list):
            self.fault(name, "is missing" if value is None else "is not a list", "Write a list, or leave the row out")
        return value

    def inner(self, name: str, value: Any = None) -> "RowReader":
        """Return the reader of an object within this row."""
        inner = self.fields.get(name) if value is None else value
        if not isinstance(inner, Mapping):
            self.fault(name, "is not an object", "Write {...}, or leave the row out")
        return RowReader(self.row, inner, f"{self.within}{name}.")

    def is_hallucinated(self, name: str, faithful: Iterable[str], hallucinated: Iterable[str]) -> bool:
        """Tell whether a label means hallucinated; labels are compared without case, and numbers as they are written."""
        if name not in self:
            self.fault(name, "is missing", "A row without a label cannot be evaluated; leave it out")
        value = self.word(name)
        if value not in {*faithful, *hallucinated}:
            known = f"faithful: {', '.join(sorted(faithful))}; hallucinated: {', '.join(sorted(hallucinated))}"
            self.fault(name, f"{self.fields[name]!r:.80} is no label of this set", f"Its labels are {known}")
        return value in set(hallucinated)

    def word(self, name: str) -> str:
        """Return a label or another word in lower case, a number as its digits; empty where there is none."""
        value = self.fields.get(name)
        whole = isinstance(value, float) and value.is_integer()
        return "" if value is None else str(int(value) if whole else value).strip().casefold()

    def id(self, names: Iterable[str] = ("id",)) -> str:
        """Return the first id that the row has, or else its place in the file."""
        ids = (self.own_id(name) for name in names)
        return next((id for id in ids if id is not None), self.row.default_id)

    def own_id(self, name: str) -> str | None:
        """Return an id, a text or a whole number; None where there is none."""
        value = self.fields.get(name)
        if isinstance(value, str):
            return self.maybe(name)
        return integer_id(value)

    def key(self, name: str) -> str:
        """Return the id by which the rows of two files are joined; raises InputError where there is none."""
        key = self.own_id(name)
        if key is None:
            problem = f"{self.fields[name]!r:.40} is no id" if name in self else "is missing"
            self.fault(name, problem, "Write a text or a whole number: the rows of two files are joined by it")
        return key

    def kept(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the texts and numbers of some fields as they are."""
        values = {n: self.fields[n] for n in names if isinstance(self.fields.get(n), str | int | float)}
        return {n: self.text(n) if isinstance(v, str) and v.strip() else v for n, v in values.items()}

    def sample(
        self,
        id: str,
        response: str,
        *,
        hallucinated: bool,
        sources: Sequence[str] = (),
        documents: bool | None = None,
        question: str | None = None,
        kind: HallucinationKind | None = None,
        claim: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> Sample:
        """Make a sample; null values of `meta` are left out.

        Sources of more than `MIN_DOCUMENT_WORDS` words are documents, unless `documents` decides. The group of a sample is its
        sources, or else its question: rows of one group are not independent. A `claim` may be checked against several
        sources, so rows with the same claim are a group as well.
        """
        long = any(len(text.split()) > MIN_DOCUMENT_WORDS for text in sources) if documents is None else documents
        shared = [*sources] or ([question] if question else [])
        groups = [*(["\n\n".join(shared)] if shared else []), *([response] if claim else [])]
        names = [blake2b(text.encode(), digest_size=8).hexdigest() for text in groups]
        group = {META_GROUP: names if claim else names[0]} if names else {}
        given = {name: value for name, value in (meta or {}).items() if value is not None}
        return Sample.model_validate(
            {
                "id": id,
                "response": response,
                "question": question,
                "documents" if long else "knowledge": list(sources),
                "label": "hallucinated" if hallucinated else "faithful",
                "kind": kind if hallucinated else None,
                "meta": {**group, **given},
            }
        )


def integer_id(number: Any) -> str | None:
    """Return a whole number as its digits, also where a table made it 12.0; None for anything else."""
    whole = isinstance(number, float) and number.is_integer()
    return str(int(number)) if whole or (isinstance(number, int) and not isinstance(number, bool)) else None


def find_spans(response: str, wrong: Iterable[str]) -> list[list[int]] | None:
    """Return the spans of texts in a response; None where one of them is missing, since not all spans are known then."""
    places = [(response.find(text), len(text)) for text in wrong]
    return None if any(start < 0 for start, _ in places) else sorted([start, start + size] for start, size in places)


def read_sibling_rows(path: Path, name: str) -> Iterator[Row]:
    """Yield the rows of the file `name` next to a file; raises InputError where it is missing."""
    for sibling in (path.with_name(name), path.with_name(f"{name}.gz")):
        if sibling.exists():
            yield from read_rows(sibling)
            return
    raise InputError(f"{path}: its texts are in {name}, which is not in the same folder. Put both files into one folder.")


RowConverter = Callable[[Row], Iterable[Sample]]


def row_converter(layout: Layout) -> RowConverter:
    """Return the function that converts a row of a layout to samples; it raises InputError naming file, line and field."""
    if layout.load:
        converter: RowConverter = import_object(layout.load)
        return converter
    return lambda row: _paired_samples(layout, row) if layout.right else _labelled_sample(layout, row)


def _labelled_sample(layout: Layout, row: Row) -> Iterator[Sample]:
    """Yield the sample of a row with one response and its label; nothing where the row has no gold label."""
    reader = RowReader(row)
    if layout.label in reader and reader.word(layout.label) in layout.skipped:
        return
    hallucinated = reader.is_hallucinated(layout.label, layout.faithful, layout.hallucinated)
    yield reader.sample(
        reader.id(layout.ids), reader.text(layout.response), hallucinated=hallucinated, documents=layout.documents,
        sources=_sources(layout, reader), claim=not layout.question,
        question=reader.maybe(layout.question) if layout.question else None,
        meta={META_TYPE: _type(layout, reader) if hallucinated else None, META_PART: _part(layout, reader),
              **reader.kept(layout.kept)},
    )  # fmt: skip


def _paired_samples(layout: Layout, row: Row) -> Iterator[Sample]:
    """Yield both samples of a row with a faithful and a hallucinated response."""
    reader = RowReader(row)
    sources, question = _sources(layout, reader), reader.text(layout.question) if layout.question else None
    for name, side, hallucinated in ((layout.right, "right", False), (layout.wrong, "hallucinated", True)):
        yield reader.sample(
            f"{reader.id(layout.ids)}-{side}", reader.text(name), hallucinated=hallucinated, sources=sources,
            documents=layout.documents, question=question,
            meta={META_TYPE: _type(layout, reader) if hallucinated else None, META_PART: _part(layout, reader),
                  META_PAIR: row.default_id, **reader.kept(layout.kept)},  # ids may not be unique
        )  # fmt: skip


def _sources(layout: Layout, reader: RowReader) -> list[str]:
    texts = [text for name in layout.sources for text in reader.texts(name)]
    return ["\n".join(texts)] if layout.joined and texts else texts


def _part(layout: Layout, reader: RowReader) -> str | None:
    return next((reader.maybe(name) for name in layout.parts if name in reader), None)


def _type(layout: Layout, reader: RowReader) -> str | None:
    name = next((name for name in layout.types if name in reader), None)
    return ", ".join(reader.texts(name)) or None if name else None
