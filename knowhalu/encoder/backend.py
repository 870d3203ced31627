"""The verifier as a backend: answers `Entail` and `TagSpans` in batches of similar lengths, and reads long sources in windows.

A row is always padded to the shape of its own length, so its result depends neither on its neighbours nor on its batch. There
are few shapes, since CPU kernels are prepared again for each new one.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import torch

from knowhalu.encoder.device import Precision, choose_device, in_one_thread, use_threads
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.encoder.score_cache import RecentlyUsed
from knowhalu.encoder.verifier import (
    EncodedPair,
    PairTokenizer,
    Verifier,
    read_span_threshold,
    unsupported_spans,
    unsupported_word_probabilities,
)
from knowhalu.errors import ModelError
from knowhalu.requests import Entail, EntailmentPair, Probabilities, TagSpans, UnsupportedSpan
from knowhalu.text.sentences import segments, windows

WINDOW_TOKENS = 256
"""Tokens of one forward row, as in the training; a longer source is read in windows."""
MAX_TOKENS, OVERLAP_TOKENS = 512, 32
"""The model's limit of tokens, and the overlap of two parts of a window that is longer (a list of numbers, for example)."""
MAX_CLAIM_TOKENS = 160
"""Tokens of a claim that is read whole; a longer one is read in pieces."""
MAX_QUESTION_TOKENS = 96
"""Tokens of a question that are read; the claim after it is always read whole."""
MAX_CACHED_ROWS = 4096
"""Rows whose output is cached, about a kilobyte each: a pair whose spans are tagged was nearly always scored just before."""
MIN_PADDED_LENGTH = 32
"""Shorter rows are padded to this length."""


class WindowRow(NamedTuple):
    """One forward row: its tokens, and the numbers of the pair and of the claim piece that it belongs to."""

    tokens: EncodedPair
    pair: int
    piece: int


class RowOutput(NamedTuple):
    """The output for a row: class probabilities, and for each token of the claim the probability that it is unsupported.

    `token_probabilities` are empty for weights without a span head.
    """

    scores: Probabilities
    token_probabilities: Sequence[float]


class EncoderBackend:
    """Answer `Entail` and `TagSpans` requests with a verifier from a local folder.

    Raises ModelError where the folder is missing or damaged.
    """

    max_claim_tokens = MAX_CLAIM_TOKENS

    @in_one_thread
    def __init__(
        self, folder: Path | None = None, *, precision: Precision = "auto", threads: int | None = None, tokens: int = 4096
    ) -> None:
        self.folder = folder or PACKAGED_VERIFIER
        if not (self.folder / "model.safetensors").exists():
            raise ModelError(
                f"no verifier in {self.folder}: reinstall knowhalu, or train one with scripts/train_verifier.py "
                "and name its folder by --set verifier=FOLDER"
            )
        use_threads(threads)
        dtype, self.device = choose_device(precision, "auto")
        self.model = Verifier.load(self.folder, dtype).to(self.device)
        self.vocabulary = PairTokenizer.load(self.folder)
        self.span_threshold = read_span_threshold(self.folder)
        self.tokens = tokens
        self._recent: RecentlyUsed[RowOutput] = RecentlyUsed()

    @property
    def tags_words(self) -> bool:
        """Tell whether the model gives a probability for each word of a claim."""
        return self.model.marker is not None

    def clear_cache(self) -> None:
        """Discard the outputs of recent rows."""
        self._recent.clear()

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[list[Any]]:
        """Answer all requests, each by `Probabilities` or by tuples of `UnsupportedSpan`; equal pairs are computed once."""
        scored, tagged = (
            list(dict.fromkeys(p for r in requests if isinstance(r, kind) for p in r.pairs)) for kind in (Entail, TagSpans)
        )
        scores = dict(zip(scored, self.score(scored), strict=True))
        spans = dict(zip(tagged, self.tag_spans(tagged), strict=True))
        return [[spans[p] if isinstance(r, TagSpans) else scores[p] for p in r.pairs] for r in requests]

    def score(self, pairs: Sequence[EntailmentPair]) -> list[Probabilities]:
        """Return the probabilities of pairs, in order.

        Of several windows of a source, the one with the highest P(supported) counts; of several pieces of a claim, the one with
        the lowest.
        """
        worst: dict[int, Probabilities] = {}
        for (pair, _), (score, _) in self._best_windows(pairs).items():
            if pair not in worst or score.supported < worst[pair].supported:
                worst[pair] = score
        return [worst[i] for i in range(len(pairs))]

    def tag_spans(self, pairs: Sequence[EntailmentPair]) -> list[tuple[UnsupportedSpan, ...]]:
        """Return the spans of each claim that its premise does not support, by the threshold of the verifier's folder."""
        words = self.unsupported_probabilities(pairs)
        return [unsupported_spans(p.claim, w, self.span_threshold) if w else () for p, w in zip(pairs, words, strict=True)]

    def unsupported_probabilities(self, pairs: Sequence[EntailmentPair]) -> list[list[float]]:
        """Return for each word of each claim the probability that the premise does not support it.

        Of several windows of a source, the one with the highest P(supported) counts. The list is empty for weights without a
        span head, and for a claim that is too long to be read whole.
        """
        lengths = [len(ids) for ids in self.vocabulary.pieces([p.claim for p in pairs])]
        whole = [i for i, length in enumerate(lengths) if 0 < length <= self.max_claim_tokens]
        probabilities: list[list[float]] = [[] for _ in pairs]
        if not self.tags_words or not whole:
            return probabilities
        best = self._best_windows([pairs[i] for i in whole])
        claims = [pairs[i].claim for i in whole]
        for n, (i, claim, offsets) in enumerate(zip(whole, claims, self.vocabulary.offsets(claims), strict=True)):
            probabilities[i] = unsupported_word_probabilities(claim, offsets, best[n, 0].token_probabilities)
        return probabilities

    def _best_windows(self, pairs: Sequence[EntailmentPair]) -> dict[tuple[int, int], RowOutput]:
        """Return the output for each pair and piece of its claim: that of the window with the highest P(supported)."""
        rows = self._window_rows(pairs)
        best: dict[tuple[int, int], RowOutput] = {}
        for row, output in zip(rows, self._read([r.tokens for r in rows]), strict=True):
            key = (row.pair, row.piece)
            if key not in best or output.scores.supported > best[key].scores.supported:
                best[key] = output
        return best

    def _window_rows(self, pairs: Sequence[EntailmentPair]) -> list[WindowRow]:
        """Split pairs into rows within the model's limit."""
        premises = self.vocabulary.pieces([p.premise for p in pairs])
        claims = self.vocabulary.pieces([p.claim for p in pairs])
        questions = self.vocabulary.pieces([p.question or "" for p in pairs])
        rows: list[WindowRow] = []
        for i, (premise, claim, question) in enumerate(zip(premises, claims, questions, strict=True)):
            pieces = [claim] if len(claim) <= MAX_CLAIM_TOKENS else self._claim_pieces(pairs[i].claim)
            question_ids = question[:MAX_QUESTION_TOKENS] or None
            views = [premise]
            if len(premise) + max(map(len, pieces)) + len(question_ids or ()) + 4 > WINDOW_TOKENS:
                views = self.vocabulary.pieces([w.text for w in windows(pairs[i].premise, 120, 40)])
            for number, piece in enumerate(pieces):
                room = MAX_TOKENS - len(piece) - len(question_ids or ()) - 4
                parts = [v[a : a + room] for v in views for a in range(0, max(1, len(v) - OVERLAP_TOKENS), room - OVERLAP_TOKENS)]
                rows += [WindowRow(self.vocabulary.join(part, piece, question_ids, MAX_TOKENS), i, number) for part in parts]
        return rows

    def _claim_pieces(self, claim: str) -> list[list[int]]:
        """Split a long claim into segments, and a segment without spaces into slices, so that no token is left out."""
        tokens = self.vocabulary.pieces([s.text for s in segments(claim, 40)])
        return [ids[a : a + MAX_CLAIM_TOKENS] for ids in tokens for a in range(0, len(ids), MAX_CLAIM_TOKENS)]

    def _read(self, rows: list[EncodedPair]) -> list[RowOutput]:
        """Return the outputs of rows, in order; equal and recent ones are not computed again."""
        keys = [_row_key(row) for row in rows]
        outputs = self._recent.look_up(keys)
        missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in outputs}
        outputs |= zip(missing, self._forward(list(missing.values())), strict=True)
        self._recent.store(outputs, MAX_CACHED_ROWS)
        return [outputs[key] for key in keys]

    def _forward(self, rows: list[EncodedPair]) -> list[RowOutput]:
        """Compute rows in batches; return their outputs in order."""
        outputs: dict[int, RowOutput] = {}
        for numbers, length in batch_by_length([len(row.ids) for row in rows], self.tokens):
            outputs |= zip(numbers, self._compute([rows[i] for i in numbers], length), strict=True)
        return [outputs[i] for i in range(len(rows))]

    @in_one_thread
    @torch.inference_mode()
    def _compute(self, rows: list[EncodedPair], length: int) -> list[RowOutput]:
        tensors = [t.to(self.device) for t in self.vocabulary.batch(rows, length)]
        logits, span_logits = self.model.with_span_logits(*tensors) if self.model.marker else (self.model(*tensors), None)
        scores = logits.float().softmax(-1).tolist()
        tokens = [[]] * len(rows) if span_logits is None else span_logits.float().sigmoid().tolist()
        claims = (array("f", values[row.claim_start : len(row.ids) - 1]) for row, values in zip(rows, tokens, strict=True))
        return [RowOutput(Probabilities(*three), claim) for three, claim in zip(scores, claims, strict=True)]


def _row_key(row: EncodedPair) -> bytes:
    return blake2b(array("i", [row.second_start, row.claim_start, *row.ids]).tobytes(), digest_size=16).digest()


class LengthBatch(NamedTuple):
    """The numbers of the rows of a batch, shortest first, and the length that they are padded to."""

    rows: list[int]
    length: int


def batch_by_length(lengths: Sequence[int], budget: int) -> Iterator[LengthBatch]:
    """Yield batches of at most `budget` tokens including padding; a row that is longer makes a batch of its own."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        groups[padded_length(lengths[i])].append(i)
    for length, rows in groups.items():
        size = max(1, budget // length)
        yield from (LengthBatch(rows[a : a + size], length) for a in range(0, len(rows), size))


def padded_length(length: int) -> int:
    """Return the shape of a length: at most an eighth longer, rounded up to a multiple of 8, 16 over 128, 32 over 256."""
    step = max(8, 1 << (length - 1).bit_length() >> 4)
    return max(MIN_PADDED_LENGTH, -(-length // step) * step)
