"""The options of the KnowHalu method."""

from typing import Literal

from pydantic import Field

from knowhalu.types import KnowledgeForm, Record


class KnowHaluOptions(Record):
    """Options of the KnowHalu method. Unset thresholds are those calibrated for the reasoner."""

    base_form: KnowledgeForm = Field(KnowledgeForm.UNSTRUCTURED, description="form of knowledge that is judged first")
    second_opinion: Literal["needed", "always", "never"] = Field("needed", description="when the other form is judged as well")
    delta1: float | None = Field(
        None, ge=0.0, le=1.0, description="threshold of confidence below which a base judgment is checked against the other form"
    )
    delta2: float | None = Field(
        None, ge=0.0, le=1.0, description="threshold of confidence above which the other form's judgment replaces it"
    )
    formulation: Literal["specific", "general", "combined"] = Field(
        "combined", description="form of the queries that are searched"
    )
    off_target: bool = Field(True, description="run the off-target check: does the answer give what the question asks for?")
    max_steps: int = Field(10, ge=1, le=50, description="maximal number of query steps of a check")
    passages: int | None = Field(
        None, ge=1, le=100, description="passages retrieved per query; unset: 2 from an index, 3 from documents"
    )
    segmentation: Literal["claims", "words"] = Field(
        "claims", description="parts that are judged one by one: sentences, list items and table rows, or segments of words"
    )
    segment_words: int = Field(
        30, ge=5, le=200, description="maximal number of words in a segment of words; a longer clause stays whole"
    )
