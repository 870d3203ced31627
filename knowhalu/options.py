"""The options of a run: one small frozen tree; every branch belongs to the part that reads it."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from knowhalu.types import Form, Record


class KnowHaluOptions(Record):
    """Options of the KnowHalu method. Thresholds of None come from the reasoner's calibration."""

    base_form: Form = Field(Form.UNSTRUCTURED, description="the form of knowledge that is judged first")
    second_opinion: Literal["needed", "always", "never"] = Field("needed", description="when the other form is judged too")
    delta1: float | None = Field(None, ge=0.0, le=1.0, description="base judgments less sure than this are looked at again")
    delta2: float | None = Field(None, ge=0.0, le=1.0, description="and replaced by supplements surer than this")
    formulation: Literal["specific", "general", "combined"] = Field("combined", description="which form of a query is searched")
    off_target: bool = Field(True, description="check first whether an answer delivers what is asked for")
    max_steps: int = Field(10, ge=1, le=50, description="hops of one check at most")
    passages: int | None = Field(None, ge=1, le=100, description="top K for each query; None: 2 from an index, 3 from documents")
    segment_words: int = Field(30, ge=5, le=200, description="words of a segment of the response at most")


class TrivialOptions(Record):
    """The border of a trivial rule. There is none by itself: it is given, or fitted on labelled rows by `knowhalu compare`."""

    border: float | None = Field(
        None, allow_inf_nan=False, description="value over (or under) which a text counts as hallucinated"
    )
    direction: Literal["over", "under"] | None = Field(None, description="None: over for length and novelty, under for overlap")
    rule: Path | None = Field(None, description="file of fitted rules, as `knowhalu compare --fit` leaves it (trivial.json)")


class EncoderOptions(Record):
    """Where the verifier lies and how it runs."""

    folder: Path | None = Field(None, description="a verifier's folder; None: the packaged one")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 where the hardware has it")
    threads: int | None = Field(None, ge=1, description="CPU threads; None: all cores")
    tokens: int = Field(4096, ge=512, description="padded tokens in one forward pass")


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


class RetrievalOptions(Record):
    """Where evidence comes from when a sample brings none of its own."""

    index: Path | None = Field(None, description="index that is asked where a sample brings no source")
    embedder: str = Field("minilm", description='"minilm", a sentence-transformers folder, or "flag:FOLDER"')
    chunk_words: int = Field(40, ge=5, le=400, description="words of a chunk of a sample's own documents")


class EngineOptions(Record):
    """How many checks run at once, and in which order results come."""

    in_flight: int = Field(128, ge=1, le=100_000, description="checks under way at once")
    batch: int = Field(64, ge=1, le=10_000, description="requests handed to a backend together, at most")
    ordered: bool = Field(True, description="outcomes in the order of the input, or as they finish")


class Settings(Record):
    """All that decides the result of a run."""

    method: str = Field("knowhalu", description="how to check")
    reasoner: str = Field("encoder", description="who thinks inside the method")
    knowhalu: KnowHaluOptions = KnowHaluOptions()
    trivial: TrivialOptions = TrivialOptions()
    encoder: EncoderOptions = EncoderOptions()
    llm: LLMOptions = LLMOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    engine: EngineOptions = EngineOptions()
