"""The options of the methods and of revision; those of KnowHalu lie in its own folder."""

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, model_validator

from knowhalu.methods.common.combine import CombinationRule
from knowhalu.results import RevisionStrategy
from knowhalu.types import Record


class ConliOptions(Record):
    """Options of CoNLI."""

    levels: Literal["both", "sentence", "entity"] = Field(
        "both",
        description="sentence: sentences only; both: also the entities of sentences that pass; entity: entities of all sentences",
    )
    select: bool = Field(True, description="skip sentences without a claim: greetings, headings, questions, markup")
    question: bool = Field(
        True, description="read the sentences of an answer together with its question; false: compare them alone, as published"
    )
    entities: str = Field("rules", description='entity recognition: "rules", "spacy:FOLDER" or "gliner:FOLDER"')
    batched: bool = Field(
        False, description="judge several hypotheses in one prompt: fewer calls, but labels without probabilities"
    )
    batch_size: int = Field(8, ge=1, le=50, description="maximal number of hypotheses in one prompt, if batched")
    source_words: int = Field(
        2000, ge=40, description="sources up to this number of words are read in full; of longer ones, the nearest chunks"
    )
    passages: int = Field(3, ge=1, le=100, description="passages retrieved from an index per sentence, if a sample has no source")


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


JudgeName = Literal["halueval", "halueval-knowledge", "halueval-cot", "zero-shot-cot", "zero-shot-memory", "few-shot"]
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


class CascadeOptions(Record):
    """Options of the cascade: rules, then the encoder, then the language model for what the encoder leaves undecided."""

    rules: str = Field("lexical", description="method of the first stage, without a model; empty: begin with the encoder")
    encoder: str = Field("knowhalu", min_length=1, description="method of the encoder stage")
    llm: str = Field("knowhalu", min_length=1, description="method of the language model stage, with --reasoner llm")
    low: float = Field(0.2, ge=-1.0, le=1.0, description="the encoder decides faithful if P(hallucinated) is at most this")
    high: float = Field(
        0.8,
        ge=0.0,
        le=1.0,
        description="the encoder decides hallucinated if P(hallucinated) is above this",
    )
    ask: Literal["needed", "always"] = Field("needed", description="run later stages only if needed, or always")

    @model_validator(mode="after")
    def _in_order(self) -> "CascadeOptions":
        if self.low > self.high:
            raise ValueError("cascade.low is above cascade.high")
        return self


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
    critique: Literal["flagged", "all"] = Field(
        "flagged", description="factored: criticise the sentences that the method flags, or all that it judged, as published"
    )
    source_words: int = Field(
        800, ge=40, description="maximal number of source words shown for a rewrite; of longer sources, the nearest chunks"
    )
