"""Data sets of summaries and their sentences, judged by people."""

from collections.abc import Iterator

from knowhalu.datasets.mapping import FALSE, TRUE, Judged
from knowhalu.datasets.reading import Reader
from knowhalu.records import Row
from knowhalu.types import Sample

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
