"""How many threads compute."""

import pytest
import torch

from knowhalu.encoder import device
from knowhalu.encoder.device import use_threads


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(device, "_requested_threads", None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(device.os, "sched_getaffinity", lambda pid: {0, 2, 5}, raising=False)
    found = []
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    return found


def test_threads_that_were_asked_for_are_not_undone_by_a_part_that_asks_for_none(told):
    use_threads(1)
    use_threads(None)
    assert told == [1, 1]


def test_else_all_that_the_process_may_use(told):
    use_threads(None)
    assert told == [3]


def test_the_environment_is_left_to_torch(told, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    use_threads(None)
    assert told == []
