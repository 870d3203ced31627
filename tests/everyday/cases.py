"""A case that people check every day, its two polarities, and the kinds that generators register."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from random import Random
from typing import NamedTuple


class Expected(StrEnum):
    """What a check must say of a case."""

    FAITHFUL = "faithful"
    HALLUCINATED = "hallucinated"
    NOTHING = "nothing to check"
    FOREIGN = "other language"


class Case(NamedTuple):
    """A response to check against documents, and what is expected of it.

    `claims` are the texts that must be left to check, None where they are not fixed; `by_value` marks a case that its values
    alone decide.
    """

    kind: str
    variety: str
    documents: tuple[str, ...]
    question: str | None
    response: str
    expected: Expected
    claims: tuple[str, ...] | None = None
    by_value: bool = False


class Pair(NamedTuple):
    """A faithful and a hallucinated response to the same question about the same documents."""

    documents: tuple[str, ...]
    question: str | None
    right: str
    wrong: str
    claims: tuple[str, ...] | None = None
    """Of the faithful response."""
    wrong_claims: tuple[str, ...] | None = None
    expected: tuple[Expected, Expected] = (Expected.FAITHFUL, Expected.HALLUCINATED)
    by_value: bool = False


Maker = Callable[[Random], Pair]
MAKERS: dict[str, dict[str, Maker]] = {}
"""The generators of every kind by variety."""


def variety(kind: str) -> Callable[[Maker], Maker]:
    """Register a generator as a variety of a kind, named as the function."""

    def registered(maker: Maker) -> Maker:
        MAKERS.setdefault(kind, {})[maker.__name__.replace("_", " ").strip()] = maker
        return maker

    return registered


def case_pairs(kind: str, count: int, seed: int = 0) -> Iterator[tuple[Case, Case]]:
    """Yield `count` pairs of cases of a kind, its varieties in turn; the same seed gives the same cases."""
    makers = list(MAKERS[kind].items())
    for number in range(count):
        name, maker = makers[number % len(makers)]
        yield make_pair(kind, name, maker, Random(f"{kind}/{name}/{seed}/{number // len(makers)}"))


def make_pair(kind: str, name: str, maker: Maker, rng: Random) -> tuple[Case, Case]:
    """Make the faithful and the hallucinated case of a variety."""
    p = maker(rng)
    assert p.right != p.wrong, f"{kind}, {name}: both responses are {p.right!r}"
    right, wrong = p.expected
    return (
        Case(kind, name, p.documents, p.question, p.right, right, p.claims, p.by_value),
        Case(kind, name, p.documents, p.question, p.wrong, wrong, p.wrong_claims, p.by_value),
    )
