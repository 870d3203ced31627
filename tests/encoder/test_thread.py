"""The computing thread: torch runs in one thread for all callers."""

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


def test_all_callers_share_one_computing_thread():
    with ThreadPoolExecutor(3) as pool:
        found = {where(), *(pool.submit(where).result() for _ in range(3))}
    assert len(found) == 1 and threading.get_ident() not in found


def test_function_in_the_computing_thread_may_call_another():
    outer, inner = nested()
    assert outer == inner == where()


def test_error_reaches_the_caller_and_the_thread_survives():
    @in_one_thread
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert where()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_process_has_its_own_computing_thread():
    where()
    child = os.fork()
    if child == 0:
        os._exit(0 if where() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_embedder_loads_and_computes_in_the_computing_thread(monkeypatch):
    asked = []
    submit = thread._pool.submit
    monkeypatch.setattr(thread._pool, "submit", lambda f, *a, **k: asked.append(f.__name__) or submit(f, *a, **k))
    assert np.isfinite(MiniLMEmbedder(precision="fp32").encode(["snow is white"])).all()
    assert asked == ["__init__", "_forward"]
