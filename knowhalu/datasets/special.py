"""Data sets whose rows need more than a mapping of fields: questions with several answers, claims, dialogues."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from knowhalu.datasets.card import ENTAILED_LABELS, NOT_ENTAILED_LABELS, REFUTED_LABELS
from knowhalu.datasets.row_reader import RowReader, integer_id, read_sibling_rows
from knowhalu.io.rows import Row, read_rows
from knowhalu.io.samples import FAITHFUL_LABELS, HALLUCINATED_LABELS, parse_sample
from knowhalu.types import META_PAIR, META_TYPE, Document, Sample

CORPUS_FILE = "corpus.jsonl"
"""The file of SciFact's abstracts, next to that of its claims."""
HALLUCINATION_TAG = "hallucination"


def own_sample(row: Row) -> Iterator[Sample]:
    """Yield the sample of a row."""
    yield parse_sample(row.fields, row.place, row.default_id)


def truthfulqa_table(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row of the original table, in which they are separated by semicolons."""
    reader = RowReader(row)
    right, wrong = (_split_answers(reader.text(name)) for name in ("Correct Answers", "Incorrect Answers"))
    yield from _answers(reader, reader.text("Question"), right, wrong, reader.maybe("Category"))


def _split_answers(text: str) -> list[str]:
    return [answer.strip() for answer in text.split(";") if answer.strip()]


def truthfulqa(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row that holds them as two lists."""
    reader = RowReader(row)
    right, wrong = (reader.texts(n) for n in ("correct_answers", "incorrect_answers"))
    yield from _answers(reader, reader.text("question"), right, wrong, reader.maybe("category"))


def truthfulqa_choices(row: Row) -> Iterator[Sample]:
    """Yield the answers of a row of the multiple-choice form, from its `mc2_targets`."""
    reader = RowReader(row)
    choices = reader.inner("mc2_targets")
    texts, labels = choices.texts("choices"), choices.items("labels")
    if len(texts) != len(labels):
        choices.fault("labels", f"{len(labels)} labels of {len(texts)} choices", "Write the file again")
    right = [text for text, label in zip(texts, labels, strict=True) if label == 1]
    yield from _answers(reader, reader.text("question"), right, [t for t in texts if t not in right])


def _answers(
    reader: RowReader, question: str, right: Sequence[str], wrong: Sequence[str], category: str | None = None
) -> Iterator[Sample]:
    for side, answers, hallucinated in (("right", right, False), ("wrong", wrong, True)):
        for number, answer in enumerate(dict.fromkeys(answers), 1):
            name = f"{reader.row.default_id}-{side}-{number}"
            yield reader.sample(name, answer, hallucinated=hallucinated, question=question, meta={"category": category})


def fave(row: Row) -> Iterator[Sample]:
    """Yield the response that the user added to a row, with the abstracts as documents titled by authors, year and title."""
    reader = RowReader(row)
    if "response" not in reader:
        remedy = "FaVe holds queries and abstracts only; add the summary to be checked as 'response', and its 'label'"
        reader.fault("response", "is missing", remedy)
    papers = [reader.inner("papers", paper) for paper in reader.items("papers")]
    sample = reader.sample(
        reader.id(), reader.text("response"), hallucinated=reader.is_hallucinated("label", FAITHFUL_LABELS, HALLUCINATED_LABELS),
        sources=[paper.text("summary") for paper in papers], documents=True, question=reader.text("query"),
    )  # fmt: skip
    documents = [Document(id=str(i), title=_title(p), text=p.text("summary")) for i, p in enumerate(papers, 1)]
    yield sample.model_copy(update={"documents": tuple(documents)})


def _title(paper: RowReader) -> str:
    year = paper.inner("metadata").kept(("year",)).get("year") if "metadata" in paper else None
    return " ".join(filter(None, (", ".join(paper.texts("authors")), f"({year})" if year else "", paper.maybe("title"))))


def fever(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row; evidence given by page and line only has no text, so it needs an index."""
    reader = RowReader(row)
    hallucinated = reader.is_hallucinated("label", ENTAILED_LABELS, NOT_ENTAILED_LABELS)
    given = row.fields.get("evidence")
    named = isinstance(given, list) and any(isinstance(item, list) for item in given)
    texts = [] if named else reader.texts("evidence")
    yield _claim(reader, ("unique_id", "id", "claim_id"), "claim", "label", hallucinated=hallucinated, source="\n".join(texts))


def climate_fever(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with all of its evidence."""
    reader = RowReader(row)
    hallucinated = reader.is_hallucinated("claim_label", ENTAILED_LABELS, (*NOT_ENTAILED_LABELS, "disputed"))
    pieces = [reader.inner("evidences", piece).text("evidence") for piece in reader.items("evidences")]
    yield _claim(reader, ("claim_id",), "claim", "claim_label", hallucinated=hallucinated, source="\n".join(pieces))


def fm2(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with its gold evidence, under the title of its page."""
    reader = RowReader(row)
    hallucinated = reader.is_hallucinated("label", ENTAILED_LABELS, NOT_ENTAILED_LABELS)
    pieces = [reader.inner("gold_evidence", piece).text("text") for piece in reader.items("gold_evidence")]
    title = f"{page}: " if (page := reader.maybe("wikipedia_page")) else ""
    source = title + " ".join(pieces) if pieces else ""
    yield _claim(reader, ("id",), "text", "label", hallucinated=hallucinated, source=source)


def _claim(reader: RowReader, ids: Sequence[str], text: str, label: str, *, hallucinated: bool, source: str) -> Sample:
    """Make the sample of a claim with one source, if it has any; the label of a hallucinated claim is its type of error."""
    return reader.sample(
        reader.id(ids), reader.text(text), hallucinated=hallucinated, claim=True, sources=[source] if source else [],
        meta={META_TYPE: reader.word(label) if hallucinated else None},
    )  # fmt: skip


def scifact_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of SciFact's claims with the texts of their abstracts; raises InputError where one is missing."""
    corpus = {RowReader(row).key("doc_id"): _abstract(row) for row in read_sibling_rows(path, CORPUS_FILE)}
    for row in read_rows(path):
        reader = RowReader(row)
        names = dict.fromkeys(
            [*(integer_id(v) or str(v) for v in reader.items("cited_doc_ids")), *reader.inner("evidence").fields]
        )
        for name in names:
            if name not in corpus:
                reader.fault("cited_doc_ids", f"{name!r:.40} is not in {CORPUS_FILE}", "Take both files from the same release")
        fields: Mapping[str, Any] = {**row.fields, "abstracts": {name: corpus[name] for name in names}}
        yield row._replace(fields=fields)


def _abstract(row: Row) -> str:
    reader = RowReader(row)
    return "\n".join(filter(None, (reader.maybe("title"), " ".join(reader.texts("abstract")))))


def scifact(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row against each of its abstracts, which `scifact_rows` added as `abstracts`."""
    reader = RowReader(row)
    evidence = reader.inner("evidence")
    for name, abstract in reader.inner("abstracts").fields.items():
        rationales = evidence.items(name) if name in evidence else []
        refuted = [reader.inner("evidence", r).is_hallucinated("label", ENTAILED_LABELS, REFUTED_LABELS) for r in rationales]
        hallucinated = not refuted or any(refuted)
        yield reader.sample(
            f"{reader.id()}-{name}", reader.text("claim"), hallucinated=hallucinated, claim=True, sources=[abstract],
            meta={META_TYPE: None if not hallucinated else "contradict" if refuted else "no evidence"},
        )  # fmt: skip


def faithdial(row: Row) -> Iterator[Sample]:
    """Yield the replies of a dialogue."""
    reader = RowReader(row)
    for number, turn in enumerate(reader.items("utterances")):
        inner = reader.inner("utterances", turn)
        yield from _turn(inner, f"{row.default_id}-{number}")


def faithdial_turn(row: Row) -> Iterator[Sample]:
    """Yield the replies of a row that is one turn."""
    yield from _turn(RowReader(row), row.default_id)


def _turn(reader: RowReader, name: str) -> Iterator[Sample]:
    """Yield the edited reply, and the original one where it was tagged as a hallucination."""
    sources, tags = [reader.text("knowledge")], {tag.casefold() for tag in reader.texts("BEGIN")}
    original, edited = reader.maybe("original_response"), reader.text("response")
    shared = {META_PAIR: name, "history": "\n".join(reader.texts("history")) or None}
    yield reader.sample(f"{name}-right", edited, hallucinated=False, sources=sources, documents=False, meta=shared)
    if original is not None and original != edited and HALLUCINATION_TAG in tags:
        yield reader.sample(
            f"{name}-hallucinated", original, hallucinated=True, sources=sources, documents=False,
            meta={META_TYPE: ", ".join(sorted(tags)), **shared},
        )  # fmt: skip
