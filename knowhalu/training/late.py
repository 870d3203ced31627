"""Train the token encoder for late interaction: in-batch and hard negatives, and the measures of its retrieval."""

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from knowhalu.encoder.bert import load_bert
from knowhalu.encoder.device import mixed_precision
from knowhalu.encoder.embedder import LateInteractionBert, punctuation_ids, tokenize_texts
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer, padded_length_for
from knowhalu.errors import ResumeError
from knowhalu.index.late_part import maxsim, passage_text
from knowhalu.index.part import IndexPart
from knowhalu.index.passages import PassageList
from knowhalu.index.protocols import TokenEncoder
from knowhalu.io.fitted_files import weights_hash
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part
from knowhalu.training.checkpoint import Checkpoint, optimizer_step, run_steps, write_checkpoint
from knowhalu.training.data_files import read_training_rows
from knowhalu.types import Passage


class RetrievalQuestion(NamedTuple):
    """A query, the ids of relevant passages and of hard negatives, and all passages by id."""

    text: str
    right: list[str]
    wrong: list[str]
    passages: dict[str, str]


def read_corpus(path: Path) -> PassageList:
    """Read passages with `doc_id`, `text` and an optional `title`."""
    return PassageList(Passage(id=str(r["doc_id"]), text=r["text"], title=r.get("title") or "") for r in read_training_rows(path))


def mine_hard_negatives(rows: Iterable[dict[str, Any]], corpus: PassageList, *, depth: int = 20) -> list[RetrievalQuestion]:
    """Return every query with its relevant passages and, as hard negatives, the best `depth` others that BM25 finds."""
    known = {p.id: f"{p.title}. {p.text}" if p.title else p.text for p in corpus}
    questions = []
    with TemporaryDirectory() as folder:
        build_lexical_part(corpus, Path(folder) / "lexical", "")
        index = LexicalIndex([IndexPart(Path(folder) / "lexical", "lexical")], corpus)
        for row in rows:
            right = [str(name) for name in row["positives"] if str(name) in known]
            if right:
                wrong = [corpus[i].id for i, _ in index.rank(row["query"], depth) if corpus[i].id not in right]
                questions.append(RetrievalQuestion(row["query"], right, wrong, known))
    return questions


class RetrievalScores(NamedTuple):
    """Recall at 1 and at 10, and the mean reciprocal rank of the first relevant passage."""

    recall1: float
    recall10: float
    mrr: float


def score_rankings(rankings: Sequence[Sequence[str]], rows: Sequence[dict[str, Any]]) -> RetrievalScores:
    """Score rankings of passage ids; a relevant passage that a ranking lacks counts as missed."""
    ranks = []
    for ranking, row in zip(rankings, rows, strict=True):
        right = {str(name) for name in row["positives"]}
        ranks.append(next((rank for rank, name in enumerate(ranking, 1) if name in right), 0))
    count = max(1, len(ranks))
    return RetrievalScores(
        sum(rank == 1 for rank in ranks) / count,
        sum(1 <= rank <= 10 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
    )


def evaluate_retrieval(encoder: TokenEncoder, corpus: PassageList, rows: Sequence[dict[str, Any]]) -> RetrievalScores:
    """Rank all passages for every query by exact MaxSim, without an index."""
    queries = encoder.encode([row["query"] for row in rows], query=True)
    scores = np.zeros((len(rows), len(corpus)), dtype=np.float32)
    for start in range(0, len(corpus), 256):
        passages = encoder.encode([passage_text(p) for p in corpus[start : start + 256]])
        starts = np.cumsum([0, *map(len, passages)])[:-1]
        tokens = np.concatenate(passages)
        for i, query in enumerate(queries):
            scores[i, start : start + len(passages)] = maxsim(query, tokens, starts)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    return score_rankings([[corpus[j].id for j in row] for row in best.tolist()], rows)


@dataclass(frozen=True)
class LateSettings:
    """The settings that determine the result of a run; the projection and the top `layers` of the base are trained.

    The budget is `minutes` or, where that is 0, `steps`.
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
    """The progress of a run."""

    step: int = 0
    seconds: float = 0.0
    loss: float = math.nan

    def share(self, settings: LateSettings) -> float:
        """Return the used share of the budget, 0 to 1."""
        return min(1.0, self.seconds / (60 * settings.minutes) if settings.minutes else self.step / max(1, settings.steps))


def maxsim_scores(queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor) -> Tensor:
    """Return the mean of the best match of each query token: `(q, n, d)` against `(p, m, d)` gives `(q, p)`."""
    similar = torch.einsum("qnd,pmd->qpnm", queries, passages)
    best = similar.masked_fill(~passage_mask[None, :, None, :], -2.0).amax(-1)
    weights = query_mask.float()
    return (best * weights[:, None, :]).sum(-1) / weights.sum(-1)[:, None]


def contrastive_loss(scores: Tensor, relevance: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of one relevant passage a query; `relevance` `(q, p)` is 1 for it, -1 for other relevant ones."""
    logits = (scores / temperature).masked_fill(relevance < 0, -1e4)
    return F.cross_entropy(logits, relevance.argmax(1))


class LateTrainer:
    """One training run in a folder: `run()` starts it or resumes it.

    Each group of questions has its own passages; a batch comes from one group, drawn by its size.
    """

    def __init__(self, base: Path, groups: list[list[RetrievalQuestion]], folder: Path, settings: LateSettings) -> None:
        self.base, self.groups, self.folder, self.settings = base, groups, folder, settings
        questions = [(q.text, q.right, q.wrong, [q.passages[n] for n in (*q.right, *q.wrong)]) for group in groups for q in group]
        data = sha256(repr(questions).encode("utf-8", "replace")).hexdigest()[:16]
        self.started_from = {"base": weights_hash(base), "data": data}
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
        """Initialise the projection with the principal directions of token vectors ([CLS] and [SEP] left out)."""
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
        stream = self._batches(self.progress.step)
        run_steps(
            self.progress, lambda: self._step(next(stream)),
            done=lambda: self.progress.share(self.settings) >= 1.0, save=self.save, report=report, every=every,
        )  # fmt: skip
        return self.model.eval()

    def _batches(self, step: int) -> Iterator[list[RetrievalQuestion]]:
        """Yield batches without end; each depends on seed and step alone, so that a resumed run continues with the same ones."""
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
        right = [draw.choice(q.right) for q in batch]
        wrong = [n for q in batch for n in draw.sample(q.wrong, min(self.settings.hard, len(q.wrong)))]
        names = {name: column for column, name in enumerate(dict.fromkeys(right + wrong))}
        relevance = torch.zeros(len(batch), len(names))
        for i, (question, chosen) in enumerate(zip(batch, right, strict=True)):
            relevance[i, [names[n] for n in question.right if n in names]] = -1
            relevance[i, names[chosen]] = 1
        texts = {n: q.passages[n] for q in batch for n in (*q.right, *q.wrong)}
        queries = self._encoded([q.text for q in batch], query=True)
        scores = maxsim_scores(*queries, *self._encoded([texts[n] for n in names], query=False))
        loss = contrastive_loss(scores, relevance.to(self.device), self.settings.temperature)
        return optimizer_step(loss, self.model, self.optimizer)

    def _encoded(self, texts: list[str], *, query: bool) -> tuple[Tensor, Tensor]:
        """Return vectors `(texts, length, dimension)` and the mask of tokens that count; similar lengths share a batch."""
        words = self.vocabulary
        rows = tokenize_texts(words, texts, self.settings.tokens)
        shapes = [padded_length_for(len(row.ids)) for row in rows]
        parts, order = [], []
        for shape in sorted(set(shapes)):
            members = [i for i, padded in enumerate(shapes) if padded == shape]
            ids, mask, types = (t.to(self.device) for t in words.batch([rows[i] for i in members], shape))
            with mixed_precision(self.device):
                vectors = self.model(ids, mask, types).float()
            counts = mask.bool() if query else mask.bool() & ~torch.isin(ids, self.skipped)
            parts.append((F.pad(vectors, (0, 0, 0, max(shapes) - shape)), F.pad(counts, (0, max(shapes) - shape))))
            order += members
        back = torch.tensor(order).argsort()
        return torch.cat([v for v, _ in parts])[back], torch.cat([c for _, c in parts])[back]

    def save(self) -> None:
        """Write a checkpoint; an interruption leaves the last one whole."""
        weights = self.model.state_dict()
        about = {"settings": asdict(self.settings), "progress": asdict(self.progress), "started_from": self.started_from}
        write_checkpoint(self.folder, {name: weights[name] for name in self.changed}, self.optimizer, about)

    def _resume(self) -> None:
        checkpoint = Checkpoint.read(self.folder)
        if checkpoint is None:
            return
        path, about = checkpoint.path, checkpoint.about
        if about["settings"] != asdict(self.settings):
            raise ResumeError(
                f"{path} belongs to a run with settings {json.dumps(about['settings'])}; give the same, or another --out"
            )
        if about.get("started_from", {}) not in ({}, self.started_from):
            raise ResumeError(f"{path} belongs to a run from another base or on other questions; give the same, or another --out")
        self.model.load_state_dict(checkpoint.weights, strict=False)
        checkpoint.restore_optimizer(self.optimizer)
        self.progress = LateProgress(**about["progress"])
