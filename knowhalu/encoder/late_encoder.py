"""Token encoders for late interaction: the packaged one in plain torch, and the loader of ColBERT and PyLate checkpoints.

The packaged one is MiniLM with a projection; its folder has the projection and the layers that training changed, and the rest
comes from the packaged MiniLM. Its vectors equal those of a `MultiVectorEncoder` with the same modules (a test compares them):
`[CLS]` and `[SEP]` have vectors, and punctuation has them in queries only.
"""

import hashlib
import json
import string
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from knowhalu.encoder.bert import Bert, load_bert
from knowhalu.encoder.device import Precision, choose_device, in_one_thread
from knowhalu.encoder.embedder import PADDED_LENGTHS, packaged_minilm_folder
from knowhalu.encoder.verifier import EncodedPair, PairTokenizer
from knowhalu.errors import ModelError

DEFAULT_TOKEN_ENCODER = "minilm-late"
PACKAGED_LATE_ENCODER = Path(__file__).parent.parent / "weights" / "late"
CONFIG_FILE, LATE_WEIGHTS_FILE = "late.json", "late.safetensors"
MAX_TOKENS = 256
"""Tokens of a text that are encoded."""


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


def hash_base_model(folder: Path) -> str:
    """Return the sha256 over weights, sizes and tokenizer of a BERT folder."""
    digest = hashlib.sha256()
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


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
        self.folder, self.name = (
            folder or PACKAGED_LATE_ENCODER,
            DEFAULT_TOKEN_ENCODER if folder is None else folder.resolve().name,
        )
        if not (self.folder / CONFIG_FILE).is_file():
            remedy = "Name a ColBERT or PyLate folder as token encoder, or train one with scripts/train_colbert.py"
            raise ModelError(f"{self.folder}: no late-interaction model in this folder. {remedy}")
        base = packaged_minilm_folder()
        self._words = PairTokenizer.load(base)
        self._skipped = punctuation_ids(self._words)
        self._dtype, self._device = choose_device(precision, device)
        self._model = load_late_bert(self.folder, base).to(self._device, self._dtype)
        self.dimension = self._model.projection.out_features
        self._rows = 256 if self._device.type == "cuda" else 32

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over the folder, which includes the hash of its base, without the precision."""
        digest = hashlib.sha256(f"late bert, {MAX_TOKENS} tokens".encode())
        for name in (CONFIG_FILE, LATE_WEIGHTS_FILE):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[NDArray[np.float32]]:
        """Encode texts in order: for each, float32 `(tokens, dimension)`; text over the token limit is truncated."""
        clean = [t if t.isascii() else t.encode(errors="replace").decode() for t in texts]
        pieces = self._words.pieces(clean) if clean else []
        rows = [[self._words.cls, *ids[: MAX_TOKENS - 2], self._words.sep] for ids in pieces]
        groups: dict[int, list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            groups[next(s for s in PADDED_LENGTHS if s >= len(row))].append(i)
        encoded: list[NDArray[np.float32]] = [np.zeros((0, self.dimension), dtype=np.float32)] * len(rows)
        for length, members in sorted(groups.items()):
            for start in range(0, len(members), self._rows):
                batch = members[start : start + self._rows]
                for i, vectors in zip(batch, self._forward([rows[i] for i in batch], length), strict=True):
                    positions = [j for j, token in enumerate(rows[i]) if query or token not in self._skipped]
                    encoded[i] = vectors[positions]
        return encoded

    @in_one_thread
    @torch.inference_mode()
    def _forward(self, rows: list[list[int]], length: int) -> NDArray[np.float32]:
        tensors = (t.to(self._device) for t in self._words.batch([EncodedPair(row, len(row)) for row in rows], length))
        vectors: NDArray[np.float32] = self._model(*tensors).cpu().numpy()
        return vectors


class SentenceTransformerTokenEncoder:
    """Encode tokens with a local ColBERT, PyLate or multi-vector folder that `sentence-transformers` reads."""

    @in_one_thread
    def __init__(self, folder: Path, *, precision: Precision = "auto", device: str = "auto") -> None:
        from knowhalu.encoder.adapters import folder_fingerprint, go_offline, refuse_unsafe

        refuse_unsafe(folder)
        go_offline()
        from sentence_transformers import MultiVectorEncoder

        dtype, place = choose_device(precision, device)
        self.folder, self.name, self.fingerprint = folder, folder.resolve().name, folder_fingerprint(folder)
        options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True}
        try:
            self._model = MultiVectorEncoder(
                str(folder), device=str(place), local_files_only=True, trust_remote_code=False, model_kwargs=options
            )
        except Exception as error:  # the library raises any exception of its parts
            raise ModelError(f"{folder}: sentence-transformers cannot load this folder ({error})") from error
        self.dimension = int(self.encode(["dimension"])[0].shape[1])

    @in_one_thread
    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[NDArray[np.float32]]:
        """Encode texts in order: for each, float32 `(tokens, dimension)`, rows of length 1."""
        if not texts:
            return []
        call = self._model.encode_query if query else self._model.encode_document
        encoded = call(list(texts), batch_size=32, show_progress_bar=False, normalize_embeddings=True)
        return [vectors.float().cpu().numpy() for vectors in encoded]


def load_token_encoder(
    name_or_folder: str | Path = DEFAULT_TOKEN_ENCODER, *, precision: Precision = "auto", device: str = "auto"
) -> MiniLMTokenEncoder | SentenceTransformerTokenEncoder:
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
    kind = MiniLMTokenEncoder if (folder / CONFIG_FILE).is_file() else SentenceTransformerTokenEncoder
    return kind(folder, precision=precision, device=device)
