"""vLLM in this process: its own batching and prefix cache, over a model from a local folder.

Labels are not scored by vLLM's structured outputs: those set the logits of all other tokens to minus infinity before
log-probabilities are taken, so a token that nothing else may stand beside has the probability 1, however little the model
thinks of it. `allowed_token_ids` forces a token after that. So each token of each choice is a request of its own that
generates this one token; all it computes anew is the end of its prompt.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

from knowhalu.errors import BackendError, MissingExtra, ModelError, SettingsError, StageError
from knowhalu.llm.local.decode import choose_label
from knowhalu.llm.local.loading import check_model_folder
from knowhalu.llm.local.prefix_tree import TokenIds
from knowhalu.llm.local.prompt_encoding import EncodedPrompt, PromptEncoder
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Completion, Generate

Answer = Completion | StageError
OFFLINE_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Set before vLLM is imported: it reports usage and asks a model hub otherwise."""
DTYPES = {"auto": "auto", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class VLLMBackend:
    """Answer `Generate` requests by vLLM (0.27 or newer, written against 0.32).

    Raises ModelError where the folder is missing or damaged or vLLM cannot load it, MissingExtra where vLLM is not
    installed. With `deterministic`, batch-invariant kernels make a reply the same whatever else is answered with it (GPUs
    of compute capability 8.0 or higher; slower).
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
        except Exception as error:  # noqa: BLE001 - whatever vLLM raises, the folder is named
            raise ModelError(f"{folder}: vLLM cannot load the model ({error})") from error
        self.framing = PromptEncoder(self.llm.get_tokenizer(), options.style, self.llm.llm_engine.model_config.max_model_len)

    def answer_many(self, requests: Sequence[Generate]) -> list[Answer]:
        """Answer every request, in order, in one call of vLLM; a request that cannot be answered gets its own error."""
        framed: list[EncodedPrompt | StageError] = []
        work: list[tuple[TokenIds, Any]] = []
        places: list[dict[TokenIds, int]] = []
        for request in requests:
            place: dict[TokenIds, int] = {}
            try:
                made = self.framing.frame(request)
                for tokens, params in self._work(request, made):
                    place[tokens] = len(work)
                    work.append((tokens if not made.choices else tokens[:-1], params))
                framed.append(made)
            except StageError as error:
                framed.append(error)
            places.append(place)
        found = self._generated(work)
        return [
            f if isinstance(f, StageError) else _read_answer(r, f, {t: found[at] for t, at in place.items()})
            for r, f, place in zip(requests, framed, places, strict=True)
        ]

    def _work(self, request: Generate, framed: EncodedPrompt) -> list[tuple[TokenIds, Any]]:
        """Return what vLLM is asked for: the context alone, or every beginning of context and choice, its last token forced."""
        if not framed.choices:
            params = self._params(
                temperature=request.temperature,
                seed=request.seed,
                stop=list(request.stop),
                max_tokens=request.max_tokens,
                logprobs=1,
            )
            return [(framed.context, params)]
        beginnings = dict.fromkeys(c[: i + 1] for c in framed.choices for i in range(len(c)))
        return [
            ((*framed.context, *b), self._params(temperature=0.0, max_tokens=1, logprobs=1, allowed_token_ids=[b[-1]]))
            for b in beginnings
        ]

    def _generated(self, work: Sequence[tuple[TokenIds, Any]]) -> list[Any]:
        if not work:
            return []
        prompts = [{"prompt_token_ids": list(tokens)} for tokens, _ in work]
        return list(self.llm.generate(prompts, [params for _, params in work], use_tqdm=False))


def _import_vllm(deterministic: bool) -> Any:
    """Import vLLM, told not to report its use, and with batch-invariant kernels where these are wanted."""
    wanted = {**OFFLINE_ENVIRONMENT, **({"VLLM_BATCH_INVARIANT": "1"} if deterministic else {})}
    if deterministic and "vllm" in sys.modules and os.environ.get("VLLM_BATCH_INVARIANT") != "1":
        raise SettingsError("llm.deterministic comes too late: vllm is imported already. Set VLLM_BATCH_INVARIANT=1 before that.")
    os.environ.update(wanted)
    try:
        import vllm
    except ImportError as error:
        raise MissingExtra("vllm", "vllm") from error
    return vllm


def _read_answer(request: Generate, framed: EncodedPrompt, outputs: dict[TokenIds, Any]) -> Answer:
    """Turn vLLM's outputs (by the tokens that led to them, forced ones included) into the request's own."""
    try:
        first = next(iter(outputs.values()))
        cached = first.num_cached_tokens or 0
        if not framed.choices:
            return _read_completion(first, cached)
        logprobs = [
            [_forced_logprob(outputs[(*framed.context, *c[: i + 1])], token) for i, token in enumerate(c)] for c in framed.choices
        ]
        return choose_label(request, framed, logprobs, cached)
    except StageError as error:
        return error


def _read_completion(output: Any, cached: int) -> Completion:
    made = output.outputs[0]
    if made.finish_reason not in ("stop", "length"):
        raise BackendError("generate", f"vLLM ended the reply with {made.finish_reason!r}", reply=made.text)
    logprobs = tuple(float(at[token].logprob) for token, at in zip(made.token_ids, made.logprobs or [], strict=False))
    return Completion(
        made.text, made.finish_reason, {}, logprobs, len(output.prompt_token_ids), cached, len(made.token_ids)
    )  # fmt: skip


def _forced_logprob(output: Any, token: int) -> float:
    """Return the log-probability of a token that was forced; raises BackendError where another one came."""
    made = output.outputs[0]
    if list(made.token_ids) != [token] or not made.logprobs:
        raise BackendError("generate", f"vLLM was to generate the token {token} alone, not {list(made.token_ids)}")
    return float(made.logprobs[0][token].logprob)
