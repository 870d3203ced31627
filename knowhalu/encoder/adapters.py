"""Encoders, embedders and rerankers of other libraries, for any local folder that these can read.

Nothing is downloaded or unpickled, and no code in a folder is run. A library is imported only where a model of it is loaded.
"""

import hashlib
import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from knowhalu.encoder.device import Precision, choose_device, in_one_thread
from knowhalu.errors import MissingExtra, ModelError

FINGERPRINTED_SUFFIXES = (".safetensors", ".json", ".txt", ".model")
"""Suffixes of the files that determine the vectors: weights, settings, vocabularies."""
IGNORED_FILES = ("data_config.json", "README.md")
PYLATE_MODULES = ("pylate.models.Dense.Dense",)
"""Modules of PyLate folders that `MultiVectorEncoder` reads by a class of its own, without importing PyLate."""
_LOG = logging.getLogger(__name__)


def go_offline() -> None:
    """Keep the libraries off the network; they read these variables when they are imported."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        os.environ[name] = "1"


def folder_fingerprint(folder: Path) -> str:
    """Return the sha256 over the names and contents of all files that determine the vectors."""
    digest = hashlib.sha256()
    for path in sorted(
        p for p in folder.rglob("*") if p.is_file() and p.suffix in FINGERPRINTED_SUFFIXES and p.name not in IGNORED_FILES
    ):
        with path.open("rb") as file:
            digest.update(path.relative_to(folder).as_posix().encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def refuse_unsafe(folder: Path, known: Collection[str] = ()) -> None:
    """Raise ModelError where loading the folder would unpickle a file, or run code of a module that is not in `known`."""
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("0_*/*.safetensors")):
        raise ModelError(f"{folder}: no model.safetensors. Pickled weights are never read: save the model as safetensors")
    for path in folder.rglob("pytorch_model.bin"):
        if not path.with_name("model.safetensors").is_file():
            raise ModelError(f"{path}: pickled weights are never read. Save this module as model.safetensors")
    modules = folder / "modules.json"
    try:
        types = [str(part["type"]) for part in json.loads(modules.read_text("utf-8"))] if modules.is_file() else []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{modules}: cannot read the list of modules ({error!r}). Copy the model folder again") from error
    for name in types:
        if not name.startswith("sentence_transformers.") and name not in known:
            raise ModelError(f"{modules}: the module {name!r} is code outside the library, which is never run. Use another model")


def _load_by_library(
    kind: Literal["SentenceTransformer", "CrossEncoder", "MultiVectorEncoder"], folder: Path, precision: Precision, device: str
) -> Any:
    """Load a folder by a class of sentence-transformers; raises ModelError where the folder is unsafe or unusable."""
    refuse_unsafe(folder, PYLATE_MODULES if kind == "MultiVectorEncoder" else ())
    go_offline()
    import sentence_transformers

    dtype, place = choose_device(precision, device)
    options = {"dtype": dtype, "use_safetensors": True}
    try:
        return getattr(sentence_transformers, kind)(
            str(folder), device=str(place), local_files_only=True, trust_remote_code=False, model_kwargs=options
        )
    except Exception as error:  # the library raises any exception of its parts
        raise ModelError(f"{folder}: sentence-transformers cannot load this folder ({error})") from error


def _normalize(vectors: Any, texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
    rows = np.ascontiguousarray(vectors, dtype=np.float32).reshape(len(texts), dimension)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
    return rows


def _read_pooling(model: Any, folder: Path) -> None:
    """Pool as the folder declares where the list of its modules was not copied, and warn where it declares nothing.

    The library averages the token vectors of such a folder, whatever the model was trained for.
    """
    if (folder / "modules.json").is_file():
        return
    if (folder / "1_Pooling" / "config.json").is_file():
        try:
            model[1] = type(model[1]).load(str(folder), subfolder="1_Pooling", local_files_only=True)
        except Exception as error:  # the library raises any exception of its parts
            raise ModelError(f"{folder / '1_Pooling'}: cannot read this part of the model ({error})") from error
        return
    _LOG.warning(
        "%s: no modules.json, so the mean of the token vectors is used, which is wrong for some models (BGE uses the first one). "
        "Copy modules.json and the folder 1_Pooling of the model, or name a BGE model as flag:%s",
        *(folder, folder),
    )


class SentenceTransformerEmbedder:
    """Embed with any local folder that `sentence-transformers` reads, such as BGE."""

    @in_one_thread
    def __init__(
        self, folder: Path, *, query_prefix: str | None = None, precision: Precision = "auto", device: str = "auto"
    ) -> None:
        self._model = _load_by_library("SentenceTransformer", folder, precision, device)
        _read_pooling(self._model, folder)
        self.folder, self.name, self.query_prefix = folder, folder.resolve().name, query_prefix
        self.dimension = len(self._model.encode(["dimension"])[0])
        prompts = getattr(self._model, "prompts", None) or {}
        self.symmetric = not query_prefix and not any(prompts.values())

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over all files of the model, without the query prefix, which does not change passages."""
        return folder_fingerprint(self.folder)

    @in_one_thread
    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts in order: float32 `(n, dimension)`; queries get the given prefix, or else that of the folder."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        options: dict[str, Any] = {"batch_size": 32, "normalize_embeddings": True, "show_progress_bar": False}
        if query and self.query_prefix is not None:
            vectors = self._model.encode(list(texts), prompt=self.query_prefix, **options)
        elif query:
            vectors = self._model.encode_query(list(texts), **options)
        else:
            vectors = self._model.encode_document(list(texts), **options)
        return _normalize(vectors, texts, self.dimension)


class FlagEmbedder:
    """Embed with a local BGE folder by the FlagEmbedding library (extra `bge`)."""

    @in_one_thread
    def __init__(
        self, folder: Path, *, query_prefix: str | None = None, precision: Precision = "auto", device: str = "auto"
    ) -> None:
        refuse_unsafe(folder)
        go_offline()
        try:
            from FlagEmbedding import FlagModel
        except ImportError as error:
            raise MissingExtra("FlagEmbedding", "bge") from error
        _, place = choose_device(precision, device)
        self.folder, self.name, self.query_prefix = folder, f"flag:{folder.resolve().name}", query_prefix
        self._model = FlagModel(
            str(folder),
            query_instruction_for_retrieval=query_prefix,
            use_fp16=place.type == "cuda" and precision != "fp32",
            devices=str(place),
            trust_remote_code=False,
        )
        self.dimension = int(np.asarray(self._model.encode_corpus(["dimension"])).shape[-1])
        self.symmetric = not query_prefix

    @cached_property
    def fingerprint(self) -> str:
        """Return the sha256 over all files of the model and the name of the library."""
        return hashlib.sha256(f"flag {folder_fingerprint(self.folder)}".encode()).hexdigest()

    @in_one_thread
    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts in order: float32 `(n, dimension)`; queries get the query prefix."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._model.encode_queries(list(texts)) if query else self._model.encode_corpus(list(texts))
        return _normalize(vectors, texts, self.dimension)


class SentenceTransformerTokenEncoder:
    """Encode tokens with a local ColBERT, PyLate or multi-vector folder that `sentence-transformers` reads."""

    @in_one_thread
    def __init__(self, folder: Path, *, precision: Precision = "auto", device: str = "auto") -> None:
        self._model = _load_by_library("MultiVectorEncoder", folder, precision, device)
        self.folder, self.name, self.fingerprint = folder, folder.resolve().name, folder_fingerprint(folder)
        self.dimension = int(self.encode(["dimension"])[0].shape[1])

    @in_one_thread
    def encode(self, texts: Sequence[str], *, query: bool = False) -> list[NDArray[np.float32]]:
        """Encode texts in order: for each, float32 `(tokens, dimension)`, rows of length 1."""
        if not texts:
            return []
        call = self._model.encode_query if query else self._model.encode_document
        encoded = call(list(texts), batch_size=32, show_progress_bar=False, normalize_embeddings=True)
        return [vectors.float().cpu().numpy() for vectors in encoded]


class CrossEncoderScorer:
    """Score (query, passage) pairs with a local cross-encoder that `sentence-transformers` reads; higher is better.

    Raises ModelError where the folder is missing or unusable.
    """

    @in_one_thread
    def __init__(self, folder: Path, *, precision: Precision = "auto", device: str = "auto") -> None:
        if not folder.is_dir():
            raise ModelError(
                f"{folder}: no such model folder. Nothing is ever downloaded: copy the model there, or use 'verifier'"
            )
        self._model = _load_by_library("CrossEncoder", folder, precision, device)
        if self._model.num_labels != 1:
            raise ModelError(f"{folder}: the model has {self._model.num_labels} outputs; a reranker has one")

    @in_one_thread
    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the scores of pairs, in order."""
        if not pairs:
            return []
        return [float(s) for s in self._model.predict(list(pairs), batch_size=32, show_progress_bar=False)]


class PretrainedEncoder(nn.Module):
    """Encode token ids, `(batch, length)` -> `(batch, length, hidden)`, with a model that `AutoModel` reads.

    The model computes its own positions. `config` has the fields of its `config.json`.
    """

    def __init__(self, model: Any, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model, self.config = model, dict(config)
        self.hidden_size: int = model.config.hidden_size
        self._typed = getattr(model.config, "type_vocab_size", 0) > 1

    @property
    def words(self) -> nn.Embedding:
        """Return the token embeddings."""
        embeddings: nn.Embedding = self.model.get_input_embeddings()
        return embeddings

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        """Encode `ids`; `mask` is 1 for tokens and 0 for padding; `types` are ignored where the model has none."""
        more = {"token_type_ids": types} if self._typed else {}
        states: Tensor = self.model(input_ids=ids, attention_mask=mask, **more).last_hidden_state
        return states

    def keep_layers(self, count: int) -> None:
        """Raise ModelError: only a plain BERT can lose layers."""
        raise ModelError(f"a {self.config.get('model_type')} encoder keeps all its layers; --layers is for BERT only")


def load_pretrained(folder: Path, dropout: float = 0.0) -> PretrainedEncoder:
    """Load a checkpoint (`config.json`, `model.safetensors`); raises ModelError where the library cannot read it."""
    refuse_unsafe(folder)
    library, config, values = _configured(folder, dropout)
    try:
        model = library.AutoModel.from_pretrained(
            str(folder), config=config, dtype="float32", attn_implementation="eager",
            local_files_only=True, trust_remote_code=False, use_safetensors=True,
        )  # fmt: skip
    except Exception as error:  # the library raises any exception of its parts
        raise ModelError(f"{folder}: transformers cannot load this folder ({error})") from error
    return PretrainedEncoder(_without_pooler(model), values).eval()


def empty_pretrained(folder: Path, dropout: float = 0.0) -> PretrainedEncoder:
    """Build the encoder that a folder's `config.json` describes, without its weights."""
    library, config, values = _configured(folder, dropout)
    from transformers.initialization import no_init_weights

    try:
        with no_init_weights():
            model = library.AutoModel.from_config(config, attn_implementation="eager", trust_remote_code=False)
    except Exception as error:  # the library raises any exception of its parts
        raise ModelError(f"{folder / 'config.json'}: transformers cannot build this encoder ({error})") from error
    return PretrainedEncoder(_without_pooler(model), values).eval()


def import_transformers() -> Any:
    """Import transformers, offline and quiet; raises MissingExtra where it is not installed."""
    go_offline()
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "transformers") from error
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


def _configured(folder: Path, dropout: float) -> tuple[Any, Any, dict[str, Any]]:
    """Return the library, the folder's configuration with one dropout everywhere, and the fields of `config.json`."""
    transformers = import_transformers()
    path = folder / "config.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the library raises any exception of its parts
        raise ModelError(f"{path}: cannot read the model's configuration ({error})") from error
    for name, value in config.to_dict().items():
        if "dropout" in name and isinstance(value, int | float) and not isinstance(value, bool):
            setattr(config, name, dropout)
    return transformers, config, values


def _without_pooler(model: Any) -> Any:
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    return model
