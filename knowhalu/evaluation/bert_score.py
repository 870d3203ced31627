"""BERTScore of texts against references, by an encoder in a local folder (Zhang et al. 2020); nothing is downloaded.

Every token is matched with the most similar token of the other text, by the cosine of their hidden states in one layer. The F1 of
both directions is the score, without weights by frequency and without rescaling. Tokens that the tokenizer adds can be matched,
and have no weight themselves, as in the library `bert-score`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from knowhalu.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor

PACKAGED_NAME = "minilm"
BATCH = 16
"""Pairs whose hidden states are held at a time."""


class TokenStates(NamedTuple):
    """The hidden states of a text's tokens, of length 1 each, and which of the tokens are of the text itself."""

    states: "Tensor"
    own: "Tensor"


class BertScorer:
    """Score pairs of texts with one layer of an encoder."""

    def __init__(self, folder: str | Path, layer: int | None = None) -> None:
        """Load the encoder; `layer` counts from 1, and is the last one by default.

        "minilm" is the packaged encoder. Raises ModelError for a folder without a usable encoder, or without such a layer.
        """
        from knowhalu.encoder.adapters import import_transformers

        transformers, path = import_transformers(), _folder(str(folder))
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(path, **options)
            self._model = transformers.AutoModel.from_pretrained(path, use_safetensors=True, **options).eval()
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{path}: is no encoder that can be loaded ({error}). Give a folder as it was published") from error
        layers = int(getattr(self._model.config, "num_hidden_layers", 0))
        self.layer = layers if layer is None else layer
        if not 1 <= self.layer <= layers:
            raise ModelError(f"{path}: has {layers} layers, and not a layer {self.layer}")
        self.name = f"{Path(path).resolve().name if str(folder) != PACKAGED_NAME else PACKAGED_NAME}, layer {self.layer}"

    def f1(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the F1 of each text and reference, usually between 0 and 1; 0 where one of them has no token."""
        scores: list[float] = []
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            texts = list(dict.fromkeys(text for pair in batch for text in pair))
            states = dict(zip(texts, self._states(texts), strict=True))
            scores += [_pair_f1(states[text], states[reference]) for text, reference in batch]
        return scores

    def _states(self, texts: Sequence[str]) -> list[TokenStates]:
        import torch

        positions = int(getattr(self._model.config, "max_position_embeddings", 512))
        limit = self._tokenizer.model_max_length
        limit = limit if limit <= positions else positions - 2  # some encoders count positions from 2
        encoded = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=limit, return_special_tokens_mask=True, return_tensors="pt"
        )
        special = encoded.pop("special_tokens_mask").bool()
        with torch.inference_mode():
            layers = self._model(**encoded, output_hidden_states=True).hidden_states
        states = torch.nn.functional.normalize(layers[self.layer].float(), dim=-1)
        present = encoded["attention_mask"].bool()
        return [TokenStates(s[here], ~mark[here]) for s, here, mark in zip(states, present, special, strict=True)]


def _folder(name: str) -> str:
    if name == PACKAGED_NAME:
        from knowhalu.encoder.embedder import packaged_minilm_folder

        return str(packaged_minilm_folder())
    if not Path(name).is_dir():
        raise ModelError(
            f"{name}: no such model folder. Nothing is ever downloaded: copy the model there, or use {PACKAGED_NAME!r}"
        )
    return name


def _pair_f1(text: TokenStates, reference: TokenStates) -> float:
    if not text.own.any() or not reference.own.any():
        return 0.0
    similar = text.states @ reference.states.T
    precision = float(similar.max(dim=1).values[text.own].mean())
    recall = float(similar.max(dim=0).values[reference.own].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
