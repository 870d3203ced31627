"""What every training run shares: the loop over steps, and a checkpoint file from which a run resumes exactly."""

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from knowhalu.errors import ResumeError

CHECKPOINT_FILE = "checkpoint.safetensors"


class StepProgress(Protocol):
    """The progress of a run: steps, seconds and the running mean of the loss."""

    step: int
    seconds: float
    loss: float


_Progress = TypeVar("_Progress", bound=StepProgress)


def run_steps(
    progress: _Progress,
    step: Callable[[], float],
    *,
    done: Callable[[], bool],
    save: Callable[[], None],
    report: Callable[[_Progress], None],
    every: float,
) -> None:
    """Call `step`, which returns its loss, until `done`; call `save` every `every` seconds and at the end."""
    last_save = start = time.monotonic()
    earlier = progress.seconds
    while not done():
        loss = step()
        progress.step += 1
        progress.loss = loss if math.isnan(progress.loss) else 0.98 * progress.loss + 0.02 * loss
        now = time.monotonic()
        progress.seconds = earlier + now - start
        report(progress)
        if now - last_save >= every:
            save()
            last_save = now
    save()


class Checkpoint(NamedTuple):
    """Weights by name, the optimizer's state by parameter number, and the records of the run; `path` is the file."""

    path: Path
    weights: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    about: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the checkpoint of a folder, or return None where there is none; raises ResumeError for a damaged one."""
        path = folder / CHECKPOINT_FILE
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                about = {name: json.loads(text) for name, text in file.metadata().items()}
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise ResumeError(f"{path} is damaged ({error}); delete it to start again, or give another --out") from error
        weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        optimizer: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, number, key = name.split(".")
                optimizer.setdefault(int(number), {})[key] = value
        return cls(path, weights, optimizer, about)

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Load the stored state into an optimizer, which keeps its own parameter groups."""
        optimizer.load_state_dict({"state": self.optimizer, "param_groups": optimizer.state_dict()["param_groups"]})


def write_checkpoint(
    folder: Path, weights: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, about: Mapping[str, Any]
) -> None:
    """Write the checkpoint of a folder; an interruption leaves the last one whole."""
    tensors = {f"model.{name}": value for name, value in weights.items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{number}.{key}": value for key, value in state.items()}
    draft = folder / "checkpoint.tmp"
    records = {name: json.dumps(record) for name, record in about.items()}
    save_file({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, draft, records)
    draft.replace(folder / CHECKPOINT_FILE)
