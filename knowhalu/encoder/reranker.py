"""Cross-encoders of other makers as rerankers, from local folders: BGE's, or any that `sentence-transformers` reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knowhalu.encoder.adapters import go_offline, refuse_unsafe
from knowhalu.encoder.device import Precision, choose_device, in_one_thread
from knowhalu.errors import ModelError


class CrossEncoderScorer:
    """Score (query, passage) pairs with a cross-encoder's folder (extra `embedders`); more is better."""

    @in_one_thread
    def __init__(self, folder: Path, *, precision: Precision = "auto", device: str = "auto") -> None:
        if not folder.is_dir():
            raise ModelError(
                f"{folder}: no such model folder. Nothing is ever downloaded: copy the model there, or take 'verifier'"
            )
        refuse_unsafe(folder)
        go_offline()
        from sentence_transformers import CrossEncoder

        dtype, place = choose_device(precision, device)
        options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True}
        try:
            self._model = CrossEncoder(
                str(folder), device=str(place), local_files_only=True, trust_remote_code=False, model_kwargs=options
            )
        except Exception as error:  # the library raises whatever its parts raise
            raise ModelError(f"{folder}: sentence-transformers cannot load this folder ({error})") from error
        if self._model.num_labels != 1:
            raise ModelError(f"{folder}: gives {self._model.num_labels} numbers for a pair; a reranker gives one")

    @in_one_thread
    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Score pairs, in order."""
        if not pairs:
            return []
        return [float(s) for s in self._model.predict(list(pairs), batch_size=32, show_progress_bar=False)]
