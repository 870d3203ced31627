"""The options of the baselines."""

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field

from knowhalu.types import Record

JudgeName = Literal["halueval", "halueval-knowledge", "halueval-cot", "zero-shot-cot", "few-shot"]
"""The judges whose votes self-consistency can count."""


class BaselineOptions(Record):
    """Options of the baselines: one-prompt judges, self-consistency, SelfCheckGPT and WikiChat."""

    source_words: int = Field(
        1500,
        ge=40,
        le=100_000,
        description="sources up to this number of words are shown in full; of longer ones, the nearest chunks",
    )
    passages: int = Field(2, ge=1, le=100, description="passages retrieved from an index per query")
    temperature: float = Field(1.0, gt=0, le=2, description="sampling temperature of judgments and responses")
    votes: int = Field(20, ge=2, le=100, description="self-consistency: number of sampled judgments; the majority decides")
    votes_by: JudgeName = Field("halueval-knowledge", description="self-consistency: the judge whose judgments are sampled")
    samples: int = Field(20, ge=1, le=100, description="selfcheck: number of sampled responses that the text is compared with")
    score: Literal["max", "mean"] = Field(
        "max", description="selfcheck: score of a text, the maximum or the mean over its segments"
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="selfcheck: score from which a text counts as hallucinated; 0.5: majority"
    )
    segment_words: int = Field(30, ge=5, le=200, description="selfcheck: maximal number of words in a segment of a summary")
    pieces: int = Field(
        64, ge=1, le=1000, description="maximal number of segments of a response; those of a longer response are longer"
    )


class TrivialOptions(Record):
    """Threshold of a trivial rule; it has no default: give it, or fit it on labelled rows with `knowhalu compare`."""

    threshold: float | None = Field(
        None,
        allow_inf_nan=False,
        validation_alias=AliasChoices("threshold", "border"),
        description="value above (or below) which a text counts as hallucinated",
    )
    direction: Literal["over", "under"] | None = Field(
        None,
        description="side of the threshold that counts as hallucinated; unset: over for length and novelty, under for overlap",
    )
    rule: Path | None = Field(None, description="file of fitted rules (trivial.json), as written by `knowhalu compare --fit`")


LexicalRule = Literal["copied", "dates", "numbers", "names"]
"""What a rule decides: sentences that occur verbatim in a source, or dates, numbers or names that occur in none."""


class LexicalOptions(Record):
    """Rules of the lexical method."""

    rules: tuple[LexicalRule, ...] = Field(
        ("copied",),
        description="enabled rules: copied, dates, numbers, names; `knowhalu calibrate` measures their precision",
    )
