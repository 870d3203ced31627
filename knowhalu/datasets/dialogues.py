"""Data sets of replies in dialogues: against the knowledge that was given, the turns before being kept beside."""

from collections.abc import Iterator

from knowhalu.datasets.mapping import Judged, Paired
from knowhalu.datasets.reading import Reader, pair_of
from knowhalu.records import Row
from knowhalu.types import TYPE, Sample

HALUEVAL = Paired("right_response", "hallucinated_response", ("knowledge",), documents=False, kept=("dialogue_history",))
JUDGED = Judged("response", ("knowledge",), "hallucination", ("no",), ("yes",), documents=False, kept=("dialogue_history",))
BEGIN = Judged(
    "response", ("knowledge",), "begin_label", ("fully attributable",), ("not fully attributable", "generic"),
    types=("begin_label",), parts=("data_source",), kept=("message", "model_name"),
)  # fmt: skip
HALLUCINATION = "hallucination"


def faithdial(row: Row) -> Iterator[Sample]:
    """Yield the replies of a dialogue."""
    reader = Reader(row)
    for number, turn in enumerate(reader.items("utterances")):
        inner = reader.inner("utterances", turn)
        yield from _turn(inner, f"{row.default_id}-{number}")


def faithdial_turn(row: Row) -> Iterator[Sample]:
    """Yield the replies of a row that is one turn."""
    yield from _turn(Reader(row), row.default_id)


def _turn(reader: Reader, name: str) -> Iterator[Sample]:
    """Yield the edited reply, and the original one where it was tagged as a hallucination."""
    sources, tags = [reader.text("knowledge")], {tag.casefold() for tag in reader.texts("BEGIN")}
    original, edited = reader.maybe("original_response"), reader.text("response")
    shared = {**pair_of(reader.row._replace(default_id=name)), "history": "\n".join(reader.texts("history")) or None}
    yield reader.sample(f"{name}-right", edited, hallucinated=False, sources=sources, documents=False, meta=shared)
    if original is not None and original != edited and HALLUCINATION in tags:
        yield reader.sample(
            f"{name}-hallucinated", original, hallucinated=True, sources=sources, documents=False,
            meta={TYPE: ", ".join(sorted(tags)), **shared},
        )  # fmt: skip
