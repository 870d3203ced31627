"""Data sets whose labels come from annotations: marked characters, segments, ratings and votes."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from knowhalu.datasets.row_reader import RowReader, find_spans, read_sibling_rows
from knowhalu.io.rows import Row, read_rows
from knowhalu.types import META_PART, META_SPANS, META_TYPE, HallucinationKind, Sample

SOURCES_FILE = "source_info.jsonl"
"""The file of RAGTruth's sources, next to that of its responses."""
MIN_RATING, MAX_RATING = 1, 5
"""The worst and the best rating of consistency."""
ANSWER_KINDS = {"fabricated": HallucinationKind.FACTUAL, "off_target": HallucinationKind.OFF_TARGET}
_PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+\s*:", re.IGNORECASE)


def ragtruth_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of RAGTruth's responses with the fields of their sources; raises InputError where a source is missing."""
    if "source_info" in next((row.fields for row in read_rows(path)), {}):
        yield from read_rows(path)  # already joined
        return
    sources = {RowReader(row).key("source_id"): row.fields for row in read_sibling_rows(path, SOURCES_FILE)}
    for row in read_rows(path):
        reader = RowReader(row)
        name = reader.key("source_id")
        if name not in sources:
            reader.fault("source_id", f"{name!r:.40} is not in {SOURCES_FILE}", "Take both files from the same release")
        wanted = {n: sources[name].get(n) for n in ("task_type", "source_info")}
        yield row._replace(fields={**row.fields, **wanted})


def ragtruth(row: Row) -> Iterator[Sample]:
    """Yield the response of a row to which `ragtruth_rows` added the fields of its source."""
    reader = RowReader(row)
    response, info = reader.text("response"), row.fields.get("source_info")
    question, sources = None, [info]
    if isinstance(info, dict) and "passages" in info:
        inner = reader.inner("source_info")
        question, sources = inner.text("question"), [p.strip() for p in _PASSAGE.split(inner.text("passages")) if p.strip()]
    elif isinstance(info, dict):
        sources = [json.dumps(info, ensure_ascii=False, indent=1)]
    yield _marked(reader, reader.id(), response, reader.items("labels"), [s for s in sources if s], question)


def ragtruth_processed(row: Row) -> Iterator[Sample]:
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


def felm(row: Row) -> Iterator[Sample]:
    """Yield the response of a row; a segment that is not correct is hallucinated."""
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


def halueval_general(row: Row) -> Iterator[Sample]:
    """Yield the response of a row; its wrong characters are known only where all quoted pieces occur in it."""
    reader = RowReader(row)
    response, hallucinated = reader.text("chatgpt_response"), reader.is_hallucinated("hallucination", ("no",), ("yes",))
    spans = find_spans(response, reader.texts("hallucination_spans")) if hallucinated else []
    yield reader.sample(
        reader.id(("ID", "id")), response, hallucinated=hallucinated, question=reader.text("user_query"), meta={META_SPANS: spans}
    )


def summeval(row: Row) -> Iterator[Sample]:
    """Yield the summary of a row; it has an article only after the file was paired with CNN/DailyMail."""
    reader = RowReader(row)
    if "text" not in reader:
        reader.fault("text", "is missing", "Pair the file with the CNN/DailyMail articles first, as SummEval's README says")
    ratings = [reader.inner("expert_annotations", rating) for rating in reader.items("expert_annotations")]
    if not ratings:
        reader.fault("expert_annotations", "is empty", "A row without a rating cannot be evaluated; leave it out")
    hallucinated = any(_rating(rating, rating.fields.get("consistency")) < MAX_RATING for rating in ratings)
    name = "-".join([reader.id(), *map(str, reader.kept(("model_id",)).values())])
    yield reader.sample(
        name, reader.text("decoded"), hallucinated=hallucinated, sources=[reader.text("text")],
        meta=reader.kept(("model_id",)),
    )  # fmt: skip


def summeval_table(row: Row) -> Iterator[Sample]:
    """Yield the summaries of a row of the table on the Hugging Face hub, which has all summaries of an article."""
    reader = RowReader(row)
    summaries, ratings = reader.items("machine_summaries"), reader.items("consistency")
    if len(summaries) != len(ratings):
        reader.fault("consistency", f"{len(ratings)} ratings of {len(summaries)} summaries", "Write the file again")
    for number, (summary, rating) in enumerate(zip(summaries, ratings, strict=True)):
        one = RowReader(row, {"machine_summaries": summary})
        yield reader.sample(
            f"{reader.id()}-{number}", one.text("machine_summaries"), hallucinated=_rating(reader, rating) < MAX_RATING,
            sources=[reader.text("text")],
        )  # fmt: skip


def qags(row: Row) -> Iterator[Sample]:
    """Yield the sentences of a summary; a sentence is faithful where most votes are yes."""
    reader = RowReader(row)
    for number, item in enumerate(reader.items("summary_sentences")):
        one = reader.inner("summary_sentences", item)
        votes = [one.inner("responses", vote) for vote in one.items("responses")]
        if not votes:
            one.fault("responses", "is empty", "A sentence without votes cannot be evaluated; leave it out")
        against = sum(vote.is_hallucinated("response", ("yes",), ("no",)) for vote in votes)
        yield reader.sample(
            f"{row.default_id}-{number}", one.text("sentence"), hallucinated=2 * against >= len(votes),
            sources=[reader.text("article")], meta={"votes": f"{len(votes) - against}/{len(votes)}"},
        )  # fmt: skip


def _rating(reader: RowReader, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_RATING <= value <= MAX_RATING:
        reader.fault("consistency", f"{value!r:.40} is no rating", f"Write a number from {MIN_RATING} to {MAX_RATING}")
    return float(value)


def written_claims(row: Row) -> Iterator[Sample]:
    """Yield the claims of a document."""
    reader = RowReader(row)
    for number, item in enumerate(reader.items("claims")):
        claim = reader.inner("claims", item)
        hallucinated = claim.is_hallucinated("label", ("supported",), ("contradicted", "not_in_source"))
        text = claim.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}", text, hallucinated=hallucinated, sources=[reader.text("document")],
            meta={
                META_TYPE: claim.maybe("error_type"), META_SPANS: _wrong_spans(claim, text) if hallucinated else [],
                **reader.kept(("domain", "genre")),
            },
        )  # fmt: skip


def written_answers(row: Row) -> Iterator[Sample]:
    """Yield the answers to a question."""
    reader = RowReader(row)
    for number, item in enumerate(reader.items("answers")):
        answer = reader.inner("answers", item)
        hallucinated = answer.is_hallucinated("label", ("correct", "refusal"), ("fabricated", "off_target"))
        text = answer.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}",
            text,
            hallucinated=hallucinated,
            sources=[reader.text("knowledge")],
            documents=False,
            question=reader.text("question"),
            kind=ANSWER_KINDS.get(answer.word("label")),
            meta={
                META_TYPE: answer.maybe("kind"),
                META_SPANS: _wrong_spans(answer, text) if hallucinated else [],
                "answer": answer.word("label"),
                **reader.kept(("domain", "hops")),
            },
        )


def _wrong_spans(reader: RowReader, text: str) -> list[list[int]] | None:
    """Return the spans of the exact wrong words, where the row names them."""
    return find_spans(text, reader.texts("wrong")) if "wrong" in reader else None


def wice_tokens(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with the characters of the words that its page does not support."""
    reader = RowReader(row)
    tokens, flags = [str(t) for t in reader.items("claim_tokens")], reader.items("non_supported_spans")
    if len(tokens) != len(flags):
        reader.fault("non_supported_spans", f"{len(flags)} marks of {len(tokens)} words", "Write the file again")
    response, evidence = reader.text("claim"), reader.texts("evidence")
    hallucinated = reader.is_hallucinated("label", ("supported",), ("partially_supported", "not_supported"))
    yield reader.sample(
        reader.id(), response, hallucinated=hallucinated, claim=True, sources=["\n".join(evidence)] if evidence else [],
        meta={META_TYPE: reader.text("label") if hallucinated else None, **flagged_piece_spans(response, tokens, flags)},
    )  # fmt: skip


def flagged_piece_spans(text: str, pieces: list[str], flags: list[object]) -> dict[str, list[list[int]]]:
    """Return the spans of the flagged pieces, which follow one another in the text; nothing where a piece is missing."""
    spans: list[list[int]] = []
    end, before = 0, False
    for piece, flag in zip(pieces, flags, strict=True):
        start = text.find(piece, end)
        if start < 0:
            return {}
        end = start + len(piece)
        if flag and before:
            spans[-1][1] = end
        elif flag:
            spans.append([start, end])
        before = bool(flag)
    return {META_SPANS: spans}
