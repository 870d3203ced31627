"""The options of CoNLI."""

from typing import Literal

from pydantic import Field

from knowhalu.types import Record


class ConliOptions(Record):
    """Options of CoNLI."""

    levels: Literal["both", "sentence", "entity"] = Field(
        "both", description="whole sentences, the entities of those that pass, or the entities of all"
    )
    select: bool = Field(True, description="leave out what claims nothing: greetings, headings, questions, markup")
    entities: str = Field("rules", description='who finds entities: "rules", "spacy:FOLDER" or "gliner:FOLDER"')
    batched: bool = Field(False, description="several hypotheses in one prompt: fewer calls, but labels without probabilities")
    batch_size: int = Field(8, ge=1, le=50, description="hypotheses in one prompt at most, where they are batched")
    source_words: int = Field(2000, ge=40, description="words of the sources that are read whole; of longer ones, chunks are")
    passages: int = Field(3, ge=1, le=100, description="passages of an index for each sentence, where a sample has no source")
