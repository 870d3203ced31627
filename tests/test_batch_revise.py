"""Jobs of revision: one line for each row, also after a kill, and counts."""

import json
import os
from functools import cached_property

import pytest

from knowhalu import batch
from knowhalu.api import Reviser
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import ResumeError
from knowhalu.io.outcomes import parse_revision
from knowhalu.methods.revise.guarded import GuardedRevision
from tests.support.revising import Detector, Writer
from tests.support.scripted_checks import Plain, write

ROWS = [
    {"id": "a", "claim": "Mars is red. Mars is wrong.", "knowledge": "k", "label": "hallucinated"},
    {"id": "b", "claim": "Mars is red.", "knowledge": "k", "label": "faithful"},
    {"id": "c", "claim": "Mars is broken.", "knowledge": "k"},
    {"id": "ü", "claim": "All wrong here.", "knowledge": "k"},
]


class ScriptedReviser(Reviser):
    """Revises by a scripted detector and writer."""

    @cached_property
    def detector(self):
        return Detector()

    @cached_property
    def engine(self):
        return Engine(GuardedRevision(self.detector, Writer({"Mars is wrong.": ["Mars is far."]})), Backends(), in_flight=1)

    @cached_property
    def fingerprint(self):
        return {"version": "1", "settings": '{"revise":{"how":"guarded"}}'}


@pytest.fixture
def job(tmp_path):
    source = tmp_path / "in.jsonl"
    write(source, ROWS)
    return source, tmp_path / "out.jsonl"


def revisions(path):
    head, *lines = path.read_bytes().split(b"\n")[:-1]
    assert list(json.loads(head)) == ["run"]
    return [parse_revision(line) for line in lines]


def test_every_row_gets_one_line_in_order_and_is_counted(job):
    source, output = job
    summary = batch.revise(ScriptedReviser(), source, output)
    assert [r.id for r in revisions(output)] == ["a", "b", "c", "ü"]
    assert summary.labels == {"revised": 1, "unchanged": 1, "refused": 1}
    assert (summary.changes, summary.failures) == ({"rewritten": 1}, {"judge: the reply has no label": 1})
    assert summary.score is None and summary.length is None


def test_a_run_killed_at_any_byte_continues_to_one_line_for_each_row(job, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    source, output = job
    whole = batch.revise(ScriptedReviser(), source, output)
    full = output.read_bytes()
    for kept in range(0, len(full) + 1, 37):
        output.write_bytes(full[:kept])
        reviser = ScriptedReviser()
        summary = batch.revise(reviser, source, output)
        assert [r.id for r in revisions(output)] == ["a", "b", "c", "ü"], kept
        assert (summary.labels, summary.changes) == (whole.labels, whole.changes)
        finished = full[:kept].count(b"\n") - 1
        assert finished < 1 or "Mars is red. Mars is wrong." not in reviser.detector.checked, kept


def test_failures_are_retried(job):
    source, output = job
    batch.revise(ScriptedReviser(), source, output)
    reviser = ScriptedReviser()
    assert batch.revise(reviser, source, output).kept == 3
    assert reviser.detector.checked == ["Mars is broken."]
    assert batch.revise(ScriptedReviser(), source, output, retry_failures=False).kept == 4


def test_verdicts_and_revisions_do_not_mix(job):
    source, output = job
    batch.detect(Plain(), source, output)
    with pytest.raises(ResumeError, match="belongs to another run"):
        batch.revise(ScriptedReviser(), source, output)
