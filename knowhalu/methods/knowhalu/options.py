"""The options of the KnowHalu method."""

from typing import Literal

from pydantic import Field

from knowhalu.types import KnowledgeForm, Record


class KnowHaluOptions(Record):
    """Options of the KnowHalu method. Thresholds of None come from the reasoner's calibration."""

    base_form: KnowledgeForm = Field(KnowledgeForm.UNSTRUCTURED, description="the form of knowledge that is judged first")
    second_opinion: Literal["needed", "always", "never"] = Field("needed", description="when the other form is judged too")
    delta1: float | None = Field(None, ge=0.0, le=1.0, description="base judgments less sure than this are looked at again")
    delta2: float | None = Field(None, ge=0.0, le=1.0, description="and replaced by supplements surer than this")
    formulation: Literal["specific", "general", "combined"] = Field("combined", description="which form of a query is searched")
    off_target: bool = Field(True, description="check first whether an answer delivers what is asked for")
    max_steps: int = Field(10, ge=1, le=50, description="hops of one check at most")
    passages: int | None = Field(None, ge=1, le=100, description="top K for each query; None: 2 from an index, 3 from documents")
    segment_words: int = Field(30, ge=5, le=200, description="words of a segment of the response at most")
