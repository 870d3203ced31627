"""Whoever asks, torch computes in one thread."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from knowhalu.encoder import device as thread
from knowhalu.encoder.device import in_one_thread
from knowhalu.encoder.embedder import MiniLMEmbedder


@in_one_thread
def where() -> int:
    return threading.get_ident()


@in_one_thread
def nested() -> tuple[int, int]:
    return threading.get_ident(), where()


def test_every_caller_gets_the_same_thread_which_is_none_of_theirs():
    with ThreadPoolExecutor(3) as pool:
        found = {where(), *(pool.submit(where).result() for _ in range(3))}
    assert len(found) == 1 and threading.get_ident() not in found


def test_a_function_that_runs_there_may_call_another():
    outer, inner = nested()
    assert outer == inner == where()


def test_an_error_reaches_the_caller_and_the_next_call_is_answered():
    @in_one_thread
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert where()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_computes_in_a_thread_of_its_own():
    where()
    child = os.fork()
    if child == 0:
        os._exit(0 if where() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_embedder_computes_there_and_loads_there(monkeypatch):
    asked = []
    submit = thread._pool.submit
    monkeypatch.setattr(thread._pool, "submit", lambda f, *a, **k: asked.append(f.__name__) or submit(f, *a, **k))
    assert np.isfinite(MiniLMEmbedder(precision="fp32").encode(["snow is white"])).all()
    assert asked == ["__init__", "_forward"]
