"""The number of threads that torch uses."""

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


def test_set_threads_persist_where_none_are_given(told):
    use_threads(1)
    use_threads(None)
    assert told == [1, 1]


def test_threads_default_to_the_available_cores(told):
    use_threads(None)
    assert told == [3]


def test_threads_of_the_environment_are_left_to_torch(told, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    use_threads(None)
    assert told == []
