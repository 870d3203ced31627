"""Data sets of claims and of inference, each against the evidence that comes with it."""

from collections.abc import Iterator

from knowhalu.datasets.mapping import ENTAILED, NEUTRAL, REFUTED, Judged
from knowhalu.datasets.reading import Reader
from knowhalu.records import Row
from knowhalu.types import SPANS, TYPE, Sample

WRONG = (*NEUTRAL, *REFUTED)
ROWS = Judged(
    "claim", ("source",), "label", ("supported",), ("unsupported",), types=("error_type", "label3", "raw_label"),
    parts=("set", "source_set", "domain"), kept=("question",),
)  # fmt: skip
FEVER_NLI = Judged("query", ("context",), "label", ENTAILED, WRONG, ids=("cid", "id"), types=("label",))
SYMMETRIC = Judged("claim", ("evidence",), "gold_label", ENTAILED, WRONG, types=("gold_label",))
SYMMETRIC_TEST = Judged("claim", ("evidence_sentence",), "label", ENTAILED, WRONG, types=("label",))
FEVEROUS = Judged("claim", ("evidence",), "gold", ENTAILED, WRONG, types=("gold",), joined=True, kept=("challenge", "num_hops"))
HEALTHVER = Judged("claim", ("evidence",), "label", ENTAILED, WRONG, types=("label",), ids=(), kept=("question",))
WICE = Judged(
    "claim", ("evidence",), "label", ("supported",), ("partially_supported", "not_supported"), types=("label",), joined=True
)
_NUMBERS = ("1", "2")
NLI = Judged(
    "hypothesis", ("premise",), "label", (*ENTAILED, "0"), (*WRONG, *_NUMBERS), ids=("id", "uid", "idx"), skipped=("-", "-1")
)
NLI_GOLD = Judged(
    "sentence2", ("sentence1",), "gold_label", ENTAILED, WRONG, ids=("pairID", "id"), types=("gold_label",), skipped=("-",)
)


def fever(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row; evidence that is named by page and line is no text, so it is left to an index."""
    reader = Reader(row)
    wrong = reader.is_hallucinated("label", ENTAILED, WRONG)
    given = row.fields.get("evidence")
    named = isinstance(given, list) and any(isinstance(item, list) for item in given)
    texts = [] if named else reader.texts("evidence")
    yield reader.sample(
        reader.id(("unique_id", "id", "claim_id")), reader.text("claim"), hallucinated=wrong, claim=True,
        sources=["\n".join(texts)] if texts else [], meta={TYPE: reader.word("label") if wrong else None},
    )  # fmt: skip


def climate_fever(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with all of its evidence."""
    reader = Reader(row)
    wrong = reader.is_hallucinated("claim_label", ENTAILED, (*WRONG, "disputed"))
    pieces = [reader.inner("evidences", piece).text("evidence") for piece in reader.items("evidences")]
    yield reader.sample(
        reader.id(("claim_id",)), reader.text("claim"), hallucinated=wrong, claim=True,
        sources=["\n".join(pieces)] if pieces else [],
        meta={TYPE: reader.word("claim_label") if wrong else None},
    )  # fmt: skip


def fm2(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with its gold evidence, under the title of its page."""
    reader = Reader(row)
    wrong = reader.is_hallucinated("label", ENTAILED, WRONG)
    pieces = [reader.inner("gold_evidence", piece).text("text") for piece in reader.items("gold_evidence")]
    title = f"{page}: " if (page := reader.maybe("wikipedia_page")) else ""
    yield reader.sample(
        reader.id(), reader.text("text"), hallucinated=wrong, claim=True,
        sources=[title + " ".join(pieces)] if pieces else [],
        meta={TYPE: reader.word("label") if wrong else None},
    )  # fmt: skip


def scifact(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row against each of its abstracts, which were put beside it as `abstracts`."""
    reader = Reader(row)
    evidence = reader.inner("evidence")
    for name, abstract in reader.inner("abstracts").fields.items():
        rationales = evidence.items(name) if name in evidence else []
        said = [reader.inner("evidence", one).is_hallucinated("label", ENTAILED, REFUTED) for one in rationales]
        wrong = not said or any(said)
        yield reader.sample(
            f"{reader.id()}-{name}", reader.text("claim"), hallucinated=wrong, claim=True, sources=[abstract],
            meta={TYPE: None if not wrong else "contradict" if said else "no evidence"},
        )  # fmt: skip


def wice_tokens(row: Row) -> Iterator[Sample]:
    """Yield the claim of a row with the characters of the words that its page does not support."""
    reader = Reader(row)
    tokens, flags = [str(t) for t in reader.items("claim_tokens")], reader.items("non_supported_spans")
    if len(tokens) != len(flags):
        reader.fault("non_supported_spans", f"{len(flags)} marks of {len(tokens)} words", "Write the file again")
    for sample in WICE(row):
        yield sample.model_copy(update={"meta": {**sample.meta, **marked(sample.response, tokens, flags)}})


def marked(text: str, pieces: list[str], flags: list[object]) -> dict[str, list[list[int]]]:
    """Return the characters of the marked pieces, which stand in the text one after the other; nothing where one does not."""
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
    return {SPANS: spans}
