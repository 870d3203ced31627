"""Batches that are made in a thread of their own: order, errors, and an end without waiting for anybody."""

import threading

import pytest

from knowhalu.training.batches import prefetch


def failing(count):
    yield from range(count)
    raise ValueError("a broken row")


def test_batches_come_in_order_and_the_error_after_them():
    stream = prefetch(failing(5), size=2)
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="a broken row"):
        next(stream)


def test_an_error_that_nobody_takes_does_not_keep_the_thread():
    threads = []

    def batches():
        threads.append(threading.current_thread())
        yield from failing(3)

    stream = prefetch(batches(), size=2)
    next(stream)
    stream.close()
    assert not threads[0].is_alive()
