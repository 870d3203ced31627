"""Data sets in which people marked the hallucinated characters, segments or pieces of a response."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from knowhalu.datasets.row_reader import RowReader, find_spans
from knowhalu.datasets.special import flagged_piece_spans
from knowhalu.io.records import JSONRow
from knowhalu.types import META_PART, META_SPANS, META_TYPE, Sample

_PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+\s*:", re.IGNORECASE)


def ragtruth(row: JSONRow) -> Iterator[Sample]:
    """Yield the response of a row, beside which its source was put as `source_info` and `task_type`."""
    reader = RowReader(row)
    response, info = reader.text("response"), row.fields.get("source_info")
    question, sources = None, [info]
    if isinstance(info, dict) and "passages" in info:
        inner = reader.inner("source_info")
        question, sources = inner.text("question"), [p.strip() for p in _PASSAGE.split(inner.text("passages")) if p.strip()]
    elif isinstance(info, dict):
        sources = [json.dumps(info, ensure_ascii=False, indent=1)]
    yield _marked(reader, reader.id(), response, reader.items("labels"), [s for s in sources if s], question)


def ragtruth_processed(row: JSONRow) -> Iterator[Sample]:
    """Yield the response of a row of the processed table on the Hugging Face hub."""
    reader = RowReader(row)
    labels = row.fields.get("hallucination_labels")
    if isinstance(labels, str):
        try:
            labels = json.loads(labels)
        except ValueError:
            reader.fault("hallucination_labels", "is not JSON", "Write the file again")
    if not isinstance(labels, list):
        reader.fault("hallucination_labels", "is not a list", "Write the file again")
    question = reader.text("query") if reader.word("task_type") == "qa" else None
    yield _marked(reader, reader.id(), reader.text("output"), labels, [reader.text("context")], question)


def _marked(
    reader: RowReader, id: str, response: str, labels: Sequence[Any], sources: Sequence[str], question: str | None
) -> Sample:
    marks = [reader.inner("labels", label) for label in labels]
    return reader.sample(
        id, response, hallucinated=bool(marks), sources=sources, documents=True, question=question,
        meta={
            META_SPANS: sorted(_span(mark, len(response)) for mark in marks),
            META_TYPE: ", ".join(sorted({mark.text("label_type") for mark in marks if "label_type" in mark})) or None,
            META_PART: reader.maybe("task_type"), **reader.kept(("model", "quality")),
        },
    )  # fmt: skip


def _span(mark: RowReader, length: int) -> list[int]:
    start, end = mark.fields.get("start"), mark.fields.get("end")
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end <= length:
        mark.fault("start", f"[{start!r:.20}, {end!r:.20}] is no stretch of a response of {length} characters", "Write it again")
    return [start, end]


def felm(row: JSONRow) -> Iterator[Sample]:
    """Yield the response of a row; a segment that is not right is hallucinated."""
    reader = RowReader(row)
    pieces, right = [str(p) for p in reader.items("segmented_response")], reader.items("labels")
    if len(pieces) != len(right) or not all(isinstance(r, bool) for r in right):
        reader.fault("labels", f"not one of true and false for each of {len(pieces)} segments", "Write the file again")
    response, kinds = reader.text("response"), [k for k in row.fields.get("type") or [] if isinstance(k, str)]
    yield reader.sample(
        f"{row.default_id}-{reader.id(('index',))}", response, hallucinated=not all(right), question=reader.text("prompt"),
        meta={
            META_TYPE: ", ".join(sorted(set(kinds))) or None, META_PART: reader.maybe("domain"),
            **flagged_piece_spans(response, pieces, [not r for r in right]),
        },
    )  # fmt: skip


def halueval_general(row: JSONRow) -> Iterator[Sample]:
    """Yield the response of a row; its wrong characters are known only where all of the pieces quoted stand in it."""
    reader = RowReader(row)
    response, wrong = reader.text("chatgpt_response"), reader.is_hallucinated("hallucination", ("no",), ("yes",))
    spans = find_spans(response, reader.texts("hallucination_spans")) if wrong else []
    yield reader.sample(
        reader.id(("ID", "id")), response, hallucinated=wrong, question=reader.text("user_query"), meta={META_SPANS: spans}
    )
