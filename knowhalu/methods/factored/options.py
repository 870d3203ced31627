"""The options of Factored Verification."""

from typing import Literal

from pydantic import Field

from knowhalu.methods.common.combine import CombinationRule
from knowhalu.types import Record


class FactoredOptions(Record):
    """Options of Factored Verification. An unset theta is the one fitted for the verifier, or 0.5 with a language model."""

    rule: CombinationRule = Field("product", description="how the probabilities of the claims are combined into that of the text")
    theta: float | None = Field(
        None, ge=0.0, le=1.0, description="threshold of the combined probability, below which a text is hallucinated"
    )
    claims: Literal["split", "sentences"] = Field(
        "split", description="unit of judgment: claims split from sentences, or whole sentences"
    )
    reasons: bool = Field(True, description="let the language model write a rationale before each label; false: half the calls")
    source_words: int = Field(
        2000, ge=40, description="sources up to this number of words are read in full; of longer ones, the nearest chunks"
    )
    passages: int = Field(2, ge=1, le=100, description="passages retrieved from an index per claim, if a sample has no source")
    uncited: Literal["skip", "all"] = Field(
        "skip", description="factored-academic: skip sentences without citations, or compare them with all sources"
    )
    unmatched: Literal["hallucinated", "inconclusive"] = Field(
        "hallucinated", description="factored-academic: verdict on a text with a citation that matches no source"
    )
