"""The options of revision."""

from pydantic import Field

from knowhalu.results import RevisionStrategy
from knowhalu.types import Record


class ReviseOptions(Record):
    """How a text is revised."""

    how: RevisionStrategy = Field(
        "guarded", description="every change checked again; or as published: conli, factored, self-correction"
    )
    rounds: int = Field(3, ge=1, le=20, description="wordings tried for a sentence at most, before it is dropped")
    inconclusive: bool = Field(True, description="revise also what the sources leave open; false: let it stand")
    threshold: float = Field(
        0.67, ge=0.0, le=1.0,
        description="let stand what is less probably wrong; 0.67: losing a true sentence is twice as bad as keeping a wrong one",
    )  # fmt: skip
    source_words: int = Field(800, ge=40, description="words of the sources read for a rewriting at most; of more, the nearest")
