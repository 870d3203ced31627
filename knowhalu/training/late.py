"""Training the token encoder for late interaction: in-batch negatives and hard ones, a budget in minutes, exact resume."""

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from knowhalu.encoder.bert import load_bert
from knowhalu.encoder.device import mixed_precision
from knowhalu.encoder.late_encoder import LateInteractionBert, punctuation_ids
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer, padded_length_for
from knowhalu.errors import ResumeError
from knowhalu.io.fitted_files import weights_hash
from knowhalu.training.late_data import RetrievalQuestion
from knowhalu.training.loop import run_steps
from knowhalu.training.loss import optimizer_step


@dataclass(frozen=True)
class LateSettings:
    """What decides the result of a run; `layers` of the base, counted from the top, are trained beside the projection.

    The budget is `minutes`, or where that is 0, `steps`.
    """

    minutes: float = 0.0
    steps: int = 0
    seed: int = 0
    rate: float = 2e-4
    layers: int = 2
    dimension: int = 128
    batch: int = 32
    hard: int = 1
    temperature: float = 0.05
    tokens: int = 192


@dataclass
class LateProgress:
    """Where a run stands."""

    step: int = 0
    seconds: float = 0.0
    loss: float = math.nan

    def share(self, settings: LateSettings) -> float:
        """Return the share of the budget that is used, 0 to 1."""
        return min(1.0, self.seconds / (60 * settings.minutes) if settings.minutes else self.step / max(1, settings.steps))


def maxsim_scores(queries: Tensor, counted: Tensor, passages: Tensor, kept: Tensor) -> Tensor:
    """Return the mean best match of the query tokens: `(q, n, d)` against `(p, m, d)` gives `(q, p)`."""
    similar = torch.einsum("qnd,pmd->qpnm", queries, passages)
    best = similar.masked_fill(~kept[None, :, None, :], -2.0).amax(-1)
    weights = counted.float()
    return (best * weights[:, None, :]).sum(-1) / weights.sum(-1)[:, None]


def contrastive_loss(found: Tensor, own: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of one right passage for each query; `own` `(q, p)` is 1 for it, -1 for others that are right too."""
    logits = (found / temperature).masked_fill(own < 0, -1e4)
    return F.cross_entropy(logits, own.argmax(1))


class LateTrainer:
    """One training run in a folder: `run()` starts it, or goes on where it stopped.

    Each group of questions has passages of its own; a batch comes from one group, drawn by its size.
    """

    def __init__(self, base: Path, groups: list[list[RetrievalQuestion]], folder: Path, settings: LateSettings) -> None:
        self.base, self.groups, self.folder, self.settings = base, groups, folder, settings
        asked = [(q.text, q.right, q.wrong, [q.passages[n] for n in (*q.right, *q.wrong)]) for group in groups for q in group]
        self.started_from = {"base": weights_hash(base), "data": sha256(repr(asked).encode("utf-8", "replace")).hexdigest()[:16]}
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(settings.seed)
        self.vocabulary = PairTokenizer.load(base)
        self.skipped = torch.tensor(sorted(punctuation_ids(self.vocabulary)), device=self.device)
        self.model = LateInteractionBert(load_bert(base), settings.dimension).to(self.device).train()
        self._start_projection()
        first = len(self.model.bert.layers) - settings.layers
        tops = tuple(f"bert.layers.{i}." for i in range(first, len(self.model.bert.layers)))
        self.changed = [n for n, _ in self.model.named_parameters() if n == "projection.weight" or n.startswith(tops)]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name in self.changed)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(parameters, lr=settings.rate, weight_decay=0.01)
        self.progress = LateProgress()
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()

    def _start_projection(self) -> None:
        """Begin with the main directions of real token vectors, which keep their cosines best (no [CLS], [SEP] among them)."""
        texts = [q.passages[q.right[0]] for group in self.groups for q in group[:: max(1, len(group) // 64)]]
        words = self.vocabulary
        rows = [EncodedPair(ids[:64], min(64, len(ids))) for ids in words.pieces(texts[:256]) if ids]
        ids, mask, types = (t.to(self.device) for t in words.batch(rows, 64))
        with torch.no_grad():
            states = self.model.bert(ids, mask, types)[mask.bool()]
            _, _, directions = torch.linalg.svd(states - states.mean(0), full_matrices=False)
            if len(directions) >= self.settings.dimension:
                self.model.projection.weight.copy_(directions[: self.settings.dimension])

    def run(self, report: Callable[[LateProgress], None], *, every: float = 120.0) -> LateInteractionBert:
        """Train until the budget is used, writing a checkpoint every `every` seconds; returns the model."""
        p = self.progress
        stream = self._batches(p.step)
        run_steps(
            p,
            lambda: self._step(next(stream)),
            done=lambda: p.share(self.settings) >= 1.0,
            save=self.save,
            report=report,
            every=every,
        )
        return self.model.eval()

    def _batches(self, step: int) -> Iterator[list[RetrievalQuestion]]:
        """Yield batches without end; what comes at a step depends on seed and step alone, so that a resumed run agrees."""
        sizes = [len(group) for group in self.groups]
        while True:
            draw = random.Random(self.settings.seed * 1_000_003 + step)
            group = draw.choices(self.groups, sizes)[0]
            yield draw.sample(group, min(self.settings.batch, len(group)))
            step += 1

    def _step(self, batch: list[RetrievalQuestion]) -> float:
        draw = random.Random(self.settings.seed * 1_000_003 + self.progress.step + 7)
        rate = self.settings.rate * min(1.0, (self.progress.step + 1) / 20) * max(0.05, 1 - self.progress.share(self.settings))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        names: dict[str, int] = {}
        right = [draw.choice(q.right) for q in batch]
        for name in [*right, *(n for q in batch for n in draw.sample(q.wrong, min(self.settings.hard, len(q.wrong))))]:
            names.setdefault(name, len(names))
        own = torch.zeros(len(batch), len(names))
        for i, (question, chosen) in enumerate(zip(batch, right, strict=True)):
            for name in question.right:
                if name in names:
                    own[i, names[name]] = -1
            own[i, names[chosen]] = 1
        texts = {n: q.passages[n] for q in batch for n in (*q.right, *q.wrong)}
        found = self._scores([q.text for q in batch], [texts[n] for n in names])
        loss = contrastive_loss(found, own.to(self.device), self.settings.temperature)
        return optimizer_step(loss, self.model, self.optimizer)

    def _scores(self, queries: list[str], passages: list[str]) -> Tensor:
        return maxsim_scores(*self._encoded(queries, query=True), *self._encoded(passages, query=False))

    def _encoded(self, texts: list[str], *, query: bool) -> tuple[Tensor, Tensor]:
        """Return the vectors `(texts, length, dimension)` and which count; texts of like length run together, to pad little."""
        words = self.vocabulary
        rows = [[words.cls, *ids[: self.settings.tokens - 2], words.sep] for ids in words.pieces(texts)]
        longest = padded_length_for(max(map(len, rows)))
        parts, order = [], []
        for shape in sorted({padded_length_for(len(row)) for row in rows}):
            members = [i for i, row in enumerate(rows) if padded_length_for(len(row)) == shape]
            ids, mask, types = (
                t.to(self.device) for t in words.batch([EncodedPair(rows[i], len(rows[i])) for i in members], shape)
            )
            with mixed_precision(self.device):
                vectors = self.model(ids, mask, types).float()
            counts = mask.bool() if query else mask.bool() & ~torch.isin(ids, self.skipped)
            parts.append((F.pad(vectors, (0, 0, 0, longest - shape)), F.pad(counts, (0, longest - shape))))
            order += members
        back = torch.tensor(order).argsort()
        return torch.cat([v for v, _ in parts])[back], torch.cat([c for _, c in parts])[back]

    def save(self) -> None:
        """Write a checkpoint; the last one stays whole if this is interrupted."""
        weights = self.model.state_dict()
        tensors = {f"model.{n}": weights[n] for n in self.changed}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{k}": v for k, v in state.items()}
        draft = self.folder / "checkpoint.tmp"
        parts = {"settings": asdict(self.settings), "progress": asdict(self.progress), "started_from": self.started_from}
        about = {name: json.dumps(part) for name, part in parts.items()}
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, draft, about)
        draft.replace(self.folder / "checkpoint.safetensors")

    def _resume(self) -> None:
        path = self.folder / "checkpoint.safetensors"
        if not path.exists():
            return
        try:
            with safe_open(path, "pt") as file:
                about = file.metadata()
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise ResumeError(f"{path} is damaged ({error}); delete it to start anew, or give another --out") from error
        if json.loads(about["settings"]) != asdict(self.settings):
            raise ResumeError(f"{path} belongs to a run with settings {about['settings']}; give the same, or another --out")
        if json.loads(about.get("started_from", "{}")) not in ({}, self.started_from):
            raise ResumeError(f"{path} belongs to a run from another base or on other questions; give the same, or another --out")
        self.model.load_state_dict(
            {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}, strict=False
        )
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, number, name = key.split(".")
                state.setdefault(int(number), {})[name] = value
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})
        self.progress = LateProgress(**json.loads(about["progress"]))
