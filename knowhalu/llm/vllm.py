"""vLLM in this process, with its batching and prefix cache, over a model from a local folder.

vLLM's structured outputs cannot score labels: they set the logits of all other tokens to minus infinity before the
log-probabilities are computed, so the only allowed token always has the probability 1. `allowed_token_ids` forces a token after
that. So each token of each choice is a separate request that generates this one token; the prefix cache holds the rest.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from knowhalu.errors import BackendError, MissingExtra, ModelError, ReplyError, SettingsError, StageError
from knowhalu.llm.local.backend import check_model_folder
from knowhalu.llm.local.decode import Answer, choose_label
from knowhalu.llm.local.prompt_encoding import EncodedPrompt, PromptEncoder, TokenIds
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.thinking import without_thinking
from knowhalu.requests import Completion, Generate

OFFLINE_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Set before vLLM is imported, which otherwise reports usage and connects to a model hub."""
DTYPES = {"auto": "auto", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class VLLMBackend:
    """Answer `Generate` requests by vLLM (0.27 or newer, written against 0.32).

    With `deterministic`, batch-invariant kernels make a reply independent of concurrent requests (GPUs of compute capability
    8.0 or higher; slower). Raises ModelError where the folder is missing or damaged or vLLM cannot load it, MissingExtra where
    vLLM is not installed.
    """

    def __init__(self, options: LLMOptions) -> None:
        folder = check_model_folder(options.model)
        vllm = _import_vllm(options.deterministic)
        self._params = vllm.SamplingParams
        try:
            self.llm = vllm.LLM(
                model=str(folder),
                dtype=DTYPES[options.precision],
                load_format="safetensors",
                trust_remote_code=False,
                enable_prefix_caching=True,
                tensor_parallel_size=options.tensor_parallel,
                gpu_memory_utilization=options.gpu_memory,
                max_model_len=options.max_length,
                seed=options.seed,
                logprobs_mode="raw_logprobs",
                disable_log_stats=True,
            )
        except Exception as error:  # noqa: BLE001 - any error of vLLM names the folder
            raise ModelError(f"{folder}: vLLM cannot load the model ({error}). See its log above") from error
        self.framing = PromptEncoder(self.llm.get_tokenizer(), options.style, self.llm.llm_engine.model_config.max_model_len)

    def answer_many(self, requests: Sequence[Generate]) -> list[Answer]:
        """Answer every request, in order, in one call of vLLM; a request that cannot be answered gets an error."""
        prompts: list[TokenIds] = []
        params: list[Any] = []
        encoded: list[tuple[EncodedPrompt | StageError, slice]] = []
        for request in requests:
            framed: EncodedPrompt | StageError
            start = len(prompts)
            try:
                framed = self.framing.frame(request)
                for prompt, param in self._work(request, framed):
                    prompts.append(prompt)
                    params.append(param)
            except StageError as error:
                framed = error
            encoded.append((framed, slice(start, len(prompts))))
        outputs: list[Any] = []
        if prompts:
            outputs += self.llm.generate([{"prompt_token_ids": list(p)} for p in prompts], params, use_tqdm=False)
        return [
            framed if isinstance(framed, StageError) else _read_answer(request, framed, outputs[part])
            for request, (framed, part) in zip(requests, encoded, strict=True)
        ]

    def _work(self, request: Generate, framed: EncodedPrompt) -> Iterator[tuple[TokenIds, Any]]:
        """Yield vLLM's prompts: the context alone, or the context with every prefix of a choice, its last token forced."""
        for prefix in _choice_prefixes(framed):
            forced = self._params(temperature=0.0, max_tokens=1, logprobs=1, allowed_token_ids=[prefix[-1]])
            yield (*framed.context, *prefix[:-1]), forced
        if not framed.choices:
            free = self._params(
                temperature=request.temperature,
                seed=request.seed,
                stop=list(request.stop),
                max_tokens=request.max_tokens,
                logprobs=1,
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


def _read_answer(request: Generate, framed: EncodedPrompt, outputs: Sequence[Any]) -> Answer:
    """Turn vLLM's outputs for one request, in the order of its prompts, into the answer."""
    cached = outputs[0].num_cached_tokens or 0
    by_prefix = dict(zip(_choice_prefixes(framed), outputs, strict=False))
    try:
        if not framed.choices:
            return _read_completion(outputs[0], cached)
        logprobs = [[_forced_logprob(by_prefix[c[: i + 1]], token) for i, token in enumerate(c)] for c in framed.choices]
    except (BackendError, ReplyError) as error:
        return error
    return choose_label(request, framed, logprobs, cached)


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
