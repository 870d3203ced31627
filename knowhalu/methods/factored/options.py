"""The options of Factored Verification."""

from typing import Literal

from pydantic import Field

from knowhalu.methods.common.combine import CombinationRule
from knowhalu.types import Record


class FactoredOptions(Record):
    """Options of Factored Verification. A theta of None is the one that was fitted for the verifier, or is stated for LLMs."""

    rule: CombinationRule = Field("product", description="how the probabilities of a text's claims are combined into one")
    theta: float | None = Field(None, ge=0.0, le=1.0, description="a combined probability under this is a hallucination")
    claims: Literal["split", "sentences"] = Field("split", description="what is judged: the claims of sentences, or sentences")
    reasons: bool = Field(True, description="an LLM gives its reasons before each label; false: the label at once, half the cost")
    source_words: int = Field(2000, ge=40, description="words of sources that are read whole; of more, chunks for each claim are")
    passages: int = Field(2, ge=1, le=100, description="top K from an index for each claim, where a sample has no source")
    uncited: Literal["skip", "all"] = Field(
        "skip", description="factored-academic: sentences that cite nothing are left out, or held against all sources"
    )
    unmatched: Literal["hallucinated", "inconclusive"] = Field(
        "hallucinated", description="factored-academic: what a citation that fits no source makes of the text"
    )
