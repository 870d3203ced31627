"""Why a text was left open, and what its user can do then."""

from collections.abc import Mapping
from enum import StrEnum


class OpenReason(StrEnum):
    """What was missing for a decision."""

    NOTHING_RETRIEVED = "nothing_retrieved"
    OFF_TOPIC = "off_topic"
    CONFLICTING = "conflicting"
    UNSURE = "unsure"
    FORMS_DISAGREE = "forms_disagree"
    NOTHING_TO_CHECK = "nothing_to_check"

    @property
    def says(self) -> str:
        """Return the reason in words."""
        return _SAYS[self]

    @property
    def next_action(self) -> str:
        """Return in one sentence what the user does next."""
        return _NEXT[self]


_SAYS: Mapping[OpenReason, str] = {
    OpenReason.NOTHING_RETRIEVED: "there is no source to check it by",
    OpenReason.OFF_TOPIC: "the sources speak of something else",
    OpenReason.CONFLICTING: "one source supports it and another contradicts it",
    OpenReason.UNSURE: "the judge is not sure",
    OpenReason.FORMS_DISAGREE: "the two forms of knowledge disagree",
    OpenReason.NOTHING_TO_CHECK: "it states nothing that can be checked",
}
_NEXT: Mapping[OpenReason, str] = {
    OpenReason.NOTHING_RETRIEVED: (
        "Add sources that speak of it (--knowledge, --document, or documents for the index), or fetch more passages for each "
        "query."
    ),
    OpenReason.OFF_TOPIC: (
        "Look at the passages that were found: if none speaks of the matter, add sources that do, or fetch more passages for "
        "each query."
    ),
    OpenReason.CONFLICTING: "Read the quotes for and against it, and leave out the source that is not to be trusted.",
    OpenReason.UNSURE: (
        "Ask a stronger judge (--reasoner llm, a larger model or another method), or set the thresholds on labelled rows of your "
        "own (knowhalu calibrate)."
    ),
    OpenReason.FORMS_DISAGREE: (
        "Read the two judgments and the knowledge that each rests on, or let knowhalu calibrate find which form to believe when."
    ),
    OpenReason.NOTHING_TO_CHECK: (
        "Nothing is to be done if it should state no fact; else write its facts as whole sentences and check it again."
    ),
}
