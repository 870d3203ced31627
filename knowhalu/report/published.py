"""Published figures for a set, shown beside ours where the package knows any."""

from collections import Counter
from typing import NamedTuple

from knowhalu.evaluation import published as book
from knowhalu.evaluation.figures import FIGURES


class Published(NamedTuple):
    """What others reported for a set: the system, the figure's name, its value as a share, and where it was published."""

    system: str
    figure: str
    value: float
    source: str


def published(name: str) -> tuple[Published, ...]:
    """Return what others reported for the set of this name, or of this run folder; nothing where no figure is known."""
    known = book.published()
    keys = [key for key, about in known.sets.items() if name == key or name in about.folders]
    found = [n for key in keys for n in book.numbers(set=key) if n.metric in FIGURES]
    rows = Counter((n.paper, n.table, n.labels, n.metric) for n in found)
    return tuple(
        Published(_system(n, alone=rows[n.paper, n.table, n.labels, n.metric] == 1), n.metric, n.value / 100, _source(n, known))
        for n in found
    )


def _system(number: book.Number, *, alone: bool) -> str:
    """Name the row of a published table, and its column too where the row has several of one figure."""
    return ", ".join(filter(None, (*number.labels, "" if alone else number.column)))


def _source(number: book.Number, known: book.Published) -> str:
    return f"{known.papers[number.paper].title.partition(':')[0]}, table {number.table}"
