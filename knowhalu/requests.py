"""Typed requests: a method yields what it needs from the outside, and receives the reply."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from knowhalu.types import Document, Passage

R = TypeVar("R")
T = TypeVar("T")


class Request(Generic[R]):
    """The base of all requests; `R` is the type of the reply."""


Conversation = Generator[Request[Any], Any, T]
"""A generator that yields requests, receives their replies and returns a T."""


def ask(request: Request[R]) -> Conversation[R]:
    """Yield one request and return its reply.

    In `scores = yield from ask(Entail(pairs))`, a type checker knows the type of `scores`. Raises StageError where the
    request could not be answered.
    """
    reply: R = yield request
    return reply


class Probabilities(NamedTuple):
    """Probabilities that a premise supports a claim, contradicts it, or does neither; they add up to 1."""

    supported: float
    contradicted: float
    neutral: float


class EntailmentPair(NamedTuple):
    """A premise and a claim that is compared with it; with a question, the claim is an answer to it."""

    premise: str
    claim: str
    question: str | None = None


@dataclass(frozen=True)
class Entail(Request[list[Probabilities]]):
    """Request the entailment probabilities of each pair. Reply: `list[Probabilities]`, in order.

    `light` pairs are many and short, and decide little each: the smaller of two verifiers answers them where a run has two.
    """

    pairs: tuple[EntailmentPair, ...]
    light: bool = False


class UnsupportedSpan(NamedTuple):
    """Characters `[start:end]` of a claim that its premise does not support, and the probability of that."""

    start: int
    end: int
    probability: float


@dataclass(frozen=True)
class TagSpans(Request[list[tuple[UnsupportedSpan, ...]]]):
    """Request the spans of each claim that its premise does not support. Reply: `list[tuple[UnsupportedSpan, ...]]`, in order."""

    pairs: tuple[EntailmentPair, ...]


@dataclass(frozen=True)
class Search(Request[list[list[Passage]]]):
    """Request the `k` best passages for each query. Reply: `list[list[Passage]]`, best first.

    With `documents`, their chunks are searched; without, the index is.
    """

    queries: tuple[str, ...]
    k: int
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Completion:
    """What an LLM generated, without the `prefill` and without the stop string.

    `finish_reason` is "stop" or "length". `choices` maps each choice of the request to its probability, adding up to 1; it is
    empty where the backend cannot measure them. `logprobs` are natural logarithms, one for each generated token, where the
    backend returns them; a reply from the reply cache has their sum alone. Of `prompt_tokens`, `cached_tokens` were taken from
    a cache. A `reused` reply comes from the reply cache; its token counts are those of the original call. `thinking` is what a
    reasoning model wrote before its answer.

    The probability of a choice is the model's probability to continue with it, divided by the sum over the choices; a
    temperature does not change it. In process it is that of one token sequence, the tokenization of the choice
    (`knowhalu.llm.local.decode`). At a server it is the mass of all tokens that lead to the choice's text, read from the top
    log-probabilities of generated tokens (`knowhalu.llm.label_probabilities`); where the server takes these after its
    constraint, as vLLM does, each token's are already normalised over what the constraint still allows.
    """

    text: str
    finish_reason: str = "stop"
    choices: dict[str, float] = field(default_factory=dict)
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reused: bool = False
    thinking: str = ""


WRITER, CRITIC = "writer", "critic"
"""The roles for which a run may have a language model of its own: it writes and rewrites texts, or criticises sentences."""


@dataclass(frozen=True)
class Generate(Request[Completion]):
    """Request an LLM's continuation of a prompt. Reply: `Completion`.

    A chat model receives `system` and `prompt` as messages and continues a reply that begins with `prefill`; a completion model
    continues all of it as one text. `turns` are the offsets in the prompt at which the turns of the user and the model begin by
    turns; what is before the first is the instruction. Without turns, the prompt is one message. The first `fixed` characters
    of the prompt are the same for every sample. With `choices`, the reply is one of them. With `bypass_cache`, a stored reply is
    not used. The model of the `role` answers where a run has one of its own for it.
    """

    prompt: str
    system: str = ""
    prefill: str = ""
    fixed: int = 0
    stop: tuple[str, ...] = ()
    max_tokens: int = 256
    choices: tuple[str, ...] = ()
    temperature: float = 0.0
    seed: int = 0
    bypass_cache: bool = False
    turns: tuple[int, ...] = ()
    role: str = ""
