"""Data sets of summaries, of this project's own rows, and those put together from two files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from knowhalu.datasets.mapping import FALSE, TRUE, Judged
from knowhalu.datasets.reading import Reader, found_spans, id_of
from knowhalu.datasets.rows import read_rows
from knowhalu.errors import InputError
from knowhalu.io.records import Row
from knowhalu.io.samples import to_sample
from knowhalu.types import SPANS, TYPE, Kind, Sample

WORST, PERFECT = 1, 5
"""The worst and the best rating of consistency."""
ROWS = Judged(
    "claim", ("source",), "label", ("supported",), ("unsupported",), types=("edit_types", "error_type", "label3"),
    parts=("set", "source_set", "domain"),
)  # fmt: skip
FACTCC = Judged("claim", ("text",), "label", ("correct",), ("incorrect",))
SUMMEDITS = Judged("summary", ("doc",), "label", TRUE, FALSE, types=("edit_types",), parts=("domain",))
AGGREFACT = Judged("summary", ("doc",), "label", TRUE, FALSE, ids=(), parts=("dataset",), kept=("origin", "model_name"))
LLM_AGGREFACT = Judged("claim", ("doc",), "label", TRUE, FALSE, ids=(), parts=("dataset",))


def summeval(row: Row) -> Iterator[Sample]:
    """Yield the summary of a row, which has its article only after it was paired with CNN/DailyMail."""
    reader = Reader(row)
    if "text" not in reader:
        reader.fault("text", "is missing", "Pair the file with the CNN/DailyMail articles first, as SummEval's README says")
    ratings = [reader.inner("expert_annotations", rating) for rating in reader.items("expert_annotations")]
    if not ratings:
        reader.fault("expert_annotations", "is empty", "A row without a rating cannot be evaluated; leave it out")
    wrong = any(_rating(rating, rating.fields.get("consistency")) < PERFECT for rating in ratings)
    name = "-".join([reader.id(), *map(str, reader.kept(("model_id",)).values())])
    yield reader.sample(
        name, reader.text("decoded"), hallucinated=wrong, sources=[reader.text("text")],
        meta=reader.kept(("model_id",)),
    )  # fmt: skip


def summeval_table(row: Row) -> Iterator[Sample]:
    """Yield the summaries of a row of the table on the Hugging Face hub, which has those of one article together."""
    reader = Reader(row)
    summaries, ratings = reader.items("machine_summaries"), reader.items("consistency")
    if len(summaries) != len(ratings):
        reader.fault("consistency", f"{len(ratings)} ratings of {len(summaries)} summaries", "Write the file again")
    for number, (summary, rating) in enumerate(zip(summaries, ratings, strict=True)):
        one = Reader(row, {"machine_summaries": summary})
        yield reader.sample(
            f"{reader.id()}-{number}", one.text("machine_summaries"), hallucinated=_rating(reader, rating) < PERFECT,
            sources=[reader.text("text")],
        )  # fmt: skip


def qags(row: Row) -> Iterator[Sample]:
    """Yield the sentences of a summary; a sentence is faithful where most votes say so."""
    reader = Reader(row)
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


def _rating(reader: Reader, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not WORST <= value <= PERFECT:
        reader.fault("consistency", f"{value!r:.40} is no rating", f"Write a number from {WORST} to {PERFECT}")
    return float(value)


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


def ragtruth_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of RAGTruth's responses with the fields of their sources; raises InputError where a source is missing."""
    if "source_info" in next((row.fields for row in read_rows(path)), {}):
        yield from read_rows(path)  # already put together
        return
    beside = _beside(path, "source_info.jsonl")
    sources = {Reader(row).key("source_id"): row.fields for row in read_rows(beside)}
    for row in read_rows(path):
        reader = Reader(row)
        name = reader.key("source_id")
        if name not in sources:
            reader.fault("source_id", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        wanted = {n: sources[name].get(n) for n in ("task_type", "source_info")}
        yield row._replace(fields={**row.fields, **wanted})


def scifact_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of SciFact's claims with the texts of their abstracts; raises InputError where one is missing."""
    beside = _beside(path, "corpus.jsonl")
    corpus = {Reader(row).key("doc_id"): _abstract(row) for row in read_rows(beside)}
    for row in read_rows(path):
        reader = Reader(row)
        names = dict.fromkeys([*(id_of(v) or str(v) for v in reader.items("cited_doc_ids")), *reader.inner("evidence").fields])
        for name in names:
            if name not in corpus:
                reader.fault("cited_doc_ids", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        found: Mapping[str, Any] = {**row.fields, "abstracts": {name: corpus[name] for name in names}}
        yield row._replace(fields=found)


def _abstract(row: Row) -> str:
    reader = Reader(row)
    return "\n".join(filter(None, (reader.maybe("title"), " ".join(reader.texts("abstract")))))


def _beside(path: Path, name: str) -> Path:
    for found in (path.with_name(name), path.with_name(f"{name}.gz")):
        if found.exists():
            return found
    raise InputError(f"{path}: its texts are in {name}, which is not beside it. Put both files into one folder.")
