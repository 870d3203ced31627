"""Rows whose fields say all: which field is the response, which the source, and what the labels mean."""

from collections.abc import Iterator
from dataclasses import dataclass

from knowhalu.datasets.row_reader import RowReader, pair_meta
from knowhalu.io.records import JSONRow
from knowhalu.types import META_PART, META_TYPE, Sample

TRUE_LABELS, FALSE_LABELS = ("1", "true"), ("0", "false")
ENTAILED_LABELS = ("supports", "support", "supported", "entailment", "e")
NEUTRAL_LABELS = ("not enough info", "notenoughinfo", "not_enough_info", "nei", "neutral", "n")
REFUTED_LABELS = ("refutes", "refute", "refuted", "contradict", "contradicts", "contradiction", "contradicted", "c")


@dataclass(frozen=True)
class LabelledMapping:
    """Rows with one response and its label. `parts` and `types`: the first of these fields that a row has counts.

    `asked` is a question that the response answers; one that merely stands beside it is kept in `meta` with `kept`. Sources
    that are `joined` are sentences of one text. Rows whose label is in `skipped` have no gold label and are left out.
    """

    response: str
    sources: tuple[str, ...]
    label: str
    faithful: tuple[str, ...]
    hallucinated: tuple[str, ...]
    ids: tuple[str, ...] = ("id",)
    asked: str | None = None
    documents: bool | None = None
    types: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    joined: bool = False

    def __call__(self, row: JSONRow) -> Iterator[Sample]:
        """Yield the sample of a row; raises InputError naming file, line and field."""
        reader = RowReader(row)
        if self.label in reader and reader.word(self.label) in self.skipped:
            return
        wrong = reader.is_hallucinated(self.label, self.faithful, self.hallucinated)
        yield reader.sample(
            reader.id(self.ids), reader.text(self.response), hallucinated=wrong, documents=self.documents,
            sources=self._sources(reader), claim=self.asked is None,
            question=reader.maybe(self.asked) if self.asked else None,
            meta={META_TYPE: self._type(reader) if wrong else None, META_PART: self._part(reader), **reader.kept(self.kept)},
        )  # fmt: skip

    def _sources(self, reader: RowReader) -> list[str]:
        found = [text for name in self.sources for text in reader.texts(name)]
        return ["\n".join(found)] if self.joined and found else found

    def _part(self, reader: RowReader) -> str | None:
        return next((reader.maybe(name) for name in self.parts if name in reader), None)

    def _type(self, reader: RowReader) -> str | None:
        name = next((n for n in self.types if n in reader), None)
        return ", ".join(reader.texts(name)) or None if name else None


@dataclass(frozen=True)
class PairedMapping:
    """Rows with a right and a hallucinated response to the same."""

    right: str
    wrong: str
    sources: tuple[str, ...]
    documents: bool
    asked: str | None = None
    types: str = "error_type"
    kept: tuple[str, ...] = ()

    def __call__(self, row: JSONRow) -> Iterator[Sample]:
        """Yield both samples of a row; raises InputError naming file, line and field."""
        reader = RowReader(row)
        sources = [text for name in self.sources for text in reader.texts(name)]
        question = reader.text(self.asked) if self.asked else None
        for name, side, hallucinated in ((self.right, "right", False), (self.wrong, "hallucinated", True)):
            yield reader.sample(
                f"{reader.id()}-{side}", reader.text(name), hallucinated=hallucinated, sources=sources, documents=self.documents,
                question=question,
                meta={META_TYPE: reader.maybe(self.types) if hallucinated else None, **pair_meta(row), **reader.kept(self.kept)},
            )  # fmt: skip


HALUEVAL_ANSWER_PAIRS = PairedMapping("right_answer", "hallucinated_answer", ("knowledge",), documents=False, asked="question")
HALUEVAL_SUMMARY_PAIRS = PairedMapping("right_summary", "hallucinated_summary", ("document",), documents=True)
LABELLED_ANSWERS = LabelledMapping(
    "answer", ("knowledge",), "hallucination", ("no",), ("yes",), asked="question", documents=False
)
LABELLED_SUMMARIES = LabelledMapping("summary", ("document",), "hallucination", ("no",), ("yes",), documents=True)
