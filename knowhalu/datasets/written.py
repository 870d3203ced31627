"""Forms of this project: documents with claims, questions with answers, and rows as `knowhalu detect` takes them."""

from collections.abc import Iterator

from knowhalu.datasets.reading import Reader, found_spans
from knowhalu.fields import to_sample
from knowhalu.records import Row
from knowhalu.types import SPANS, TYPE, Kind, Sample

KINDS = {"fabricated": Kind.FACTUAL, "off_target": Kind.OFF_TARGET}


def claims(row: Row) -> Iterator[Sample]:
    """Yield the claims of a document."""
    reader = Reader(row)
    for number, item in enumerate(reader.items("claims")):
        claim = reader.inner("claims", item)
        wrong = claim.is_hallucinated("label", ("supported",), ("contradicted", "not_in_source"))
        text = claim.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}", text, hallucinated=wrong, sources=[reader.text("document")],
            meta={
                TYPE: claim.maybe("error_type"), SPANS: _wrong(claim, text) if wrong else [],
                **reader.kept(("domain", "genre")),
            },
        )  # fmt: skip


def answers(row: Row) -> Iterator[Sample]:
    """Yield the answers to a question."""
    reader = Reader(row)
    for number, item in enumerate(reader.items("answers")):
        answer = reader.inner("answers", item)
        wrong = answer.is_hallucinated("label", ("correct", "refusal"), ("fabricated", "off_target"))
        text = answer.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}", text, hallucinated=wrong, sources=[reader.text("knowledge")], documents=False,
            question=reader.text("question"), kind=KINDS.get(answer.word("label")),
            meta={
                TYPE: answer.maybe("kind"), SPANS: _wrong(answer, text) if wrong else [], "answer": answer.word("label"),
                **reader.kept(("domain", "hops")),
            },
        )  # fmt: skip


def _wrong(reader: Reader, text: str) -> list[list[int]] | None:
    """Return where the exact wrong words stand, if they are told."""
    return found_spans(text, reader.texts("wrong")) if "wrong" in reader else None


def sample(row: Row) -> Iterator[Sample]:
    """Yield the sample of a row."""
    yield to_sample(row.fields, row.place, row.default_id)
