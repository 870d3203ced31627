"""Load a language model from a local folder."""

import json
from pathlib import Path
from typing import Any

import torch

from knowhalu.errors import MissingExtra, ModelError


def check_model_folder(model: str, setting: str = "llm.model") -> Path:
    """Return the folder of a model with safetensors weights; raises ModelError where it is missing or incomplete."""
    if not model:
        raise ModelError(f"{setting} is not set. Set it to the folder of a model, for example --set {setting}=/models/NAME")
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ModelError(f"{folder}: no such folder. Copy the model there, or set {setting}; nothing is downloaded.")
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder}: not the folder of a model (no config.json). Set {setting} to the folder that has it")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(f"{folder}: no *.safetensors file. Convert the weights; other formats may run code")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{index}: cannot be read ({type(error).__name__}: {error}). Copy the folder again") from error
        if missing := sorted(n for n in names if not (folder / n).is_file()):
            raise ModelError(f"{folder}: incomplete, {', '.join(missing)} is missing. Copy the folder again")
    return folder


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a model; raises ModelError."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("transformers", "transformers") from error
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - any error of the files names the folder
        raise ModelError(f"{folder}: the tokenizer cannot be read ({error}). Copy the folder again") from error


def load_model(folder: Path, precision: str) -> Any:
    """Load a causal language model onto the GPU, or the CPU where there is none; raises ModelError."""
    try:
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise MissingExtra("transformers", "transformers") from error
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    place = "cuda" if torch.cuda.is_available() else "cpu"
    shows_progress = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=resolve_dtype(precision, place)
        )
    except Exception as error:  # noqa: BLE001
        raise ModelError(f"{folder}: the model cannot be loaded ({error}). Check its files") from error
    finally:
        if shows_progress:
            logging.enable_progress_bar()
    return model.eval().to(torch.device(place))


def resolve_dtype(precision: str, place: str) -> torch.dtype:
    """Return the type of a precision; "auto" is bfloat16 where the hardware supports it, else single precision."""
    if precision == "auto":
        fast = torch.cuda.is_bf16_supported() if place == "cuda" else torch.cpu.get_capabilities().get("avx512_bf16", False)
        precision = "bf16" if fast else "fp32"
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def max_context_tokens(config: Any) -> int | None:
    """Return the length of the model's context in tokens, None where its configuration does not state it."""
    length = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    return int(length) if length else None


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a reply."""
    token_ids = [model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id]
    return frozenset(int(t) for n in token_ids for t in (n if isinstance(n, list) else [n]) if t is not None)
