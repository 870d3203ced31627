"""What training runs share: the loop over steps, a checkpoint file from which a run resumes exactly, and the mean of weights."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from knowhalu.encoder.verifier import Verifier
from knowhalu.errors import InputError, KnowHaluError, ResumeError

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


def optimizer_step(loss: Tensor, model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Take one optimizer step with the gradient clipped to norm 1, and return the loss.

    Raises KnowHaluError, before a weight has moved, where the loss or its gradient is not finite.
    """
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    if not torch.isfinite(loss) or not torch.isfinite(norm):
        raise KnowHaluError("the training has diverged: its loss or gradient is not finite; start again with a lower --rate")
    optimizer.step()
    return float(loss.detach())


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


def average_weights(folders: Sequence[Path], shares: Sequence[float] = ()) -> Verifier:
    """Return the verifier whose weights are the mean of those of `folders`, weighted by `shares` or equally.

    Raises InputError where fewer than two are given, their shapes differ, or the shares do not fit.
    """
    if len(folders) < 2:
        raise InputError("a mean needs the folders of at least two verifiers")
    weights = list(shares) or [1.0] * len(folders)
    if len(weights) != len(folders) or min(weights) < 0 or sum(weights) <= 0:
        raise InputError(f"{len(folders)} verifiers need {len(folders)} shares of 0 or more, not {list(shares)}")
    models = [Verifier.load(folder) for folder in folders]
    shapes = [{k: v.shape for k, v in m.state_dict().items()} for m in models]
    for folder, shape in zip(folders, shapes, strict=True):
        if shape != shapes[0]:
            raise InputError(f"{folder}: its shape differs from that of {folders[0]}; average verifiers of one shape")
    states = [m.state_dict() for m in models]
    parts = [w / sum(weights) for w in weights]
    mean = {k: sum((p * s[k] for p, s in zip(parts, states, strict=True)), torch.zeros_like(v)) for k, v in states[0].items()}
    models[0].load_state_dict(mean)
    return models[0]
