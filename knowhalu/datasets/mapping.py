"""Conversion of a row to samples by the fields that its layout names."""

from collections.abc import Callable, Iterable, Iterator

from knowhalu.datasets.card import Layout
from knowhalu.datasets.row_reader import RowReader, pair_meta
from knowhalu.io.rows import Row
from knowhalu.registry import import_object
from knowhalu.types import META_PART, META_TYPE, Sample

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
                  **pair_meta(row), **reader.kept(layout.kept)},
        )  # fmt: skip


def _sources(layout: Layout, reader: RowReader) -> list[str]:
    texts = [text for name in layout.sources for text in reader.texts(name)]
    return ["\n".join(texts)] if layout.joined and texts else texts


def _part(layout: Layout, reader: RowReader) -> str | None:
    return next((reader.maybe(name) for name in layout.parts if name in reader), None)


def _type(layout: Layout, reader: RowReader) -> str | None:
    name = next((name for name in layout.types if name in reader), None)
    return ", ".join(reader.texts(name)) or None if name else None
