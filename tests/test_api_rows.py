"""Many rows through the Python API: every kind of iterable, in order, lazily, and inside an event loop."""

import asyncio

import pytest

from knowhalu.errors import InputError
from knowhalu.io.frames import read_rows
from knowhalu.types import Sample
from tests.support.scripted_checks import ScriptedChecker

ROWS = [{"claim": "right"}, {"claim": "wrong"}, {"claim": "broken"}, {"claim": "unsure"}]
DECIDED = [False, True, None, None]


class Frame:
    """What a pandas DataFrame offers that is used here."""

    columns = ["claim", "knowledge"]

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.columns)

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return iter(self.rows)


class Array:
    """What a numpy array offers that is used here."""

    def __init__(self, values):
        self.tolist = lambda: values


@pytest.mark.parametrize("kind", [
    list, tuple, iter, lambda rows: [Sample(response=r["claim"]) for r in rows],
    lambda rows: Frame([(r["claim"], float("nan")) for r in rows]),
    lambda rows: [{**r, "knowledge": Array(["k"])} for r in rows],
])  # fmt: skip
def test_rows_of_every_kind_are_checked_in_order(kind):
    outcomes = list(ScriptedChecker().check_all(kind(ROWS)))
    assert [o.id for o in outcomes] == ["1", "2", "3", "4"]
    assert [o.hallucinated for o in outcomes] == DECIDED


def test_a_bad_row_is_refused_before_any_row_is_checked():
    checker = ScriptedChecker()
    with pytest.raises(InputError, match="row 2, field 'cliam'"):
        checker.check_all([{"claim": "right"}, {"cliam": "wrong"}])
    assert checker.method.checked == []


def test_a_bad_row_of_an_iterator_is_refused_after_the_outcomes_before_it():
    outcomes = ScriptedChecker().check_all(iter([{"claim": "right"}, {"cliam": "wrong"}]))
    assert next(outcomes).hallucinated is False
    with pytest.raises(InputError, match="row 2, field 'cliam'"):
        next(outcomes)


@pytest.mark.parametrize("rows", ["rows.jsonl", {"claim": "c"}, Sample(response="r"), 3])
def test_a_single_text_is_no_iterable_of_rows(rows):
    with pytest.raises(InputError, match="Give a list of rows"):
        read_rows(rows)


def test_an_endless_input_is_read_no_further_than_needed():
    drawn = []

    def endless():
        while True:
            drawn.append(1)
            yield {"claim": "right"}

    outcomes = ScriptedChecker().check_all(endless())
    assert next(outcomes).hallucinated is False
    outcomes.close()
    assert len(drawn) <= 20  # four checks at once, and as many again four times that may wait for their turn


def test_checks_run_inside_an_event_loop_and_without_blocking_it():
    async def rows():
        for row in ROWS:
            yield row

    async def run():
        checker = ScriptedChecker()
        one = await checker.acheck(claim="wrong")
        plain = [o.hallucinated async for o in checker.astream(ROWS)]
        lazy = [o.hallucinated async for o in checker.astream(rows())]
        return one.hallucinated, plain, lazy, checker.check("wrong").hallucinated

    assert asyncio.run(run()) == (True, DECIDED, DECIDED, True)
