"""The verifier as a backend: answers `Entail` and `Mark` in batches of like lengths; long sources are read in windows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from knowhalu.encoder.batches import batches
from knowhalu.encoder.device import Precision, choose
from knowhalu.encoder.marking import doubtful, word_doubts
from knowhalu.encoder.verifier import Tokens, Verifier, Vocabulary
from knowhalu.errors import ModelError
from knowhalu.steps import Doubtful, Entail, Hypothesis, Mark, Probabilities
from knowhalu.text import segments, windows

PACKAGED = Path(__file__).parent.parent / "models" / "verifier"
READS = 256
"""Tokens that the verifier reads at once, as in its training; a longer source is read in windows."""
CLAIM = 160
"""Tokens of a claim that is read whole; a longer one is read piece by piece."""


class _Work(NamedTuple):
    """One forward row: its tokens and the (pair, claim piece) that it is a window for."""

    tokens: Tokens
    pair: int
    piece: int


class EncoderBackend:
    """Answer `Entail` and `Mark` requests with a verifier from a local folder.

    Raises ModelError where the folder is missing or damaged.
    """

    def __init__(
        self, folder: Path | None = None, *, precision: Precision = "auto", threads: int | None = None, tokens: int = 4096
    ) -> None:
        self.folder = folder or PACKAGED
        if not (self.folder / "model.safetensors").exists():
            raise ModelError(
                f"no verifier in {self.folder}: reinstall knowhalu, or train one with scripts/train_verifier.py "
                "and name its folder by --set encoder.folder=FOLDER"
            )
        torch.set_num_threads(threads or os.cpu_count() or 1)
        dtype, self.device = choose(precision, "auto")
        self.model = Verifier.load(self.folder, dtype).to(self.device)
        self.vocabulary = Vocabulary.load(self.folder)
        self.tokens = tokens

    def answer_many(self, requests: Sequence[Entail | Mark]) -> list[list[Any]]:
        """Answer all requests together, each by `Probabilities` or by tuples of `Doubtful`; equal pairs are computed once."""
        asked, marked = ([r for r in requests if isinstance(r, kind)] for kind in (Entail, Mark))
        unique, doubted = (list(dict.fromkeys(p for r in some for p in r.pairs)) for some in (asked, marked))
        scores = dict(zip(unique, self.score(unique), strict=True))
        marks = dict(zip(doubted, self.mark(doubted), strict=True))
        return [[marks[p] if isinstance(r, Mark) else scores[p] for p in r.pairs] for r in requests]

    def score(self, pairs: Sequence[Hypothesis]) -> list[Probabilities]:
        """Score pairs, in order.

        Of several windows of a source the best supporting one counts; of several pieces of a long claim the least supported.
        """
        work = self._work(pairs)
        scores = self._forward([w.tokens for w in work])
        best: dict[tuple[int, int], Probabilities] = {}
        for row, score in zip(work, scores, strict=True):
            key = (row.pair, row.piece)
            if key not in best or score.supported > best[key].supported:
                best[key] = score
        worst: dict[int, Probabilities] = {}
        for (pair, _), score in best.items():
            if pair not in worst or score.supported < worst[pair].supported:
                worst[pair] = score
        return [worst[i] for i in range(len(pairs))]

    def mark(self, pairs: Sequence[Hypothesis]) -> list[tuple[Doubtful, ...]]:
        """Mark the words of each claim that its premise does not bear out, from `DOUBTED` on."""
        return [doubtful(p.claim, d) if d else () for p, d in zip(pairs, self.doubts(pairs), strict=True)]

    def doubts(self, pairs: Sequence[Hypothesis]) -> list[list[float]]:
        """Return for every word of each claim how probably the premise does not bear it out.

        Of several windows the best supporting one counts. The list is empty with weights that were trained without marks, and
        for a claim that is too long to be read whole.
        """
        whole = [i for i, ids in enumerate(self.vocabulary.pieces([p.claim for p in pairs])) if 0 < len(ids) <= CLAIM]
        found: list[list[float]] = [[] for _ in pairs]
        if self.model.marker is None or not whole:
            return found
        work = self._work([pairs[i] for i in whole])
        best: dict[int, tuple[float, list[float]]] = {}
        for row, (supported, marks) in zip(work, self._marked([w.tokens for w in work]), strict=True):
            if row.pair not in best or supported > best[row.pair][0]:
                best[row.pair] = supported, marks
        for n, places in enumerate(self.vocabulary.places([pairs[i].claim for i in whole])):
            found[whole[n]] = word_doubts(pairs[whole[n]].claim, places, best[n][1])
        return found

    def _work(self, pairs: Sequence[Hypothesis]) -> list[_Work]:
        """Cut pairs into rows that the model can read at once."""
        premises = self.vocabulary.pieces([p.premise for p in pairs])
        claims = self.vocabulary.pieces([p.claim for p in pairs])
        questions = self.vocabulary.pieces([p.question or "" for p in pairs])
        work: list[_Work] = []
        for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
            pieces = [claim] if len(claim) <= CLAIM else self._pieces(pairs[i].claim)
            asked = question[:96] or None  # a longer question is background; its claim is always read whole
            views = [premise]
            if len(premise) + max(map(len, pieces)) + len(asked or ()) + 4 > READS:
                views = self.vocabulary.pieces([w.text for w in windows(pairs[i].premise, 120, 40)])
            for number, piece in enumerate(pieces):
                work += [_Work(self.vocabulary.join(v, piece, asked, 512), i, number) for v in views]
        return work

    def _pieces(self, claim: str) -> list[list[int]]:
        """Read a long claim segment by segment, and a segment without spaces in slices, so that nothing is left out."""
        found = self.vocabulary.pieces([s.text for s in segments(claim, 40)])
        return [ids[a : a + CLAIM] for ids in found for a in range(0, len(ids), CLAIM)]

    @torch.inference_mode()
    def _forward(self, rows: list[Tokens]) -> list[Probabilities]:
        """Score rows, in order; equal ones are computed once."""
        unique = {(tuple(row.ids), row.border): row for row in rows}
        distinct = list(unique.values())
        found: dict[tuple[tuple[int, ...], int], Probabilities] = {}
        keys = list(unique)
        for batch in batches([len(row.ids) for row in distinct], self.tokens):
            tensors = (t.to(self.device) for t in self.vocabulary.batch([distinct[i] for i in batch.rows], batch.length))
            logits = self.model(*tensors).float()
            for i, scores in zip(batch.rows, logits.softmax(-1).tolist(), strict=True):
                found[keys[i]] = Probabilities(*scores)
        return [found[tuple(row.ids), row.border] for row in rows]

    @torch.inference_mode()
    def _marked(self, rows: list[Tokens]) -> list[tuple[float, list[float]]]:
        """Return P(supported) and P(not borne out) of every token of the claim, for each row."""
        found: list[tuple[float, list[float]]] = [(0.0, [])] * len(rows)
        for batch in batches([len(row.ids) for row in rows], self.tokens):
            tensors = (t.to(self.device) for t in self.vocabulary.batch([rows[i] for i in batch.rows], batch.length))
            logits, marks = self.model.marked(*tensors)
            supported, doubts = logits.float().softmax(-1)[:, 0].tolist(), marks.float().sigmoid().tolist()
            for i, p, values in zip(batch.rows, supported, doubts, strict=True):
                found[i] = p, values[rows[i].said : len(rows[i].ids) - 1]
        return found
