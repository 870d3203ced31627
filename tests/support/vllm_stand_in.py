"""A stand-in for the package vllm: the names, arguments and replies of 0.32 that we use, over a transformers model.

It shows that our code asks for what it means and reads what comes back. It is not vLLM: whether vLLM itself answers so was
not tried with it.
"""

import types
from dataclasses import dataclass, field

import torch


@dataclass
class SamplingParams:
    temperature: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    allowed_token_ids: list[int] | None = None

    def __post_init__(self):
        assert 0.0 <= self.temperature <= 2.0 and self.max_tokens >= 1
        assert self.stop is None or all(self.stop), "stop cannot contain an empty string"


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: list[dict[int, Logprob]] | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    prompt_logprobs: list | None
    outputs: list[CompletionOutput]
    finished: bool
    num_cached_tokens: int | None = None


@dataclass
class LLM:
    model: str
    dtype: str = "auto"
    load_format: str = "auto"
    trust_remote_code: bool = False
    enable_prefix_caching: bool | None = None
    tensor_parallel_size: int = 1
    gpu_memory_utilization: float = 0.9
    max_model_len: int | None = None
    seed: int = 0
    logprobs_mode: str = "raw_logprobs"
    disable_log_stats: bool = False
    blocks: set = field(default_factory=set)

    def __post_init__(self):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(self.model, local_files_only=True)
        self._model = AutoModelForCausalLM.from_pretrained(self.model, local_files_only=True, dtype=torch.float32).eval()
        length = self.max_model_len or self._model.config.max_position_embeddings
        self.llm_engine = types.SimpleNamespace(model_config=types.SimpleNamespace(max_model_len=length))

    def get_tokenizer(self):
        return self._tokenizer

    @torch.inference_mode()
    def generate(self, prompts, sampling_params=None, *, use_tqdm=True):
        assert len(prompts) == len(sampling_params)
        assert all(p.prompt_logprobs is None for p in sampling_params), "prompt log-probabilities pass the prefix cache by"
        return [
            self._one(str(i), p["prompt_token_ids"], s) for i, (p, s) in enumerate(zip(prompts, sampling_params, strict=True))
        ]

    def _one(self, name, prompt, params):
        assert len(prompt) < self.llm_engine.model_config.max_model_len
        full = [tuple(prompt[: i + 16]) for i in range(0, len(prompt) - 15, 16)]
        cached = 16 * sum(block in self.blocks for block in full)
        self.blocks.update(full)
        tokens, logprobs, reason, text = [], [], "length", ""
        generator = torch.Generator().manual_seed(params.seed or 0)
        while len(tokens) < params.max_tokens and reason == "length":
            logits = self._model(torch.tensor([[*prompt, *tokens]])).logits[0, -1]
            raw = logits.log_softmax(-1)  # before the allowed tokens are picked out, as in vLLM's raw_logprobs
            if params.allowed_token_ids is not None:
                logits = torch.full_like(logits, -torch.inf).index_copy(
                    0, torch.tensor(params.allowed_token_ids), logits[params.allowed_token_ids]
                )
            if params.temperature:
                token = int(torch.multinomial((logits / params.temperature).softmax(-1), 1, generator=generator))
            else:
                token = int(logits.argmax())
            tokens.append(token)
            logprobs.append({int(t): Logprob(float(raw[t])) for t in {token, int(raw.argmax())}})
            text = self._tokenizer.decode(tokens, skip_special_tokens=True)
            if token == self._tokenizer.eos_token_id:
                reason = "stop"
            if found := [text.index(stop) for stop in params.stop or [] if stop in text]:
                reason, text = "stop", text[: min(found)]
        output = CompletionOutput(
            0, text, tokens, sum(p[t].logprob for p, t in zip(logprobs, tokens, strict=True)), logprobs, reason
        )
        return RequestOutput(name, None, prompt, None, [output], True, min(cached, len(prompt) - 1))


def module():
    """Make the module that is put in the place of vllm."""
    made = types.ModuleType("vllm")
    made.LLM, made.SamplingParams = LLM, SamplingParams
    return made
