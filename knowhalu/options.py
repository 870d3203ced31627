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


class EncoderOptions(Record):
    """Where the verifier lies and how it runs."""

    folder: Path | None = Field(None, description="a verifier's folder; None: the packaged one")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 where the hardware has it")
    threads: int | None = Field(None, ge=1, description="CPU threads; None: all cores")
    tokens: int = Field(4096, ge=512, description="padded tokens in one forward pass")


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
    encoder: EncoderOptions = EncoderOptions()
    retrieval: RetrievalOptions = RetrievalOptions()
    engine: EngineOptions = EngineOptions()
