"""Data sets of questions with several answers, and of queries to which a user adds the answers."""

from collections.abc import Iterator, Sequence

from knowhalu.datasets.reading import Reader
from knowhalu.fields import FAITHFUL, HALLUCINATED
from knowhalu.records import Row
from knowhalu.types import Document, Sample


def truthfulqa_table(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row of the original table, in which a semicolon parts them."""
    reader = Reader(row)
    right, wrong = (_parted(reader.text(name)) for name in ("Correct Answers", "Incorrect Answers"))
    yield from _answers(reader, reader.text("Question"), right, wrong, reader.maybe("Category"))


def _parted(text: str) -> list[str]:
    return [answer.strip() for answer in text.split(";") if answer.strip()]


def truthfulqa(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row that holds them as two lists."""
    reader = Reader(row)
    right, wrong = (reader.texts(n) for n in ("correct_answers", "incorrect_answers"))
    yield from _answers(reader, reader.text("question"), right, wrong, reader.maybe("category"))


def truthfulqa_choices(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row of the multiple-choice form, all of which its `mc2_targets` has."""
    reader = Reader(row)
    choices = reader.inner("mc2_targets")
    texts, labels = choices.texts("choices"), choices.items("labels")
    if len(texts) != len(labels):
        choices.fault("labels", f"{len(labels)} labels of {len(texts)} choices", "Write the file again")
    right = [text for text, label in zip(texts, labels, strict=True) if label == 1]
    yield from _answers(reader, reader.text("question"), right, [t for t in texts if t not in right])


def _answers(
    reader: Reader, question: str, right: Sequence[str], wrong: Sequence[str], category: str | None = None
) -> Iterator[Sample]:
    for side, answers, hallucinated in (("right", right, False), ("wrong", wrong, True)):
        for number, answer in enumerate(dict.fromkeys(answers), 1):
            name = f"{reader.row.default_id}-{side}-{number}"
            yield reader.sample(name, answer, hallucinated=hallucinated, question=question, meta={"category": category})


def fave(row: Row) -> Iterator[Sample]:
    """Yield the response that its user added to a row, with the abstracts as documents under authors, year and title."""
    reader = Reader(row)
    if "response" not in reader:
        cure = "FaVe holds queries and abstracts only; add the summary to be checked as 'response', and its 'label'"
        reader.fault("response", "is missing", cure)
    papers = [reader.inner("papers", paper) for paper in reader.items("papers")]
    made = reader.sample(
        reader.id(), reader.text("response"), hallucinated=reader.is_hallucinated("label", FAITHFUL, HALLUCINATED),
        sources=[paper.text("summary") for paper in papers], documents=True, question=reader.text("query"),
    )  # fmt: skip
    documents = [Document(id=str(i), title=_title(p), text=p.text("summary")) for i, p in enumerate(papers, 1)]
    yield made.model_copy(update={"documents": tuple(documents)})


def _title(paper: Reader) -> str:
    year = paper.inner("metadata").kept(("year",)).get("year") if "metadata" in paper else None
    return " ".join(filter(None, (", ".join(paper.texts("authors")), f"({year})" if year else "", paper.maybe("title"))))
