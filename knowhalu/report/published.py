"""Published figures for a set, shown beside ours where the package knows any."""

from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from knowhalu.evaluation.figures import FIGURES

BOOK = "knowhalu.evaluation.published"


class Published(NamedTuple):
    """What others reported for a set: the system, the figure's name, its value as a share, and where it was published."""

    system: str
    figure: str
    value: float
    source: str


def published(name: str) -> tuple[Published, ...]:
    """Return what others reported for the set of this name, or of this run folder; nothing where no figure is known."""
    if find_spec(BOOK) is None:
        return ()
    book = import_module(BOOK)
    known = book.published()
    keys = [key for key, about in known.sets.items() if name == key or name in about.folders]
    found = [n for key in keys for n in book.numbers(set=key) if n.metric in FIGURES]
    rows = Counter((n.paper, n.table, n.labels, n.metric) for n in found)
    return tuple(
        Published(_system(n, alone=rows[n.paper, n.table, n.labels, n.metric] == 1), n.metric, n.value / 100, _source(n, known))
        for n in found
    )


def _system(number: Any, *, alone: bool) -> str:
    """Name the row of a published table, and its column too where the row has several of one figure."""
    return ", ".join(filter(None, (*number.labels, "" if alone else number.column)))


def _source(number: Any, known: Any) -> str:
    return f"{known.papers[number.paper].title.partition(':')[0]}, table {number.table}"
