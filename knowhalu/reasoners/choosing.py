"""Choosing one of a few words under constraint, where they are no labels: read strictly, and never guessed."""

import re
from collections.abc import Sequence
from dataclasses import replace

from knowhalu.errors import ReplyError
from knowhalu.reasoners.asking import asked_twice
from knowhalu.steps import Completion, Generate, Steps

CHOICE_TOKENS = 8


def chosen(request: Generate, choices: Sequence[str], stage: str) -> Steps[str]:
    """Go on from an open section to one of the choices; raises ReplyError where two replies name none, or several."""
    ask = replace(request, begun="\n", stop=(), max_tokens=CHOICE_TOKENS, choices=tuple(choices))
    restated = replace(ask, begun=f"\nOne of {', '.join(choices)}:\n")
    _, choice = yield from asked_twice(ask, lambda c: _read(c, choices, stage), lambda c: restated)
    return choice


def _read(reply: Completion, choices: Sequence[str], stage: str) -> str:
    if set(reply.choices) == set(choices) and sum(reply.choices.values()) > 0:
        return max(choices, key=lambda one: (reply.choices[one], one == reply.text.strip()))
    bare = reply.text.strip(" \n\t.*_\"'()[]").casefold()
    for one in choices:
        if bare == one.casefold():
            return one
    words = "|".join(map(re.escape, choices))
    found = set(re.findall(rf"(?<![\w/])(?:{words})(?![\w/])", reply.text))
    if len(found) != 1:
        raise ReplyError(stage, f"the reply names {'several' if found else 'none'} of {', '.join(choices)}", reply=reply.text)
    return str(found.pop())
