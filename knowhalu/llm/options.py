"""The options of language models; this module imports no backend."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from knowhalu.types import Record

SHORTER_PROMPT_HINT = (
    "or send less: give long sources as documents, of which the nearest passages are read, and not as knowledge, which is read "
    "whole; retrieve fewer passages and take fewer steps (knowhalu.passages, knowhalu.max_steps); with another method, set fewer "
    "source_words"
)
"""The remedy for a prompt that exceeds the context, beside a longer context."""
DialectName = Literal["auto", "vllm", "sglang", "llama.cpp", "llama-cpp-python", "ollama", "other"]


class LLMOptions(Record):
    """The language model, where it runs and how it is called; used if `reasoner` is "llm"."""

    backend: str = Field("server", description='"server" (OpenAI-compatible), "vllm" or "transformers" (in this process)')
    model: str = Field(
        "", description="name of the model on the server, or its local folder; empty: the only model of the server"
    )
    url: str | tuple[str, ...] = Field(
        "http://127.0.0.1:8000/v1", description="address of the server, or a list of servers with the same model"
    )
    api_key_env: str = Field("KNOWHALU_API_KEY", description="environment variable with the key of the server, if it needs one")
    style: Literal["auto", "chat", "completion"] = Field(
        "auto", description="API in use; auto: chat if the model has a chat template"
    )
    constrain: Literal["auto", "tokens", "structured", "grammar", "logprobs"] = Field(
        "auto",
        description="how a server constrains labels: the tokens of labels or structured outputs (vLLM), a grammar (llama.cpp) or "
        "top log-probabilities",
    )
    dialect: DialectName = Field(
        "auto", description="kind of server, which decides how requests are written; auto: as its list of models says"
    )
    thinking_tokens: int = Field(
        2048, ge=0, description="tokens that a model may think for before a reply, where its thinking cannot be switched off"
    )
    system: str | None = Field(None, description="system prompt that replaces that of the prompt file; empty: none")
    prompts: Path | None = Field(
        None, description="folder of prompts and examples that override the packaged ones of the same name"
    )
    votes: int = Field(
        1,
        ge=1,
        le=100,
        description="judgments sampled at temperature 1; with several, the majority decides and its share is the confidence",
    )
    seed: int = Field(0, description="seed of all sampling")
    concurrency: int = Field(
        64, ge=1, le=10_000, description="maximal number of concurrent requests to each server; fewer where it holds fewer"
    )
    timeout: float = Field(120.0, gt=0, description="timeout of a request in seconds")
    retries: int = Field(4, ge=0, le=20, description="retries after a server error or a lost connection")
    cache: bool = Field(True, description="cache replies on disk")
    cache_folder: Path | None = Field(None, description="folder of the reply cache; unset: in the cache folder of the user")
    cache_mb: int = Field(
        2048, ge=1, description="size limit of the reply cache in megabytes; the least recently used replies are removed"
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="number format of an in-process model")
    prefix_mb: int = Field(4096, ge=1, description="memory in megabytes for cached prefixes of an in-process transformers model")
    tensor_parallel: int = Field(1, ge=1, description="number of GPUs of an in-process vLLM model")
    max_length: int | None = Field(
        None, ge=256, description="context of an in-process vLLM model in tokens; unset: that of the model"
    )
    gpu_memory: float = Field(0.9, gt=0, le=1, description="share of the GPU's memory that vLLM may take")
    lora: Path | None = Field(None, description="folder of a LoRA adapter of an in-process vLLM model")
    engine: dict[str, Any] = Field(
        default_factory=dict,
        description="further arguments of an in-process vLLM engine, such as {enforce_eager = true, max_num_seqs = 64}",
    )
    deterministic: bool = Field(
        False, description="batch-invariant kernels in vLLM: slower, but replies do not depend on concurrent requests"
    )

    def __hash__(self) -> int:  # `engine` is a table, which has no hash of its own
        return hash(self.model_dump_json())

    @field_validator("url", mode="before")
    @classmethod
    def _check_addresses(cls, url: Any) -> Any:
        """Return a list of one address as that address, so that both are the same setting."""
        if isinstance(url, str):
            return url
        if not isinstance(url, list | tuple) or not url or not all(isinstance(address, str) for address in url):
            raise ValueError("should be an address or a list of addresses")
        addresses = tuple(dict.fromkeys(url))
        return addresses if len(addresses) > 1 else addresses[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the addresses of all servers, without a slash at the end."""
        return tuple(u.rstrip("/") for u in ([self.url] if isinstance(self.url, str) else self.url))
