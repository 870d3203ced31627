"""The options of CoNLI."""

from typing import Literal

from pydantic import Field

from knowhalu.types import Record


class ConliOptions(Record):
    """Options of CoNLI."""

    levels: Literal["both", "sentence", "entity"] = Field(
        "both",
        description="sentence: sentences only; both: also the entities of sentences that pass; entity: entities of all sentences",
    )
    select: bool = Field(True, description="skip sentences without a claim: greetings, headings, questions, markup")
    entities: str = Field("rules", description='entity recognition: "rules", "spacy:FOLDER" or "gliner:FOLDER"')
    batched: bool = Field(
        False, description="judge several hypotheses in one prompt: fewer calls, but labels without probabilities"
    )
    batch_size: int = Field(8, ge=1, le=50, description="maximal number of hypotheses in one prompt, if batched")
    source_words: int = Field(
        2000, ge=40, description="sources up to this number of words are read in full; of longer ones, the nearest chunks"
    )
    passages: int = Field(3, ge=1, le=100, description="passages retrieved from an index per sentence, if a sample has no source")
