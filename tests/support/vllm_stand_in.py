"""A stand-in for the package vllm: the names, arguments and replies of 0.33 that we use, over a transformers model.

It shows that our code asks for what it means and reads what comes back. It is not vLLM: whether vLLM itself answers so was
not tried with it.
"""

import types
from dataclasses import dataclass, field
from enum import Enum

import torch


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass
class SamplingParams:
    temperature: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    allowed_token_ids: list[int] | None = None
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE

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
class EngineArgs:
    model: str
    tokenizer: str | None = None
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
    enforce_eager: bool = False
    quantization: str | None = None
    max_num_seqs: int | None = None
    enable_lora: bool = False
    max_lora_rank: int = 16


@dataclass
class LoRARequest:
    lora_name: str
    lora_int_id: int
    lora_path: str


@dataclass
class LLM(EngineArgs):
    def __post_init__(self):
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(self.model, local_files_only=True)
        self.llm_engine = LLMEngine(self, self._tokenizer)

    def get_tokenizer(self):
        return self._tokenizer


@dataclass
class Running:
    name: str
    prompt: list[int]
    params: SamplingParams
    cached: int
    generator: torch.Generator
    tokens: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Logprob]] = field(default_factory=list)
    reason: str | None = None
    text: str = ""

    def output(self):
        total = sum(p[t].logprob for p, t in zip(self.logprobs, self.tokens, strict=True))
        reply = CompletionOutput(0, self.text, self.tokens, total, self.logprobs, self.reason)
        return RequestOutput(self.name, None, self.prompt, None, [reply], self.reason is not None, self.cached)


class LLMEngine:
    """Every step adds a token to every request; `steps` has the names of those in each, `lora` the adapter of each request."""

    def __init__(self, args, tokenizer):
        from transformers import AutoModelForCausalLM

        self._tokenizer = tokenizer
        self._model = AutoModelForCausalLM.from_pretrained(args.model, local_files_only=True, dtype=torch.float32).eval()
        length = args.max_model_len or self._model.config.max_position_embeddings
        self.model_config = types.SimpleNamespace(max_model_len=length)
        self.running, self.blocks, self.steps, self.aborted, self.lora = {}, set(), [], [], {}

    def add_request(self, request_id, prompt, params, arrival_time=None, lora_request=None):
        prompt = prompt["prompt_token_ids"]
        assert params.prompt_logprobs is None, "prompt log-probabilities pass the prefix cache by"
        assert request_id not in self.running
        if len(prompt) >= self.model_config.max_model_len:
            raise ValueError("the prompt is longer than the maximum model length")
        full = [tuple(prompt[: i + 16]) for i in range(0, len(prompt) - 15, 16)]
        cached = min(16 * sum(block in self.blocks for block in full), len(prompt) - 1)
        self.blocks.update(full)
        self.lora[request_id] = lora_request
        generator = torch.Generator().manual_seed(params.seed or 0)
        self.running[request_id] = Running(request_id, prompt, params, cached, generator)
        return f"{request_id}-internal"

    def has_unfinished_requests(self):
        return bool(self.running)

    def abort_request(self, request_ids, internal=False):
        self.aborted += request_ids
        for name in request_ids:
            self.running.pop(name, None)

    @torch.inference_mode()
    def step(self):
        self.steps.append(list(self.running))
        for running in self.running.values():
            self._add_token(running)
        done = [running for running in self.running.values() if running.reason]
        for running in done:
            del self.running[running.name]
        return [r.output() for r in done] + [
            r.output() for r in self.running.values() if r.params.output_kind is not RequestOutputKind.FINAL_ONLY
        ]

    def _add_token(self, running):
        params = running.params
        logits = self._model(torch.tensor([[*running.prompt, *running.tokens]])).logits[0, -1]
        raw = logits.log_softmax(-1)  # before the allowed tokens are picked out, as in vLLM's raw_logprobs
        if params.allowed_token_ids is not None:
            allowed = torch.tensor(params.allowed_token_ids)
            logits = torch.full_like(logits, -torch.inf).index_copy(0, allowed, logits[allowed])
        if params.temperature:
            token = int(torch.multinomial((logits / params.temperature).softmax(-1), 1, generator=running.generator))
        else:
            token = int(logits.argmax())
        running.tokens.append(token)
        best = [int(t) for t in raw.topk(params.logprobs).indices] if params.logprobs else []
        running.logprobs.append({t: Logprob(float(raw[t])) for t in {token, *best}})
        running.text = self._tokenizer.decode(running.tokens, skip_special_tokens=True)
        if token == self._tokenizer.eos_token_id:
            running.reason = "stop"
        elif found := [running.text.index(stop) for stop in params.stop or [] if stop in running.text]:
            running.reason, running.text = "stop", running.text[: min(found)]
        elif len(running.tokens) >= params.max_tokens:
            running.reason = "length"


def modules():
    """Make the modules that are put in the place of vllm, by name."""
    made = {name: types.ModuleType(name) for name in ("vllm", "vllm.sampling_params", "vllm.lora", "vllm.lora.request")}
    made["vllm"].LLM, made["vllm"].SamplingParams, made["vllm"].EngineArgs = LLM, SamplingParams, EngineArgs
    made["vllm.sampling_params"].RequestOutputKind = RequestOutputKind
    made["vllm.lora.request"].LoRARequest = LoRARequest
    return made
