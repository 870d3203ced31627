"""Published numbers: the tables of the three papers as data (published.toml), looked up by set and metric."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from knowhalu.errors import SettingsError
from knowhalu.types import KnowledgeForm, Record

PUBLISHED_FILE = "published.toml"
DASH, ILLEGIBLE = "-", "?"
"""Marks in place of a number: a dash in the paper, or a number that is not legible in the edition at hand."""
UNSCALED_METRICS = {"seconds", "hallucinations", "delta1", "delta2", "quantile1", "quantile2"}
"""Metrics that are not shares; all others are in percent."""


class Paper(Record):
    """A paper, and the edition from which its numbers were taken."""

    title: str
    edition: str


class PaperDataset(Record):
    """A data set of a paper: the names of folders with our runs on it, and its needs beyond this package.

    `dataset` is its name for `knowhalu eval`, where it has one; otherwise the file of its rows goes to `knowhalu compare`.
    `index` tells that its rows bring no knowledge, so that an index is searched.
    """

    about: str
    folders: tuple[str, ...] = Field(min_length=1)
    dataset: str = ""
    needs: str = ""
    index: bool = False


class PublishedColumn(Record):
    """A column: its metric, its data set, and its method where the rows do not name one."""

    name: str
    metric: str
    set: str = ""
    method: str = ""


class OwnRow(Record):
    """A row that we can add: its labels without that of the model, the specification of our method, and the form of knowledge.

    `set` replaces that of the columns where the row is of another data set. Of several methods, `best_of`, the one with the
    highest Avg Acc on a set counts, once all of them have been run on it.
    """

    labels: tuple[str, ...]
    method: str = ""
    form: KnowledgeForm | None = None
    set: str = ""
    best_of: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[str, ...]:
        """Return the specifications of all methods that the row needs."""
        return self.best_of or (self.method,)


class PublishedTable(Record):
    """A table: its rows have one text for each label and then one value for each column, a number or one of two marks."""

    paper: str
    number: int
    about: str
    labels: tuple[str, ...]
    columns: tuple[PublishedColumn, ...]
    rows: tuple[tuple[float | str, ...], ...]
    ours: tuple[OwnRow, ...] = ()
    needs: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> "PublishedTable":
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


class PublishedTables(Record):
    """All of published.toml."""

    papers: dict[str, Paper]
    sets: dict[str, PaperDataset]
    table: tuple[PublishedTable, ...]

    @model_validator(mode="after")
    def _names_are_known(self) -> "PublishedTables":
        for table in self.table:
            named = {c.set for c in table.columns} | {o.set for o in table.ours}
            if table.paper not in self.papers or named - {"", *self.sets}:
                raise ValueError(f"table {table.number} of {table.paper}: names a paper or a set that is not there")
        return self


class PublishedNumber(NamedTuple):
    """One published number: its place, its data set and metric, and its value as printed (shares in percent)."""

    paper: str
    table: int
    labels: tuple[str, ...]
    column: str
    set: str
    metric: str
    value: float


@cache
def read_published() -> PublishedTables:
    """Return all published tables."""
    return PublishedTables.model_validate(
        tomllib.loads(files("knowhalu.evaluation").joinpath(PUBLISHED_FILE).read_text(encoding="utf-8"))
    )


def published_tables(paper: str) -> tuple[PublishedTable, ...]:
    """Return all tables of a paper; raises SettingsError with the known papers."""
    if paper not in read_published().papers:
        raise SettingsError(f"no tables of {paper!r} are known. Papers: {', '.join(read_published().papers)}")
    return tuple(table for table in read_published().table if table.paper == paper)


def published_table(paper: str, number: int) -> PublishedTable:
    """Return one table; raises SettingsError with the known ones."""
    tables = {t.number: t for t in published_tables(paper)}
    if number not in tables:
        raise SettingsError(f"table {number} of {paper} is not known. Known: {', '.join(map(str, tables))}")
    return tables[number]


def published_numbers(
    *, set: str | None = None, metric: str | None = None, paper: Literal["knowhalu", "conli", "factored"] | None = None
) -> Iterator[PublishedNumber]:
    """Yield the published numbers of a set, a metric (as in `FIGURES`, or seconds) or a paper; all without."""
    for table in read_published().table:
        for row in table.rows if paper in (None, table.paper) else ():
            for column, value in zip(table.columns, table.values_of(row), strict=True):
                if isinstance(value, float | int) and set in (None, column.set) and metric in (None, column.metric):
                    place = table.paper, table.number, table.labels_of(row), column.name
                    yield PublishedNumber(*place, column.set, column.metric, float(value))
