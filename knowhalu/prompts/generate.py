"""Requests to an LLM, with one retry that gives the beginning of the reply where the first one cannot be read.

Replies from the cache that cannot be read are requested again from the model.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from knowhalu.errors import ReplyError
from knowhalu.prompts.template import Prompt, section, shield
from knowhalu.requests import Completion, Conversation, Generate
from knowhalu.settings import LLMOptions

T = TypeVar("T")


def make_request(prompt: Prompt, options: LLMOptions, **values: str) -> Generate:
    """Make the request of a prompt; the system prompt of the options overrides that of the prompt."""
    system = prompt.system if options.system is None else options.system
    return Generate(
        prompt=prompt.render(**values), system=system, fixed=len(prompt.fixed), stop=prompt.stop, max_tokens=prompt.max_tokens,
        seed=options.seed,
    )  # fmt: skip


def generate_with_retry(
    request: Generate, read: Callable[[Completion], T], again: Callable[[Completion], Generate], *, joins: bool = False
) -> Conversation[tuple[Completion, T]]:
    """Return the first reply that can be read, and what `read` makes of it; raises ReplyError with the last raw reply.

    `again` makes the second request. With `joins`, its reply may have to be read together with its given beginning; a server
    that cannot continue a reply repeats it, so the reply is read alone first.
    """
    for fresh in (False, True):
        first: Completion = yield replace(request, bypass_cache=fresh)
        try:
            return first, read(first)
        except ReplyError:
            second = replace(again(first), bypass_cache=fresh)
        completion: Completion = yield second
        try:
            return completion, read(completion)
        except ReplyError as error:
            last = error
        if joins:
            whole = replace(completion, text=f"{second.prefill}{_missing_line_break(completion.text)}{completion.text}")
            try:
                return whole, read(whole)
            except ReplyError as error:
                last = error
        if not (first.reused or completion.reused):
            break
    cut = f"; it was cut off after {second.max_tokens} tokens" if completion.finish_reason == "length" else ""
    raise ReplyError(last.stage, f"{last.reason}{cut}, also when asked again", reply=completion.text)


def _missing_line_break(text: str) -> str:
    """Return the line break that is missing where a reply repeats the given heading."""
    return "\n" if text.lstrip().startswith(("##", "**")) else ""


def reply_prefix(raw: str, first: str, *more: tuple[str, str], then: str) -> str:
    """Write the beginning of a reply: its first text, further sections, and the heading of the next section, `then`.

    It equals the model's own reply where that kept to the form, so that its KV cache can be reused. Its texts are data.
    """
    space = " " if raw[:1].isspace() else ""
    lines = [f"{space}{shield(first)}" if first else "", *(section(name, text) for name, text in more), section(then)]
    return "\n".join(lines)
