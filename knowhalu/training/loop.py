"""Train a verifier: mixed precision, AdamW, a budget in minutes or tokens, and exact resumption from a checkpoint."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from knowhalu.encoder.change import merge, read_change, write_change
from knowhalu.encoder.device import mixed_precision
from knowhalu.encoder.verifier import PairTokenizer, Verifier, load_for_training
from knowhalu.errors import ResumeError
from knowhalu.io.fitted_files import weights_hash
from knowhalu.training.batches import UNKNOWN_TARGET, TrainingBatch, prefetch, training_batches
from knowhalu.training.checkpoint import Checkpoint, optimizer_step, run_steps, write_checkpoint
from knowhalu.training.data_files import Leakage, hash_training_files
from knowhalu.training.examples import UNSUPPORTED
from knowhalu.training.recipes import Recipe, choose_recipes, locate_file

_LAYER = re.compile(r"encoder\.(?:.+\.)?layers?\.(\d+)\.")


@dataclass(frozen=True)
class TrainSettings:
    """The settings that determine the result of a run; the budget is `minutes` or `tokens`, and the other is 0.

    `marking` weights the token loss against the class loss. `unlicensed` adds the sets without a licence, `without` names recipes
    to leave out, `mined` lists files of mined examples, and `added` a user's files with their shares. `layers`, if not 0, keeps
    that many of the lower layers; `portion` is the share of the sources to train on, `vary` the probability of showing a row in
    another form, and `long` the share of long premises. `floor` is the share of the rate that remains at the end, and `rewarm`
    the share of the budget in which the rate rises again after continuing from a change. The rest configures the loss.
    """

    minutes: float = 0.0
    tokens: int = 0
    seed: int = 0
    rate: float = 1e-4
    warmup: float = 0.03
    weight_decay: float = 0.01
    dropout: float = 0.0
    freeze_words: bool = True
    marking: float = 0.5
    unlicensed: bool = False
    smoothing: float = 0.0
    focus: float = 0.0
    layer_decay: float = 1.0
    layers: int = 0
    portion: float = 1.0
    vary: float = 0.0
    long: float = 0.0
    floor: float = 0.05
    rewarm: float = 0.005
    without: tuple[str, ...] = ()
    mined: tuple[str, ...] = ()
    added: tuple[tuple[str, float], ...] = ()

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Return the recipes that are drawn from; raises InputError for an unknown name in `without`."""
        return choose_recipes(
            unlicensed=self.unlicensed, without=self.without, mined=self.mined, added=self.added, portion=self.portion
        )


@dataclass
class TrainProgress:
    """The progress of a run; `fresh` is the share of the budget at which it continued from a change with an empty optimizer."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    pool: int = 0
    index: int = 0
    loss: float = math.nan
    fresh: float = 0.0

    def share(self, settings: TrainSettings) -> float:
        """Return the used share of the budget, 0 to 1."""
        done = self.tokens / settings.tokens if settings.tokens else self.seconds / (60 * settings.minutes)
        return min(1.0, done)


def learning_rate(share: float, settings: TrainSettings, fresh: float = 0.0) -> float:
    """Return the rate: linear warm-up, linear decay to `floor`, and another, shorter warm-up from the share `fresh` on."""
    rate = settings.rate * (share - fresh + 1e-4) / settings.rewarm if fresh and settings.rewarm else math.inf
    if share < settings.warmup:
        return min(rate, settings.rate * max(share, 1e-4) / settings.warmup)
    return min(rate, settings.rate * max(settings.floor, (1 - share) / (1 - settings.warmup)))


def class_loss(
    logits: Tensor, targets: Tensor, soft: Tensor | None = None, *, smoothing: float = 0.0, focus: float = 0.0
) -> Tensor:
    """Return the cross-entropy; an UNSUPPORTED target is met by contradicted and neutral together.

    `smoothing` spreads that share of the target over all three classes; `focus` weights an example by (1 - p)^focus, where p is
    the probability of its target (focal loss, Lin et al. 2017). Where `soft` `(rows, 3)` is not NaN, half of the loss is the
    cross-entropy with those probabilities (distillation, Hinton et al. 2015).
    """
    logp = F.log_softmax(logits.float(), dim=-1)
    known = logp.gather(1, targets.clamp(max=2)[:, None]).squeeze(1)
    either = torch.logsumexp(logp[:, 1:], dim=-1)
    met = torch.where(targets == UNSUPPORTED, either, known)
    loss = -(1 - smoothing) * met - smoothing * logp.mean(-1)
    if focus:
        loss = loss * (1 - met.exp()).clamp(min=1e-6) ** focus  # at 0 a power below 1 has no slope
    if soft is not None:
        known_view = ~soft[:, 0].isnan()
        view = -(soft.nan_to_num() * logp).sum(-1)
        loss = torch.where(known_view, 0.5 * (loss + view), loss)
    return loss.mean()


def span_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the binary cross-entropy over the labelled tokens; 0 where there is none."""
    known = targets != UNKNOWN_TARGET
    each = F.binary_cross_entropy_with_logits(logits.float(), targets.clamp(min=0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=1)


def parameter_groups(model: nn.Module, *, rate: float, weight_decay: float, layer_decay: float) -> list[dict[str, object]]:
    """Group the trained weights for an optimizer: vectors are not decayed, and lower layers have smaller rates.

    The rate of each layer is `layer_decay` times that of the layer above it; the heads have the full rate.
    """
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    top = max((int(m.group(1)) for n, _ in named if (m := _LAYER.match(n))), default=-1)
    kinds: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, weight in named:
        factor = layer_decay ** _depth(name, top)
        kinds.setdefault((factor, weight_decay if weight.ndim > 1 else 0.0), []).append(weight)
    return [{"params": p, "weight_decay": d, "factor": f, "lr": rate * f} for (f, d), p in kinds.items()]


def _depth(name: str, top: int) -> int:
    """Return the number of layers above a weight: 0 for the heads, 1 for the top layer, all and one for the embeddings."""
    if match := _LAYER.match(name):
        return top - int(match.group(1)) + 1
    return top + 2 if name.startswith("encoder.") else 0


class Trainer:
    """One training run in a folder: `run()` starts it or resumes it.

    `checkpoint.safetensors` holds its whole state, from which it resumes exactly. With a `rank`, `change.safetensors` holds the
    difference of the weights from the base and the position in the data; `continue_from` names such a file, from which another
    machine continues, `weights_from` one whose weights a new run with other data or settings begins with.
    """

    def __init__(
        self, base: Path, data: Path, folder: Path, settings: TrainSettings, leakage: Leakage | None = None, *,
        rank: int = 0, continue_from: Path | None = None, weights_from: Path | None = None,
    ) -> None:  # fmt: skip
        self.base, self.rank, self.data, self.folder = base, rank, data, folder
        self.settings, self.leakage, self.recipes = settings, leakage, settings.recipes
        self.started_from = {
            "base": weights_hash(base),
            "data": hash_training_files({locate_file(f, data) for r in self.recipes for f in (r.file, *r.texts)}),
            "leave_out": leakage.seal if leakage else "",
            "mixture": sha256(repr([(r.name, r.sets, r.share, r.portion) for r in self.recipes]).encode()).hexdigest()[:16],
        }
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(settings.seed)
        self.vocabulary = PairTokenizer.load(base)
        self.model = load_for_training(base, settings.dropout).to(self.device).train()
        if settings.layers:
            self.model.encoder.keep_layers(settings.layers)
        self.model.encoder.words.weight.requires_grad_(not settings.freeze_words)
        weights = parameter_groups(
            self.model, rate=settings.rate, weight_decay=settings.weight_decay, layer_decay=settings.layer_decay
        )
        self.optimizer = torch.optim.AdamW(weights, lr=settings.rate, fused=True)
        self.progress = TrainProgress()
        folder.mkdir(parents=True, exist_ok=True)
        if self._resume():
            return
        if continue_from is not None:
            self._continue_from(continue_from)
        elif weights_from is not None:
            self.model.load_state_dict(merge(base, weights_from).state_dict())

    def run(self, report: Callable[[TrainProgress], None], *, every: float = 300.0, changes: float = 1200.0) -> Verifier:
        """Train until the budget is used, writing a checkpoint every `every` seconds and a change every `changes` seconds."""
        p, s = self.progress, self.settings
        batches = training_batches(
            self.data, self.vocabulary, s.seed,
            start=(p.pool, p.index), recipes=self.recipes, leakage=self.leakage, vary=s.vary, long=s.long,
        )  # fmt: skip
        with closing(prefetch(batches)) as stream:

            def step() -> float:
                batch = next(stream)
                loss = self._step(batch)
                p.tokens, p.pool, p.index = p.tokens + batch.tokens, batch.pool, batch.number + 1
                return loss

            written = p.seconds

            def save() -> None:
                nonlocal written
                self.save()
                if self.rank and (p.seconds - written >= changes or p.share(s) >= 1.0):
                    self.save_change(self.folder / "change.safetensors")
                    written = p.seconds

            run_steps(p, step, done=lambda: p.share(s) >= 1.0, save=save, report=report, every=every)
        return self.model.eval()

    def _step(self, batch: TrainingBatch) -> float:
        torch.manual_seed(self.settings.seed * 1_000_003 + self.progress.step)  # so that dropout is the same after a resume
        rate = learning_rate(self.progress.share(self.settings), self.settings, self.progress.fresh)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        ids, mask, types, targets, wrong, soft = (t.to(self.device) for t in batch[:6])
        with mixed_precision(self.device):
            logits, marks = self.model.with_span_logits(ids, mask, types)
        s = self.settings
        loss = class_loss(logits, targets, soft, smoothing=s.smoothing, focus=s.focus) + s.marking * span_loss(marks, wrong)
        return optimizer_step(loss, self.model, self.optimizer)

    def save(self) -> None:
        """Write a checkpoint; an interruption leaves the last one whole."""
        write_checkpoint(self.folder, self.model.state_dict(), self.optimizer, self._about())

    def save_change(self, path: Path) -> None:
        """Write the difference of the weights from the base, with the position in the data."""
        write_change(path, self.model, self.base, rank=self.rank, about=self._about())

    def _about(self) -> dict[str, Any]:
        return {"settings": asdict(self.settings), "progress": asdict(self.progress), "started_from": self.started_from}

    def _continue_from(self, path: Path) -> None:
        """Take weights and position from a change; the optimizer starts empty, and the budget may differ."""
        about = read_change(path).about
        if "progress" not in about:
            raise ResumeError(f"{path} has no record of its run; give the change.safetensors of a run")
        self._refuse_other_run(path, about, free=("minutes", "tokens"))
        self.model.load_state_dict(merge(self.base, path).state_dict())
        self.progress = TrainProgress(**about["progress"])
        self.progress.fresh = self.progress.share(self.settings)

    def _resume(self) -> bool:
        """Load the checkpoint of the folder; returns False where there is none."""
        checkpoint = Checkpoint.read(self.folder)
        if checkpoint is None:
            return False
        self._refuse_other_run(checkpoint.path, checkpoint.about)
        self.model.load_state_dict(checkpoint.weights)
        checkpoint.restore_optimizer(self.optimizer)
        self.progress = TrainProgress(**checkpoint.about["progress"])
        return True

    def _refuse_other_run(self, path: Path, about: Mapping[str, Any], free: Sequence[str] = ()) -> None:
        """Raise ResumeError where a file belongs to a run with other settings (except those in `free`), data or base."""
        mine, theirs = json.loads(json.dumps([asdict(self.settings), {**asdict(TrainSettings()), **about["settings"]}]))
        if any(mine.get(name) != theirs[name] for name in theirs if name not in free):
            raise ResumeError(
                f"{path} belongs to a run with settings {json.dumps(about['settings'])}; give the same, or another --out"
            )
        for name, value in about.get("started_from", {}).items():
            if value != self.started_from[name]:
                difference = "mixture of recipes" if name == "mixture" else f"--{name.replace('_', '-')}"
                raise ResumeError(f"{path} belongs to a run with another {difference}; give the same, or another --out")
