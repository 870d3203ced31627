"""The device and the precision of a model, and the one thread in which it computes."""

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


def use_threads(threads: int | None) -> None:
    """Set the CPU threads of torch; None: the number that was set before, or else all cores that the process may use."""
    global _requested_threads
    _requested_threads = threads or _requested_threads
    if _requested_threads is not None:
        torch.set_num_threads(_requested_threads)
    elif "OMP_NUM_THREADS" not in os.environ:  # torch reads this variable itself
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        torch.set_num_threads(cores or 1)


def mixed_precision(device: torch.device) -> torch.autocast:
    """Return the autocast context: bfloat16 where the hardware supports it, as emulation takes three times as long as fp32."""
    return torch.autocast(device.type, torch.bfloat16, enabled=choose_device("auto", device.type)[0] == torch.bfloat16)


def choose_device(precision: Precision, device: str) -> tuple[torch.dtype, torch.device]:
    """Resolve "auto": a GPU where one is available, bfloat16 where the hardware supports it."""
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    half = precision == "bf16" or (precision == "auto" and (place.type == "cuda" or bf16_is_fast()))
    return (torch.bfloat16 if half else torch.float32), place


P = ParamSpec("P")
T = TypeVar("T")

_thread_state = threading.local()


def in_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function in the computing thread, wait for it, and return its result or raise its exception."""

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
