"""A transformers model in this process that computes every prefix of its prompts once.

The fixed part of a prompt is computed once for all checks, and the conversation of a check once for all its steps. Requests
that share a fixed part are processed in one batch.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from knowhalu.errors import MissingExtra, ModelError, StageError
from knowhalu.llm.local.attention import UnsupportedAttention
from knowhalu.llm.local.decode import Answer, DecodingJob, PartialReply, SharedPrefixDecoder, decode_single
from knowhalu.llm.local.forward import PrefixPrefiller, PrefixTree, SharedPrefixModel, SinglePromptModel, count_common_prefix
from knowhalu.llm.local.prompt_encoding import PromptEncoder
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Generate


class TransformersBackend:
    """Answer `Generate` requests with a model from a local folder.

    With `reuse` False, or where the attention of the model does not allow it (`why_alone`), every prompt is computed from its
    first token, one at a time. `loaded`, a model with its tokenizer, replaces the folder. Raises ModelError where the folder
    is missing or damaged, MissingExtra where transformers is not installed.
    """

    def __init__(self, options: LLMOptions, *, reuse: bool = True, loaded: tuple[Any, Any] | None = None) -> None:
        if loaded is None:
            folder = check_model_folder(options.model)
            tokenizer = _load_tokenizer(folder)  # before the model, which takes longer
            loaded = _load_model(folder, options.precision), tokenizer
        self.model, self.tokenizer = loaded
        length = getattr(self.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        self.framing = PromptEncoder(self.tokenizer, options.style, int(length) if length else None)
        self.ends = _end_tokens(self.model, self.tokenizer)
        self.prefixes = PrefixTree(options.prefix_mb * 2**20)
        self.alone = SinglePromptModel(self.model)
        self.together, self.why_alone = self._together() if reuse else (None, "reuse is off")
        self._lock = threading.Lock()

    @torch.inference_mode()
    def _together(self) -> tuple[SharedPrefixDecoder | None, str]:
        try:
            shared = SharedPrefixModel(self.model, self.alone)
        except UnsupportedAttention as error:
            return None, str(error)
        return SharedPrefixDecoder(PrefixPrefiller(shared, self.prefixes), keep_replies=not self.framing.is_chat), ""

    @property
    def computed(self) -> int:
        """The number of tokens processed by the model so far."""
        return self.alone.computed + (self.together.shared.computed if self.together else 0)

    @torch.inference_mode()
    def answer_many(self, requests: Sequence[Generate]) -> list[Answer]:
        """Answer every request, in order; a request that cannot be answered gets its own error."""
        answers: dict[int, Answer] = {}
        groups: dict[tuple[str, str], list[DecodingJob]] = {}
        with self._lock:
            for number, request in enumerate(requests):
                try:
                    framed = self.framing.frame(request)
                except StageError as error:
                    answers[number] = error
                    continue
                job = DecodingJob(number, request, framed, PartialReply(request, framed, self.framing, self.ends))
                if self._may_share(job):
                    groups.setdefault((request.system, request.prompt[: request.fixed]), []).append(job)
                else:
                    answers[number] = decode_single(self.alone, job)
            for jobs in groups.values():
                for batch in self._batches(jobs):
                    answers |= self.together.answer(batch) if self.together else {}
        return [answers[i] for i in range(len(requests))]

    def _may_share(self, job: DecodingJob) -> bool:
        """Return whether the prompt fits the sliding window; beyond it, the states of a prefix depend on what follows."""
        if self.together is None:
            return False
        window = self.together.shared.window
        return window is None or len(job.framed.context) + job.room <= window

    def _batches(self, jobs: Sequence[DecodingJob]) -> Iterator[list[DecodingJob]]:
        """Split a group so that the states after its common prefix fit into the memory limit of prefixes."""
        batch: list[DecodingJob] = []
        used, common = 0, count_common_prefix([j.framed.context for j in jobs])
        for job in jobs:
            rows = max(1, len(job.framed.choices))
            needed = rows * (len(job.framed.context) - common + job.room) * self.token_bytes
            if batch and used + needed > self.prefixes.limit:
                yield batch
                batch, used = [], 0
            batch.append(job)
            used += needed
        yield batch

    @property
    def token_bytes(self) -> int:
        """The bytes that the states of one token take."""
        if self.together is None:
            return 0
        layers, two, heads, _, size = self.together.shared.empty.shape
        return layers * two * heads * size * self.together.shared.empty.element_size()


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


def _load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a model; raises ModelError."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("transformers", "transformers") from error
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - any error of the files names the folder
        raise ModelError(f"{folder}: the tokenizer cannot be read ({error}). Copy the folder again") from error


def _load_model(folder: Path, precision: str) -> Any:
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
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=_resolve_dtype(precision, place)
        )
    except Exception as error:  # noqa: BLE001
        raise ModelError(f"{folder}: the model cannot be loaded ({error}). Check its files") from error
    finally:
        if shows_progress:
            logging.enable_progress_bar()
    return model.eval().to(torch.device(place))


def _resolve_dtype(precision: str, place: str) -> torch.dtype:
    """Return the type of a precision; "auto" is bfloat16 where the hardware supports it, else single precision."""
    if precision == "auto":
        fast = torch.cuda.is_bf16_supported() if place == "cuda" else torch.cpu.get_capabilities().get("avx512_bf16", False)
        precision = "bf16" if fast else "fp32"
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end a reply."""
    token_ids = [model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id]
    return frozenset(int(t) for n in token_ids for t in (n if isinstance(n, list) else [n]) if t is not None)
