"""The verifier as a backend: answers `Entail` and `TagSpans` in batches of like lengths; long sources are read in windows."""

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import torch

from knowhalu.encoder.bucketing import batch_by_length
from knowhalu.encoder.device import Precision, choose_device, in_one_thread, use_threads
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.encoder.spans import read_span_threshold, unsupported_spans, unsupported_word_probabilities
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer, Verifier
from knowhalu.errors import ModelError
from knowhalu.requests import Entail, EntailmentPair, Probabilities, TagSpans, UnsupportedSpan
from knowhalu.text.sentences import segments, windows

WINDOW_TOKENS = 256
"""Tokens that the verifier reads at once, as in its training; a longer source is read in windows."""
MAX_TOKENS, OVERLAP_TOKENS = 512, 32
"""Tokens that the verifier can read at all, and those that two parts of a longer window (a list of numbers, say) share."""
MAX_CLAIM_TOKENS = 160
"""Tokens of a claim that is read whole; a longer one is read piece by piece."""
MAX_CACHED_ROWS = 4096
"""Rows whose reading is kept for a while, some kilobyte each: what is marked was nearly always scored just before."""


class _WindowRow(NamedTuple):
    """One forward row: its tokens and the (pair, claim piece) that it is a window for."""

    tokens: EncodedPair
    pair: int
    piece: int


class _RowOutput(NamedTuple):
    """What a row says: the classes, and of every token of the claim how probably it is not borne out (none without a marker)."""

    scores: Probabilities
    marks: Sequence[float]


class EncoderBackend:
    """Answer `Entail` and `TagSpans` requests with a verifier from a local folder.

    Raises ModelError where the folder is missing or damaged.
    """

    @in_one_thread
    def __init__(
        self, folder: Path | None = None, *, precision: Precision = "auto", threads: int | None = None, tokens: int = 4096
    ) -> None:
        self.folder = folder or PACKAGED_VERIFIER
        if not (self.folder / "model.safetensors").exists():
            raise ModelError(
                f"no verifier in {self.folder}: reinstall knowhalu, or train one with scripts/train_verifier.py "
                "and name its folder by --set encoder.folder=FOLDER"
            )
        use_threads(threads)
        dtype, self.device = choose_device(precision, "auto")
        self.model = Verifier.load(self.folder, dtype).to(self.device)
        self.vocabulary = PairTokenizer.load(self.folder)
        self.border = read_span_threshold(self.folder)
        self.tokens = tokens
        self._read_lately: OrderedDict[bytes, _RowOutput] = OrderedDict()
        self._lock = Lock()

    def forget(self) -> None:
        """Let go of what was read lately."""
        with self._lock:
            self._read_lately.clear()

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[list[Any]]:
        """Answer all requests, each by `Probabilities` or by tuples of `UnsupportedSpan`; equal pairs are computed once."""
        asked, marked = ([r for r in requests if isinstance(r, kind)] for kind in (Entail, TagSpans))
        unique, doubted = (list(dict.fromkeys(p for r in some for p in r.pairs)) for some in (asked, marked))
        scores = dict(zip(unique, self.score(unique), strict=True))
        marks = dict(zip(doubted, self.mark(doubted), strict=True))
        return [[marks[p] if isinstance(r, TagSpans) else scores[p] for p in r.pairs] for r in requests]

    def score(self, pairs: Sequence[EntailmentPair]) -> list[Probabilities]:
        """Score pairs, in order.

        Of several windows of a source the best supporting one counts; of several pieces of a long claim the least supported.
        """
        work = self._work(pairs)
        best: dict[tuple[int, int], Probabilities] = {}
        for row, (score, _) in zip(work, self._read([w.tokens for w in work]), strict=True):
            key = (row.pair, row.piece)
            if key not in best or score.supported > best[key].supported:
                best[key] = score
        worst: dict[int, Probabilities] = {}
        for (pair, _), score in best.items():
            if pair not in worst or score.supported < worst[pair].supported:
                worst[pair] = score
        return [worst[i] for i in range(len(pairs))]

    def mark(self, pairs: Sequence[EntailmentPair]) -> list[tuple[UnsupportedSpan, ...]]:
        """Mark the words of each claim that its premise does not bear out, from the border of its folder on."""
        return [unsupported_spans(p.claim, d, self.border) if d else () for p, d in zip(pairs, self.doubts(pairs), strict=True)]

    def doubts(self, pairs: Sequence[EntailmentPair]) -> list[list[float]]:
        """Return for every word of each claim how probably the premise does not bear it out.

        Of several windows the best supporting one counts. The list is empty with weights that were trained without marks, and
        for a claim that is too long to be read whole.
        """
        whole = [i for i, ids in enumerate(self.vocabulary.pieces([p.claim for p in pairs])) if 0 < len(ids) <= MAX_CLAIM_TOKENS]
        found: list[list[float]] = [[] for _ in pairs]
        if self.model.marker is None or not whole:
            return found
        work = self._work([pairs[i] for i in whole])
        best: dict[int, _RowOutput] = {}
        for row, reading in zip(work, self._read([w.tokens for w in work]), strict=True):
            if row.pair not in best or reading.scores.supported > best[row.pair].scores.supported:
                best[row.pair] = reading
        for n, places in enumerate(self.vocabulary.places([pairs[i].claim for i in whole])):
            found[whole[n]] = unsupported_word_probabilities(pairs[whole[n]].claim, places, best[n].marks)
        return found

    def _work(self, pairs: Sequence[EntailmentPair]) -> list[_WindowRow]:
        """Cut pairs into rows that the model can read at once."""
        premises = self.vocabulary.pieces([p.premise for p in pairs])
        claims = self.vocabulary.pieces([p.claim for p in pairs])
        questions = self.vocabulary.pieces([p.question or "" for p in pairs])
        work: list[_WindowRow] = []
        for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
            pieces = [claim] if len(claim) <= MAX_CLAIM_TOKENS else self._pieces(pairs[i].claim)
            asked = question[:96] or None  # a longer question is background; its claim is always read whole
            views = [premise]
            if len(premise) + max(map(len, pieces)) + len(asked or ()) + 4 > WINDOW_TOKENS:
                views = self.vocabulary.pieces([w.text for w in windows(pairs[i].premise, 120, 40)])
            for number, piece in enumerate(pieces):
                room = MAX_TOKENS - len(piece) - len(asked or ()) - 4
                parts = [v[a : a + room] for v in views for a in range(0, max(1, len(v) - OVERLAP_TOKENS), room - OVERLAP_TOKENS)]
                work += [_WindowRow(self.vocabulary.join(part, piece, asked, MAX_TOKENS), i, number) for part in parts]
        return work

    def _pieces(self, claim: str) -> list[list[int]]:
        """Read a long claim segment by segment, and a segment without spaces in slices, so that nothing is left out."""
        found = self.vocabulary.pieces([s.text for s in segments(claim, 40)])
        return [ids[a : a + MAX_CLAIM_TOKENS] for ids in found for a in range(0, len(ids), MAX_CLAIM_TOKENS)]

    def _read(self, rows: list[EncodedPair]) -> list[_RowOutput]:
        """Read rows, in order; equal ones, and those that were read lately, are not computed again."""
        keys = [_row_key(row) for row in rows]
        with self._lock:
            found = {key: self._read_lately[key] for key in keys if key in self._read_lately}
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in found}
        found |= zip(missing, self._forward(list(missing.values())), strict=True)
        with self._lock:
            for key, reading in found.items():
                self._read_lately[key] = reading
                self._read_lately.move_to_end(key)
            while len(self._read_lately) > MAX_CACHED_ROWS:
                self._read_lately.popitem(last=False)
        return [found[key] for key in keys]

    def _forward(self, rows: list[EncodedPair]) -> list[_RowOutput]:
        """Compute rows, in order."""
        found: dict[int, _RowOutput] = {}
        for batch in batch_by_length([len(row.ids) for row in rows], self.tokens):
            found |= zip(batch.rows, self._compute([rows[i] for i in batch.rows], batch.length), strict=True)
        return [found[i] for i in range(len(rows))]

    @in_one_thread
    @torch.inference_mode()
    def _compute(self, rows: list[EncodedPair], length: int) -> list[_RowOutput]:
        tensors = [t.to(self.device) for t in self.vocabulary.batch(rows, length)]
        logits, doubts = self.model.marked(*tensors) if self.model.marker else (self.model(*tensors), None)
        scores = logits.float().softmax(-1).tolist()
        marks = [[]] * len(rows) if doubts is None else doubts.float().sigmoid().tolist()
        said = (array("f", values[row.said : len(row.ids) - 1]) for row, values in zip(rows, marks, strict=True))
        return [_RowOutput(Probabilities(*three), own) for three, own in zip(scores, said, strict=True)]


def _row_key(row: EncodedPair) -> bytes:
    return blake2b(array("i", [row.border, row.said, *row.ids]).tobytes(), digest_size=16).digest()
