"""Published figures for a set, shown beside ours where the package knows any."""

from typing import NamedTuple


class Published(NamedTuple):
    """What others reported for a set: the system, the figure's name, its value as a share, and where it was published."""

    system: str
    figure: str
    value: float
    source: str


def published(name: str) -> tuple[Published, ...]:
    """Return what others reported for the set of this name; nothing where no figure is known."""
    return ()
