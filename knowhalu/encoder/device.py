"""Where a model runs, and in which precision."""

from typing import Literal

import torch

Precision = Literal["auto", "fp32", "bf16"]


def bf16_is_fast() -> bool:
    """Tell whether this CPU multiplies bfloat16 in hardware."""
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


def choose(precision: Precision, device: str) -> tuple[torch.dtype, torch.device]:
    """Resolve "auto": a GPU where there is one; bfloat16 wherever the hardware has it."""
    place = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    half = precision == "bf16" or (precision == "auto" and (place.type == "cuda" or bf16_is_fast()))
    return (torch.bfloat16 if half else torch.float32), place
