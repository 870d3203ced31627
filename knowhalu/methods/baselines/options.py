"""The options of the baselines."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from knowhalu.types import Record

JudgeName = Literal["halueval", "halueval-knowledge", "halueval-cot", "zero-shot-cot", "few-shot"]
"""The judges whose votes self-consistency can count."""


class BaselineOptions(Record):
    """Options of the baselines: judges by one prompt, self-consistency, SelfCheckGPT and WikiChat's way of checking."""

    source_words: int = Field(
        1500, ge=40, le=100_000, description="words of sources shown whole; of more, the nearest chunks are"
    )
    passages: int = Field(2, ge=1, le=100, description="top K for each query to an index")
    temperature: float = Field(1.0, gt=0, le=2, description="at which judgments and responses are drawn")
    votes: int = Field(20, ge=2, le=100, description="self-consistency: judgments drawn, of which the majority decides")
    votes_by: JudgeName = Field("halueval-knowledge", description="self-consistency: the judge that is asked again and again")
    samples: int = Field(20, ge=1, le=100, description="selfcheck: responses drawn to hold the checked one against")
    score: Literal["max", "mean"] = Field(
        "max", description="selfcheck: a text is as inconsistent as its worst piece, or their mean"
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="selfcheck: inconsistency from which a text is hallucinated; 0.5: majority"
    )
    segment_words: int = Field(30, ge=5, le=200, description="selfcheck: words of a piece of a summary at most")
    pieces: int = Field(64, ge=1, le=1000, description="pieces of a response at most; those of a longer one are longer")


class TrivialOptions(Record):
    """The border of a trivial rule. There is none by itself: it is given, or fitted on labelled rows by `knowhalu compare`."""

    border: float | None = Field(
        None, allow_inf_nan=False, description="value over (or under) which a text counts as hallucinated"
    )
    direction: Literal["over", "under"] | None = Field(None, description="None: over for length and novelty, under for overlap")
    rule: Path | None = Field(None, description="file of fitted rules, as `knowhalu compare --fit` leaves it (trivial.json)")


LexicalRule = Literal["copied", "dates", "numbers", "names"]
"""Rules by name: sentences copied from a source, and dates, numbers or names that no source contains."""


class LexicalOptions(Record):
    """What rules on words may decide alone."""

    rules: tuple[LexicalRule, ...] = Field(
        ("copied",), description="what may decide; how often each is right depends on the texts: `knowhalu calibrate` measures it"
    )
