"""Encoders of the `transformers` library, for local folders that are not a plain BERT: MPNet, RoBERTa, DeBERTa-v3, ModernBERT.

Nothing is downloaded or unpickled, and no code in a folder is run. The library is imported only where an encoder is loaded.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from knowhalu.encoder.adapters import go_offline, refuse_unsafe
from knowhalu.errors import MissingExtra, ModelError


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


def _configured(folder: Path, dropout: float) -> tuple[Any, Any, dict[str, Any]]:
    """Return the library, the folder's configuration with one dropout everywhere, and the fields of `config.json`."""
    go_offline()
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "transformers") from error
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
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
