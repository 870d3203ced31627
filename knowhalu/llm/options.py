"""The options of language models; this module imports no backend."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from knowhalu.types import Record


class LLMOptions(Record):
    """Which language model thinks, where it runs, and how it is asked; read where `reasoner` is "llm"."""

    backend: str = Field("server", description='"server" (OpenAI-compatible), "vllm" or "transformers" (in this process)')
    model: str = Field("", description="the model's name on the server, or its local folder; empty: the server's only model")
    url: str = Field("http://127.0.0.1:8000/v1", description="address of the server")
    api_key_env: str = Field("KNOWHALU_API_KEY", description="environment variable that holds the server's key, if it wants one")
    style: Literal["auto", "chat", "completion"] = Field("auto", description="auto: chat where the model has a chat template")
    constrain: Literal["auto", "structured", "grammar", "logprobs"] = Field(
        "auto",
        description="how a server is held to the labels: vLLM's structured outputs, a llama.cpp grammar, top log-probabilities",
    )
    system: str | None = Field(None, description="system prompt in place of the prompt file's own; empty text: none")
    prompts: Path | None = Field(None, description="folder whose prompt files and demonstrations win over the packaged ones")
    votes: int = Field(
        1, ge=1, le=100, description="judgments drawn at temperature 1; over 1: their majority and its share decide"
    )
    seed: int = Field(0, description="seed of all drawing")
    concurrency: int = Field(64, ge=1, le=10_000, description="requests under way at a server at once")
    timeout: float = Field(120.0, gt=0, description="seconds that one request may take")
    retries: int = Field(4, ge=0, le=20, description="further tries after a server's error or a lost connection")
    cache: bool = Field(True, description="keep replies on disk and never ask the same twice")
    cache_folder: Path | None = Field(None, description="where replies are kept; None: the user's cache folder")
    cache_mb: int = Field(2048, ge=1, description="replies kept on disk at most, in megabytes; the longest unused go first")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="of an in-process model")
    prefix_mb: int = Field(4096, ge=1, description="memory for kept prefixes of an in-process transformers model")
    tensor_parallel: int = Field(1, ge=1, description="GPUs that an in-process vLLM model is spread over")
    max_length: int | None = Field(None, ge=256, description="context of an in-process vLLM model, in tokens")
    gpu_memory: float = Field(0.9, gt=0, le=1, description="share of the GPU's memory that vLLM may take")
    deterministic: bool = Field(False, description="batch-invariant kernels in vLLM: slower, the same reply whatever else runs")
