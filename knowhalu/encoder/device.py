"""Where a model runs, and in which precision."""

import os
from typing import Literal

import torch

Precision = Literal["auto", "fp32", "bf16"]


def bf16_is_fast() -> bool:
    """Tell whether this CPU multiplies bfloat16 in hardware."""
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


_asked: int | None = None


def use_threads(asked: int | None) -> None:
    """Let torch compute with so many threads; None: those that were asked for before, or else all that the process may use."""
    global _asked
    _asked = asked or _asked
    if _asked is not None:
        torch.set_num_threads(_asked)
    elif "OMP_NUM_THREADS" not in os.environ:  # which torch heeds by itself
        may_use = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        torch.set_num_threads(may_use or 1)


def mixed(device: torch.device) -> torch.autocast:
    """Return the context that trains and scores in bfloat16 where the hardware has it; emulated, it takes three times as long."""
    return torch.autocast(device.type, torch.bfloat16, enabled=choose("auto", device.type)[0] == torch.bfloat16)


def choose(precision: Precision, device: str) -> tuple[torch.dtype, torch.device]:
    """Resolve "auto": a GPU where there is one; bfloat16 wherever the hardware has it."""
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    half = precision == "bf16" or (precision == "auto" and (place.type == "cuda" or bf16_is_fast()))
    return (torch.bfloat16 if half else torch.float32), place
