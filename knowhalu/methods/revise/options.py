"""The options of revision."""

from pydantic import Field

from knowhalu.results import RevisionStrategy
from knowhalu.types import Record


class ReviseOptions(Record):
    """Options of revision."""

    how: RevisionStrategy = Field(
        "guarded", description="guarded: check every change; conli, factored, self-correction: rewrite the text as published"
    )
    rounds: int = Field(3, ge=1, le=20, description="maximal number of replacements tried for a sentence before it is dropped")
    inconclusive: bool = Field(True, description="also revise sentences that the sources leave open; false: keep them")
    threshold: float = Field(
        0.67, ge=0.0, le=1.0,
        description="keep segments with a lower P(hallucinated); 0.67: a lost true sentence costs twice a kept false one",
    )  # fmt: skip
    source_words: int = Field(
        800, ge=40, description="maximal number of source words shown for a rewrite; of longer sources, the nearest chunks"
    )
