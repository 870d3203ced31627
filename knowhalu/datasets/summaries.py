"""Data sets of summaries, of this project's own rows, and those put together from two files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from knowhalu.datasets.formats import read_dataset_rows
from knowhalu.datasets.mapping import FALSE_LABELS, TRUE_LABELS, LabelledMapping
from knowhalu.datasets.row_reader import RowReader, find_spans, integer_id
from knowhalu.errors import InputError
from knowhalu.io.records import JSONRow
from knowhalu.io.samples import parse_sample
from knowhalu.types import META_SPANS, META_TYPE, HallucinationKind, Sample

MIN_RATING, MAX_RATING = 1, 5
"""The worst and the best rating of consistency."""
OWN_SUMMARIES = LabelledMapping(
    "claim", ("source",), "label", ("supported",), ("unsupported",), types=("edit_types", "error_type", "label3"),
    parts=("set", "source_set", "domain"),
)  # fmt: skip
FACTCC = LabelledMapping("claim", ("text",), "label", ("correct",), ("incorrect",))
SUMMEDITS = LabelledMapping("summary", ("doc",), "label", TRUE_LABELS, FALSE_LABELS, types=("edit_types",), parts=("domain",))
AGGREFACT = LabelledMapping(
    "summary", ("doc",), "label", TRUE_LABELS, FALSE_LABELS, ids=(), parts=("dataset",), kept=("origin", "model_name")
)
LLM_AGGREFACT = LabelledMapping("claim", ("doc",), "label", TRUE_LABELS, FALSE_LABELS, ids=(), parts=("dataset",))


def summeval(row: JSONRow) -> Iterator[Sample]:
    """Yield the summary of a row, which has its article only after it was paired with CNN/DailyMail."""
    reader = RowReader(row)
    if "text" not in reader:
        reader.fault("text", "is missing", "Pair the file with the CNN/DailyMail articles first, as SummEval's README says")
    ratings = [reader.inner("expert_annotations", rating) for rating in reader.items("expert_annotations")]
    if not ratings:
        reader.fault("expert_annotations", "is empty", "A row without a rating cannot be evaluated; leave it out")
    wrong = any(_rating(rating, rating.fields.get("consistency")) < MAX_RATING for rating in ratings)
    name = "-".join([reader.id(), *map(str, reader.kept(("model_id",)).values())])
    yield reader.sample(
        name, reader.text("decoded"), hallucinated=wrong, sources=[reader.text("text")],
        meta=reader.kept(("model_id",)),
    )  # fmt: skip


def summeval_table(row: JSONRow) -> Iterator[Sample]:
    """Yield the summaries of a row of the table on the Hugging Face hub, which has those of one article together."""
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


def qags(row: JSONRow) -> Iterator[Sample]:
    """Yield the sentences of a summary; a sentence is faithful where most votes say so."""
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


ANSWER_KINDS = {"fabricated": HallucinationKind.FACTUAL, "off_target": HallucinationKind.OFF_TARGET}


def written_claims(row: JSONRow) -> Iterator[Sample]:
    """Yield the claims of a document."""
    reader = RowReader(row)
    for number, item in enumerate(reader.items("claims")):
        claim = reader.inner("claims", item)
        wrong = claim.is_hallucinated("label", ("supported",), ("contradicted", "not_in_source"))
        text = claim.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}", text, hallucinated=wrong, sources=[reader.text("document")],
            meta={
                META_TYPE: claim.maybe("error_type"), META_SPANS: _wrong_spans(claim, text) if wrong else [],
                **reader.kept(("domain", "genre")),
            },
        )  # fmt: skip


def written_answers(row: JSONRow) -> Iterator[Sample]:
    """Yield the answers to a question."""
    reader = RowReader(row)
    for number, item in enumerate(reader.items("answers")):
        answer = reader.inner("answers", item)
        wrong = answer.is_hallucinated("label", ("correct", "refusal"), ("fabricated", "off_target"))
        text = answer.text("text")
        yield reader.sample(
            f"{reader.id()}-{number}",
            text,
            hallucinated=wrong,
            sources=[reader.text("knowledge")],
            documents=False,
            question=reader.text("question"),
            kind=ANSWER_KINDS.get(answer.word("label")),
            meta={
                META_TYPE: answer.maybe("kind"),
                META_SPANS: _wrong_spans(answer, text) if wrong else [],
                "answer": answer.word("label"),
                **reader.kept(("domain", "hops")),
            },
        )


def _wrong_spans(reader: RowReader, text: str) -> list[list[int]] | None:
    """Return where the exact wrong words stand, if they are told."""
    return find_spans(text, reader.texts("wrong")) if "wrong" in reader else None


def own_sample(row: JSONRow) -> Iterator[Sample]:
    """Yield the sample of a row."""
    yield parse_sample(row.fields, row.place, row.default_id)


def ragtruth_rows(path: Path) -> Iterator[JSONRow]:
    """Yield the rows of RAGTruth's responses with the fields of their sources; raises InputError where a source is missing."""
    if "source_info" in next((row.fields for row in read_dataset_rows(path)), {}):
        yield from read_dataset_rows(path)  # already put together
        return
    beside = _sibling_file(path, "source_info.jsonl")
    sources = {RowReader(row).key("source_id"): row.fields for row in read_dataset_rows(beside)}
    for row in read_dataset_rows(path):
        reader = RowReader(row)
        name = reader.key("source_id")
        if name not in sources:
            reader.fault("source_id", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        wanted = {n: sources[name].get(n) for n in ("task_type", "source_info")}
        yield row._replace(fields={**row.fields, **wanted})


def scifact_rows(path: Path) -> Iterator[JSONRow]:
    """Yield the rows of SciFact's claims with the texts of their abstracts; raises InputError where one is missing."""
    beside = _sibling_file(path, "corpus.jsonl")
    corpus = {RowReader(row).key("doc_id"): _abstract(row) for row in read_dataset_rows(beside)}
    for row in read_dataset_rows(path):
        reader = RowReader(row)
        names = dict.fromkeys(
            [*(integer_id(v) or str(v) for v in reader.items("cited_doc_ids")), *reader.inner("evidence").fields]
        )
        for name in names:
            if name not in corpus:
                reader.fault("cited_doc_ids", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        found: Mapping[str, Any] = {**row.fields, "abstracts": {name: corpus[name] for name in names}}
        yield row._replace(fields=found)


def _abstract(row: JSONRow) -> str:
    reader = RowReader(row)
    return "\n".join(filter(None, (reader.maybe("title"), " ".join(reader.texts("abstract")))))


def _sibling_file(path: Path, name: str) -> Path:
    for found in (path.with_name(name), path.with_name(f"{name}.gz")):
        if found.exists():
            return found
    raise InputError(f"{path}: its texts are in {name}, which is not beside it. Put both files into one folder.")
