"""The verifier: a cross-encoder that reads (source, claim) and gives P(supported), P(contradicted), P(not enough information).

The input is `[CLS] source [SEP] claim [SEP]`, or with a question `[CLS] source [SEP] question [SEP] answer [SEP]`; all that
follows the source has token type 1. The three classes are read from the mean of the token vectors beside the first one.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from knowhalu.encoder.bert import Bert, BertShape, load_bert
from knowhalu.errors import ModelError

CLASSES = ("supported", "contradicted", "neutral")
SHAPES = (32, 48, 64, 96, 128, 192, 256, 384, 512)
"""The padded lengths in use: a fixed set, since CPU kernels are prepared anew for every new shape."""


class Tokens(NamedTuple):
    """Token ids of one pair, and the positions at which the claim's side and, after a question, the claim itself begin."""

    ids: list[int]
    border: int
    said: int = 0


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer and its three special tokens."""

    tokenizer: Tokenizer
    cls: int
    sep: int
    pad: int

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Load `tokenizer.json` from a folder; raises ModelError where it is missing or not a BERT tokenizer."""
        path = folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            raise ModelError(f"{path}: cannot read the tokenizer ({error})") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "[SEP]" in a text is a word there, never the border between two texts
        ids = [i for t in ("[CLS]", "[SEP]", "[PAD]") if (i := tokenizer.token_to_id(t)) is not None]
        if len(ids) != 3:
            raise ModelError(f"{path}: no [CLS], [SEP] or [PAD] token; a BERT tokenizer is needed")
        return cls(tokenizer, *ids)

    def pieces(self, texts: list[str]) -> list[list[int]]:
        """Turn texts into token ids without special tokens."""
        return [e.ids for e in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def places(self, texts: list[str]) -> list[list[tuple[int, int]]]:
        """Return the characters `(start, end)` of every token of `pieces`."""
        return [e.offsets for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def join(self, premise: list[int], claim: list[int], question: list[int] | None, limit: int) -> Tokens:
        """Build one input of at most `limit` tokens; only the premise is ever shortened.

        Raises ValueError where the claim's side alone is over the limit.
        """
        tail = [*(question + [self.sep] if question else []), *claim, self.sep]
        room = limit - len(tail) - 2
        if room < 0:
            raise ValueError(f"the claim has {len(tail)} tokens, more than the {limit - 2} that the verifier reads at once")
        head = [self.cls, *premise[:room], self.sep]
        return Tokens(head + tail, len(head), len(head) + len(tail) - len(claim) - 1)

    def batch(self, rows: list[Tokens], length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Pad rows to one length: ids, mask and token types, each `(rows, length)`."""
        ids = torch.full((len(rows), length), self.pad)
        mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
        for i, row in enumerate(rows):
            size = len(row.ids)
            ids[i, :size] = torch.tensor(row.ids)
            mask[i, :size] = 1
            types[i, row.border : size] = 1
        return ids, mask, types


def shape_for(length: int) -> int:
    """Return the smallest fixed shape that holds `length` tokens."""
    return next(s for s in SHAPES if s >= length)


class Verifier(nn.Module):
    """Score pairs: token tensors `(batch, length)` -> logits `(batch, 3)` in the order of `CLASSES`.

    Beside them it can mark tokens: the log-odds that the source does not bear a token of the claim out. Weights that were
    trained without marks have no `marker`.
    """

    def __init__(self, bert: Bert, *, marks: bool = True) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(2 * bert.shape.hidden_size, len(CLASSES))
        self.marker = nn.Linear(bert.shape.hidden_size, 1) if marks else None

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Return logits for every row."""
        return self._classes(self.bert(ids, mask, types), mask)

    def marked(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits `(batch, 3)` and the marks of all tokens `(batch, length)`; raises ModelError without a marker."""
        if self.marker is None:
            raise ModelError("this verifier was trained without marks; train it on with scripts/train_verifier.py")
        states = self.bert(ids, mask, types)
        return self._classes(states, mask), self.marker(states).squeeze(-1)

    def _classes(self, states: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(states.dtype)[:, :, None]
        mean = (states * weights).sum(1) / weights.sum(1)
        logits: Tensor = self.head(torch.cat([states[:, 0], mean], dim=-1))
        return logits

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """Write a self-contained folder: weights in fp16, `config.json` and `tokenizer.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / "model.tmp"
        save_file({k: v.detach().cpu().half().contiguous() for k, v in self.state_dict().items()}, draft)
        draft.replace(folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps({"model_type": "bert", **asdict(self.bert.shape)}, indent=1) + "\n")
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype = torch.float32) -> "Verifier":
        """Load a verifier folder; raises ModelError where a file is missing or damaged."""
        shape = BertShape.read(folder / "config.json")
        try:
            weights = load_file(folder / "model.safetensors")
            model = cls(Bert(shape), marks="marker.weight" in weights)
            model.load_state_dict(weights)
        except Exception as error:  # safetensors' errors share no public root
            raise ModelError(f"{folder / 'model.safetensors'}: cannot load the verifier's weights ({error})") from error
        return model.to(dtype).eval()


def load_start(folder: Path, dropout: float = 0.0) -> Verifier:
    """Load what a training starts from: a verifier's folder, or a BERT checkpoint; heads that it lacks are new."""
    try:
        with safe_open(folder / "model.safetensors", "pt") as file:
            trained = "head.weight" in file.keys()  # noqa: SIM118 - the library's object is no mapping
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{folder / 'model.safetensors'}: cannot read the weights ({error})") from error
    if not trained:
        return Verifier(load_bert(folder, dropout))
    model = Verifier(Bert(BertShape.read(folder / "config.json"), dropout))
    known = Verifier.load(folder).state_dict()
    model.load_state_dict({**model.state_dict(), **known})
    return model
