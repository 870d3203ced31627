"""Published numbers: the tables of the three papers as data (published.toml), looked up by set and figure."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from knowhalu.errors import SettingsError
from knowhalu.types import Form, Record

FILE = "published.toml"
DASH, ILLEGIBLE = "-", "?"
"""What stands in place of a number: a dash in the paper, or what cannot be read in the edition at hand."""
NUMBERS = {"seconds", "hallucinations"}
"""Metrics that are no shares; all others are in percent."""


class Paper(Record):
    """A paper, and the edition that its figures were read from."""

    title: str
    edition: str


class PaperSet(Record):
    """A set of rows that a paper reports on: names of folders that hold our runs on it, and what it takes beyond this package.

    `dataset` is its name for `knowhalu eval`, where it has one.
    """

    about: str
    folders: tuple[str, ...] = Field(min_length=1)
    dataset: str = ""
    needs: str = ""


class Column(Record):
    """A column: the figure that it shows, on which set, and the method that it is of where rows do not name one."""

    name: str
    metric: str
    set: str = ""
    method: str = ""


class Ours(Record):
    """A row that we can add: its labels (but the model's), our method as `knowhalu compare` takes it, one form alone or both.

    `set` stands for that of the columns, where the row is of another.
    """

    labels: tuple[str, ...]
    method: str = ""
    form: Form | None = None
    set: str = ""


class Table(Record):
    """A table: its rows have one text for each label and then one value for each column, a number or one of two marks."""

    paper: str
    number: int
    about: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[float | str, ...], ...]
    ours: tuple[Ours, ...] = ()
    needs: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> "Table":
        wide = len(self.labels)
        for row in self.rows:
            if len(row) != wide + len(self.columns) or not all(isinstance(v, str) for v in row[:wide]):
                raise ValueError(f"table {self.number} of {self.paper}: {row} needs {wide} labels, {len(self.columns)} values")
            if any(isinstance(v, str) and v not in (DASH, ILLEGIBLE) for v in row[wide:]):
                raise ValueError(f"table {self.number} of {self.paper}: {row} has a value that is none")
        return self

    def labels_of(self, row: tuple[float | str, ...]) -> tuple[str, ...]:
        """Return the texts of a row."""
        return tuple(str(v) for v in row[: len(self.labels)])

    def values_of(self, row: tuple[float | str, ...]) -> tuple[float | str, ...]:
        """Return the values of a row."""
        return row[len(self.labels) :]


class Published(Record):
    """All of published.toml."""

    papers: dict[str, Paper]
    sets: dict[str, PaperSet]
    table: tuple[Table, ...]

    @model_validator(mode="after")
    def _names_are_known(self) -> "Published":
        for table in self.table:
            named = {c.set for c in table.columns} | {o.set for o in table.ours}
            if table.paper not in self.papers or named - {"", *self.sets}:
                raise ValueError(f"table {table.number} of {table.paper}: names a paper or a set that is not there")
        return self


class Number(NamedTuple):
    """One published number: where it stands, what it is of, and its value as printed (shares in percent)."""

    paper: str
    table: int
    labels: tuple[str, ...]
    column: str
    set: str
    metric: str
    value: float


@cache
def published() -> Published:
    """Return all published tables."""
    return Published.model_validate(tomllib.loads(files("knowhalu.evaluation").joinpath(FILE).read_text(encoding="utf-8")))


def tables_of(paper: str) -> tuple[Table, ...]:
    """Return all tables of a paper; raises SettingsError with the known papers."""
    if paper not in published().papers:
        raise SettingsError(f"no tables of {paper!r} are known. Papers: {', '.join(published().papers)}")
    return tuple(table for table in published().table if table.paper == paper)


def table_of(paper: str, number: int) -> Table:
    """Return one table; raises SettingsError with the known ones."""
    found = {t.number: t for t in tables_of(paper)}
    if number not in found:
        raise SettingsError(f"table {number} of {paper} is not known. Known: {', '.join(map(str, found))}")
    return found[number]


def numbers(
    *, set: str | None = None, metric: str | None = None, paper: Literal["knowhalu", "conli", "factored"] | None = None
) -> Iterator[Number]:
    """Yield the published numbers of a set, a metric (as in `FIGURES`, or seconds) or a paper; all without."""
    for table in published().table:
        for row in table.rows if paper in (None, table.paper) else ():
            for column, value in zip(table.columns, table.values_of(row), strict=True):
                if isinstance(value, float | int) and set in (None, column.set) and metric in (None, column.metric):
                    place = table.paper, table.number, table.labels_of(row), column.name
                    yield Number(*place, column.set, column.metric, float(value))
