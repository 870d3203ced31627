"""What all requests of revision share: how sources are shown, and how a reply is asked for again and read."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from knowhalu.errors import ReplyError
from knowhalu.prompts.format import format_passages
from knowhalu.prompts.replies import generate_with_retry
from knowhalu.prompts.shielding import unshield
from knowhalu.prompts.template import PromptText, join_sections, section
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.types import Passage

T = TypeVar("T")
NONE_REPLY = "NONE"
RETRY_TEMPERATURE = 0.7
"""Temperature of a request whose first reply could not be read."""
_HEADING = re.compile(
    r"^[ \t]*(?:#{2,6}[ \t]*)?[*_]{0,2}(?:corrected text|rewrite|critique|feedback|summary)[*_]{0,2}:[*_]{0,2}", re.I
)


def generate_revision(request: Generate, read: Callable[[Completion], T]) -> Conversation[T]:
    """Ask once more with more tokens and at a temperature: at temperature 0 the reply would be the same."""
    again = replace(request, max_tokens=2 * request.max_tokens, temperature=RETRY_TEMPERATURE, seed=request.seed + 1)
    _, result = yield from generate_with_retry(request, read, lambda c: again)
    return result


def format_sources(sources: Iterable[Passage]) -> PromptText:
    """Show the passages of the sources, or that there are none."""
    return join_sections(format_passages(sources)) or section("Passage", "(nothing was found)")


def is_none_reply(text: str) -> bool:
    """Tell whether a reply says NONE, and nothing else."""
    return text.strip(" .*_\"'") == NONE_REPLY


def read_text(reply: Completion, stage: str, stops: Sequence[str]) -> str:
    """Return the text of a reply, with its line breaks; raises ReplyError where it is empty or was cut off."""
    text = "\n" + _HEADING.sub("", reply.text.strip(), count=1)
    text = text[: min((text.index(stop) for stop in stops if stop in text), default=len(text))]
    text = unshield(text).strip()
    if not any(c.isalnum() for c in text):
        raise ReplyError(stage, "the reply is empty", reply=reply.text)
    if reply.finish_reason == "length":
        raise ReplyError(stage, "the reply was cut off", reply=reply.text)
    return text
