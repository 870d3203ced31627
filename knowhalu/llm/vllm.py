"""vLLM in this process, with its batching and prefix cache, over a model from a local folder.

vLLM's structured outputs cannot score labels: they set the logits of all other tokens to minus infinity before the
log-probabilities are computed, so the only allowed token always has the probability 1. `allowed_token_ids` forces a token after
that. So each token of each choice is a separate request that generates this one token; the prefix cache holds the rest.
"""

import asyncio
import dataclasses
import difflib
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from knowhalu.errors import BackendError, MissingExtra, ModelError, SettingsError, StageError
from knowhalu.llm.local.backend import check_model_folder
from knowhalu.llm.local.decode import choose_label
from knowhalu.llm.local.prompt_encoding import EncodedPrompt, PromptEncoder, TokenIds
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.thinking import without_thinking
from knowhalu.llm.vllm_engine import EngineLoop
from knowhalu.requests import Completion, Generate

OFFLINE_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Set before vLLM is imported, which otherwise reports usage and connects to a model hub."""
DTYPES = {"auto": "auto", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
FIXED_ARGUMENTS = {
    "model": "llm.model", "tokenizer": "llm.model", "trust_remote_code": "nothing: code of a model never runs",
    "allowed_local_media_path": "nothing: only text is read", "logprobs_mode": "nothing: labels are measured by raw_logprobs",
}  # fmt: skip
"""Arguments of the engine that `llm.engine` may not have, and the setting that does instead."""
UNSAFE_FORMATS = ("auto", "hf", "pt", "npcache", "mistral")
"""Values of `load_format` with which vLLM may unpickle weights."""
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM allows for `max_lora_rank`."""


class VLLMBackend:
    """Answer `Generate` requests by vLLM (0.27 or newer, written against 0.33).

    Requests join the running batch as they come. `llm.engine` holds further arguments of vLLM's engine. With `deterministic`,
    batch-invariant kernels make a reply independent of concurrent requests (GPUs of compute capability 8.0 or higher; slower).
    Raises ModelError where the folder is missing or damaged or vLLM cannot load it, SettingsError where `llm.engine` has what the
    engine does not know, MissingExtra where vLLM is not installed.
    """

    def __init__(self, options: LLMOptions) -> None:
        folder = check_model_folder(options.model)
        adapter = read_adapter(options.lora) if options.lora else {}
        vllm = _import_vllm(options.deterministic)
        arguments = engine_arguments(options, folder, adapter, {f.name for f in dataclasses.fields(vllm.EngineArgs)})
        self._params = _params_maker(vllm)
        try:
            self.llm = vllm.LLM(**arguments)
        except Exception as error:  # noqa: BLE001 - any error of vLLM names the folder
            raise ModelError(f"{folder}: vLLM cannot load the model ({error}). See its log above") from error
        engine = self.llm.llm_engine
        self.framing = PromptEncoder(self.llm.get_tokenizer(), options.style, engine.model_config.max_model_len)
        self._framing_lock = threading.Lock()
        self._loop = EngineLoop(engine, _lora_request(options.lora) if options.lora else None)

    async def answer(self, request: Generate) -> Completion:
        """Answer one request; raises StageError where it cannot be answered."""
        framed = await asyncio.to_thread(self._frame, request)
        work = [self._loop.generate(prompt, params) for prompt, params in self._work(request, framed)]
        return _read_answer(request, framed, await asyncio.gather(*work))

    def _frame(self, request: Generate) -> EncodedPrompt:
        """Encode a request, one at a time: a tokenizer is not made for several threads."""
        with self._framing_lock:
            return self.framing.frame(request)

    def _work(self, request: Generate, framed: EncodedPrompt) -> Iterator[tuple[TokenIds, Any]]:
        """Yield vLLM's prompts: the context alone, or the context with every prefix of a choice, its last token forced."""
        for prefix in _choice_prefixes(framed):
            forced = self._params(temperature=0.0, max_tokens=1, logprobs=0, allowed_token_ids=[prefix[-1]])
            yield (*framed.context, *prefix[:-1]), forced
        if not framed.choices:
            free = self._params(
                temperature=request.temperature,
                seed=request.seed,
                stop=list(request.stop),
                max_tokens=request.max_tokens,
                logprobs=0,
            )
            yield framed.context, free


def _choice_prefixes(framed: EncodedPrompt) -> list[TokenIds]:
    """Return every prefix of a choice, each once."""
    return list(dict.fromkeys(c[: i + 1] for c in framed.choices for i in range(len(c))))


def _import_vllm(deterministic: bool) -> Any:
    """Import vLLM without usage reports, and with batch-invariant kernels where `deterministic`."""
    environment = {**OFFLINE_ENVIRONMENT, **({"VLLM_BATCH_INVARIANT": "1"} if deterministic else {})}
    if deterministic and "vllm" in sys.modules and os.environ.get("VLLM_BATCH_INVARIANT") != "1":
        raise SettingsError("llm.deterministic has no effect after vllm was imported. Set VLLM_BATCH_INVARIANT=1 before.")
    os.environ.update(environment)
    try:
        import vllm
    except ImportError as error:
        raise MissingExtra("vllm", "vllm") from error
    return vllm


def engine_arguments(options: LLMOptions, folder: Path, adapter: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the arguments of vLLM's engine: those that the options name, then those of `llm.engine`.

    Raises SettingsError where `llm.engine` has one that is not `known`, is set by another option, or may run code.
    """
    for name, value in options.engine.items():
        if name in FIXED_ARGUMENTS:
            raise SettingsError(f"llm.engine.{name} cannot be set. Use {FIXED_ARGUMENTS[name]}")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else "See the engine arguments in vLLM's documentation"
            raise SettingsError(f"llm.engine.{name}: vLLM's engine has no such argument. {hint}")
        if name == "load_format" and value in UNSAFE_FORMATS:
            raise SettingsError(f"llm.engine.load_format {value!r} may read weights that run code. Use safetensors")
    rank = adapter.get("r")
    lora = {"enable_lora": True, "max_lora_rank": min((r for r in LORA_RANKS if r >= rank), default=rank)} if rank else {}
    return {
        "model": str(folder),
        "dtype": DTYPES[options.precision],
        "load_format": "safetensors",
        "trust_remote_code": False,
        "enable_prefix_caching": True,
        "tensor_parallel_size": options.tensor_parallel,
        "gpu_memory_utilization": options.gpu_memory,
        "max_model_len": options.max_length,
        "seed": options.seed,
        "logprobs_mode": "raw_logprobs",
        "disable_log_stats": True,
        **lora,
        **options.engine,
    }


def read_adapter(folder: Path) -> dict[str, Any]:
    """Return the configuration of a LoRA adapter; raises ModelError where the folder has none, or no safetensors."""
    path = folder.expanduser()
    try:
        adapter = json.loads((path / "adapter_config.json").read_text(encoding="utf-8"))
        rank = adapter["r"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{path}: no LoRA adapter here (adapter_config.json: {type(error).__name__})"
        raise ModelError(f"{reason}. Set llm.lora to its folder") from error
    if not isinstance(rank, int) or rank < 1 or not (path / "adapter_model.safetensors").is_file():
        raise ModelError(f"{path}: the LoRA adapter has no rank or no adapter_model.safetensors. Save it again")
    return dict(adapter)


def _params_maker(vllm: Any) -> Any:
    """Return a function that makes sampling parameters for a reply that is returned once, when it is complete."""
    from vllm.sampling_params import RequestOutputKind

    return partial(vllm.SamplingParams, output_kind=RequestOutputKind.FINAL_ONLY)


def _lora_request(folder: Path) -> Any:
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, str(folder.expanduser()))


def _read_answer(request: Generate, framed: EncodedPrompt, outputs: Sequence[Any]) -> Completion:
    """Turn vLLM's outputs for one request, in the order of its prompts, into the answer; raises StageError."""
    cached = outputs[0].num_cached_tokens or 0
    if not framed.choices:
        return _read_completion(outputs[0], cached)
    by_prefix = dict(zip(_choice_prefixes(framed), outputs, strict=True))
    logprobs = [[_forced_logprob(by_prefix[c[: i + 1]], token) for i, token in enumerate(c)] for c in framed.choices]
    answer = choose_label(request, framed, logprobs, cached)
    if isinstance(answer, StageError):
        raise answer
    return answer


def _read_completion(output: Any, cached: int) -> Completion:
    reply = output.outputs[0]
    if reply.finish_reason not in ("stop", "length"):
        raise BackendError("generate", f"vLLM ended the reply with {reply.finish_reason!r}. See its log", reply=reply.text)
    logprobs = tuple(float(at[token].logprob) for token, at in zip(reply.token_ids, reply.logprobs or [], strict=False))
    return without_thinking(
        Completion(reply.text, reply.finish_reason, {}, logprobs, len(output.prompt_token_ids), cached, len(reply.token_ids))
    )


def _forced_logprob(output: Any, token: int) -> float:
    """Return the log-probability of a forced token; raises BackendError where vLLM generated another."""
    reply = output.outputs[0]
    if list(reply.token_ids) != [token] or not reply.logprobs:
        raise BackendError("generate", f"vLLM generated the tokens {list(reply.token_ids)} where {token} was forced")
    return float(reply.logprobs[0][token].logprob)
