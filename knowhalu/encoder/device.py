"""Where a model runs, in which precision, and the one thread that all of its computing takes place in."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

import torch

Precision = Literal["auto", "fp32", "bf16"]


def bf16_is_fast() -> bool:
    """Tell whether this CPU multiplies bfloat16 in hardware."""
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


_requested_threads: int | None = None


def use_threads(asked: int | None) -> None:
    """Let torch compute with so many threads; None: those that were asked for before, or else all that the process may use."""
    global _requested_threads
    _requested_threads = asked or _requested_threads
    if _requested_threads is not None:
        torch.set_num_threads(_requested_threads)
    elif "OMP_NUM_THREADS" not in os.environ:  # which torch heeds by itself
        may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        torch.set_num_threads(may_use or 1)


def mixed_precision(device: torch.device) -> torch.autocast:
    """Return the context that trains and scores in bfloat16 where the hardware has it; emulated, it takes three times as long."""
    return torch.autocast(device.type, torch.bfloat16, enabled=choose_device("auto", device.type)[0] == torch.bfloat16)


def choose_device(precision: Precision, device: str) -> tuple[torch.dtype, torch.device]:
    """Resolve "auto": a GPU where there is one; bfloat16 wherever the hardware has it."""
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    half = precision == "bf16" or (precision == "auto" and (place.type == "cuda" or bf16_is_fast()))
    return (torch.bfloat16 if half else torch.float32), place


P = ParamSpec("P")
T = TypeVar("T")

_thread_state = threading.local()


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in the thread that computes and wait for it; what it raises is raised."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(_thread_state, "computes", False):
            return function(*args, **kwargs)
        return _pool.submit(function, *args, **kwargs).result()

    return run


def _mark_thread() -> None:
    _thread_state.computes = True


def _make_pool() -> None:
    global _pool
    _pool = ThreadPoolExecutor(1, thread_name_prefix="torch", initializer=_mark_thread)


_pool: ThreadPoolExecutor
_make_pool()
if hasattr(os, "register_at_fork"):  # threads are not copied into a child process
    os.register_at_fork(after_in_child=_make_pool)
