"""Batches made in another thread: order, errors, and a prompt end."""

import threading

import pytest

from knowhalu.training.batches import prefetch


def failing(count):
    yield from range(count)
    raise ValueError("a broken row")


def test_prefetch_keeps_order_and_raises_errors_last():
    stream = prefetch(failing(5), size=2)
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="a broken row"):
        next(stream)


def test_prefetch_ends_its_thread_when_closed_before_an_error():
    threads = []

    def batches():
        threads.append(threading.current_thread())
        yield from failing(3)

    stream = prefetch(batches(), size=2)
    next(stream)
    stream.close()
    assert not threads[0].is_alive()
