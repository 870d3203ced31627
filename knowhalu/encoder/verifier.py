"""The verifier: a cross-encoder for (source, claim) with P(supported), P(contradicted) and P(not enough information).

The input is `[CLS] source [SEP] claim [SEP]`, or with a question `[CLS] source [SEP] question [SEP] answer [SEP]`, with the names
that the encoder's tokenizer has for these tokens; all tokens after the source have token type 1, where the encoder has types. The
classifier reads the first token vector and the mean of all.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from knowhalu.encoder.adapters import PretrainedEncoder, empty_pretrained, load_pretrained
from knowhalu.encoder.bert import Bert, BertShape, is_plain_bert, load_bert
from knowhalu.encoder.mpnet import MPNet, is_plain_mpnet
from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import check_fitted_weights, fitted_folder
from knowhalu.requests import UnsupportedSpan
from knowhalu.text.sentences import words

CLASSES = ("supported", "contradicted", "neutral")
PADDED_LENGTHS = (32, 48, 64, 96, 128, 192, 256, 384, 512)
"""The padded lengths in use: a fixed set, since CPU kernels are prepared again for each new shape."""
SPECIAL = {"[CLS]": ("[SEP]", "[PAD]"), "<s>": ("</s>", "<pad>")}
"""The separator and the padding of a tokenizer, by the name of its first token."""
DEFAULT_THRESHOLD = 0.5
"""Probability from which a word is unsupported where no threshold was fitted."""


class EncodedPair(NamedTuple):
    """Token ids of one pair, the position after the source, and that of the claim, which follows a question."""

    ids: list[int]
    second_start: int
    claim_start: int = 0


@dataclass(frozen=True)
class PairTokenizer:
    """A tokenizer and its special tokens; `unknown` replaces the names of special tokens in a text."""

    tokenizer: Tokenizer
    cls: int
    sep: int
    pad: int
    unknown: int | None = None

    @classmethod
    def load(cls, folder: Path) -> "PairTokenizer":
        """Load `tokenizer.json` from a folder; raises ModelError where it is missing or of another kind."""
        path = folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            raise ModelError(f"{path}: cannot read the tokenizer ({error})") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is a word there, never a separator
        first = next(iter(tokenizer.encode("").tokens), "[CLS]")  # the token that the tokenizer puts before a text
        names = (first, *SPECIAL.get(first, ()))
        ids = [i for t in names if (i := tokenizer.token_to_id(t)) is not None]
        if len(ids) != 3:
            raise ModelError(f"{path}: no [CLS], [SEP] or [PAD] token, nor <s>, </s> and <pad>; another tokenizer is needed")
        unknown = [i for t in ("[UNK]", "<unk>") if (i := tokenizer.token_to_id(t)) is not None]
        return cls(tokenizer, ids[0], ids[1], ids[2], unknown[0] if unknown else None)

    def pieces(self, texts: list[str]) -> list[list[int]]:
        """Return the token ids of texts, without special tokens."""
        return [self._plain(e.ids) for e in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _plain(self, ids: list[int]) -> list[int]:
        """Replace special tokens, which a unigram tokenizer makes of their names in a text."""
        special = (self.cls, self.sep, self.pad)
        if self.unknown is None or not any(i in ids for i in special):
            return ids
        return [self.unknown if i in special else i for i in ids]

    def offsets(self, texts: list[str]) -> list[list[tuple[int, int]]]:
        """Return the offsets `(start, end)` in characters of each token of `pieces`."""
        return [e.offsets for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def join(self, premise: list[int], claim: list[int], question: list[int] | None, limit: int) -> EncodedPair:
        """Build one input of at most `limit` tokens by truncating the premise.

        Raises ValueError where question and claim alone exceed the limit.
        """
        tail = [*(question + [self.sep] if question else []), *claim, self.sep]
        room = limit - len(tail) - 2
        if room < 0:
            raise ValueError(f"the claim has {len(tail)} tokens, over the limit of {limit - 2} tokens of the verifier")
        head = [self.cls, *premise[:room], self.sep]
        return EncodedPair(head + tail, len(head), len(head) + len(tail) - len(claim) - 1)

    def batch(self, rows: list[EncodedPair], length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Pad rows to one length: ids, mask and token types, each `(rows, length)`."""
        return pad_pairs(rows, length, self.pad)


def pad_pairs(rows: Sequence[EncodedPair], length: int, pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pad rows to one length: ids, mask and token types, each `(rows, length)`."""
    ids = torch.full((len(rows), length), pad)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, row in enumerate(rows):
        size = len(row.ids)
        ids[i, :size] = torch.tensor(row.ids)
        mask[i, :size] = 1
        types[i, row.second_start : size] = 1
    return ids, mask, types


def padded_length_for(length: int) -> int:
    """Return the smallest fixed shape that holds `length` tokens."""
    return next(s for s in PADDED_LENGTHS if s >= length)


class Verifier(nn.Module):
    """Score pairs: token tensors `(batch, length)` -> logits `(batch, 3)` in the order of `CLASSES`.

    The span head `marker` gives for each token the log-odds that the source does not support it. Weights that were trained
    without span labels have none.
    """

    def __init__(self, encoder: Bert | MPNet | PretrainedEncoder, *, marks: bool = True) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(2 * encoder.hidden_size, len(CLASSES))
        self.marker = nn.Linear(encoder.hidden_size, 1) if marks else None
        self.register_load_state_dict_pre_hook(_with_new_names)  # type: ignore[no-untyped-call]

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return class logits `(batch, 3)`."""
        return self._classes(self.encoder(ids, mask, types), mask)

    def with_span_logits(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
        """Return class logits `(batch, 3)` and span logits `(batch, length)`; raises ModelError without a span head."""
        if self.marker is None:
            raise ModelError(
                "this verifier was trained without span labels. Continue its training with scripts/train_verifier.py"
            )
        states = self.encoder(ids, mask, types)
        return self._classes(states, mask), self.marker(states).squeeze(-1)

    def _classes(self, states: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(states.dtype)[:, :, None]
        mean = (states * weights).sum(1) / weights.sum(1)
        logits: Tensor = self.head(torch.cat([states[:, 0], mean], dim=-1))
        return logits

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """Write a self-contained folder: weights in fp16, `config.json` and `tokenizer.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / "model.tmp"
        save_file({k: v.detach().cpu().half().contiguous() for k, v in self.state_dict().items()}, temporary)
        temporary.replace(folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.encoder.config, indent=1) + "\n")
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype = torch.float32) -> "Verifier":
        """Load a verifier folder; raises ModelError where a file is missing or damaged."""
        config = folder / "config.json"
        encoder = MPNet(config) if is_plain_mpnet(config) else _empty(folder)
        try:
            weights = {name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()}
            model = cls(encoder, marks="marker.weight" in weights)
            model.load_state_dict(weights, assign=True)  # without a copy in fp32
        except Exception as error:  # safetensors' errors share no public root
            raise ModelError(f"{folder / 'model.safetensors'}: cannot load the verifier's weights ({error})") from error
        return model.to(dtype).eval()


def _with_new_names(model: nn.Module, weights: dict[str, Any], prefix: str, *_: Any) -> None:
    """Rename the weights of older files, in which the encoder has the name `bert`."""
    for name in [n for n in weights if n.startswith(f"{prefix}bert.")]:
        weights[f"{prefix}encoder.{name.removeprefix(f'{prefix}bert.')}"] = weights.pop(name)


def _empty(folder: Path, dropout: float = 0.0) -> Bert | PretrainedEncoder:
    """Build the encoder that a folder's `config.json` describes, without its weights."""
    config = folder / "config.json"
    return Bert(BertShape.read(config), dropout) if is_plain_bert(config) else empty_pretrained(folder, dropout)


def load_for_training(folder: Path, dropout: float = 0.0) -> Verifier:
    """Load a verifier's folder or an encoder's checkpoint for training; missing heads are initialised."""
    try:
        with safe_open(folder / "model.safetensors", "pt") as file:
            trained = "head.weight" in file.keys()  # noqa: SIM118 - the library's object is no mapping
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{folder / 'model.safetensors'}: cannot read the weights ({error})") from error
    if not trained:
        load = load_bert if is_plain_bert(folder / "config.json") else load_pretrained
        return Verifier(load(folder, dropout))
    model = Verifier(_empty(folder, dropout))
    known = Verifier.load(folder).state_dict()
    model.load_state_dict({**model.state_dict(), **known})
    return model


def read_span_threshold(folder: Path) -> float:
    """Return the threshold for unsupported words from `marks.json` of a verifier's folder; `DEFAULT_THRESHOLD` without one.

    Raises ModelError where the file cannot be read or was fitted to other weights.
    """
    path = fitted_folder(folder) / "marks.json"
    if not path.is_file():
        return DEFAULT_THRESHOLD
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        threshold = float(data["border"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path}: cannot read the threshold of unsupported words ({error!r}). Fit it with scripts/fit_marks.py"
        ) from error
    if not 0 < threshold < 1:
        raise ModelError(f"{path}: the threshold {threshold} is not between 0 and 1. Fit it with scripts/fit_marks.py")
    check_fitted_weights(path, data, "scripts/fit_marks.py", folder)
    return threshold


def unsupported_word_probabilities(claim: str, tokens: Sequence[tuple[int, int]], probabilities: Sequence[float]) -> list[float]:
    """Return for each word of a claim the probability that it is unsupported: the highest of its tokens.

    `tokens` are the offsets `(start, end)` of the claim's tokens in characters, `probabilities` those of the tokens.
    """
    pairs = list(zip(tokens, probabilities, strict=True))
    return [max((p for (a, b), p in pairs if a < w.end and w.start < b), default=0.0) for w in words(claim)]


def unsupported_spans(
    claim: str, probabilities: Sequence[float], threshold: float = DEFAULT_THRESHOLD
) -> tuple[UnsupportedSpan, ...]:
    """Return the unsupported spans of a claim: neighbouring words at or over the threshold, with the highest probability.

    `probabilities` are those of its words. Log-odds are shifted so that the threshold becomes 0.5.
    """
    spans: list[UnsupportedSpan] = []
    before = -2
    for number, (word, p) in enumerate(zip(words(claim), probabilities, strict=True)):
        if p < threshold:
            continue
        p = p * (1 - threshold) / (p * (1 - threshold) + (1 - p) * threshold)
        if number == before + 1:
            spans[-1] = UnsupportedSpan(spans[-1].start, word.end, max(spans[-1].probability, p))
        else:
            spans.append(UnsupportedSpan(word.start, word.end, p))
        before = number
    return tuple(spans)
