"""One thread for all that torch computes here, whoever asks for it.

OpenMP gives every thread that computes a pool of helpers. Where two pools have more threads than the machine has cores, helpers
no longer stay awake between two steps: each step then wakes them, and a verifier that was loaded by one thread and is asked by
another takes 1.2 to 1.5 times as long (libgomp, two cores).
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_here = threading.local()


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in the thread that computes and wait for it; what it raises is raised."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_here, "computes", False):
            return function(*args, **kwargs)
        return _pool.submit(function, *args, **kwargs).result()

    return run


def _begin() -> None:
    _here.computes = True


def _open() -> None:
    global _pool
    _pool = ThreadPoolExecutor(1, thread_name_prefix="torch", initializer=_begin)


_pool: ThreadPoolExecutor
_open()
if hasattr(os, "register_at_fork"):  # threads are not copied into a child process
    os.register_at_fork(after_in_child=_open)
