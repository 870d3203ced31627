"""Requests: what a method may ask for, and what it gets back. A method yields a request and receives its reply."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from knowhalu.types import Document, Passage

T = TypeVar("T")
Conversation = Generator[Any, Any, T]
"""A conversation: it yields requests, receives replies and returns a T."""


class Probabilities(NamedTuple):
    """What the verifier says of one pair; the three add up to 1."""

    supported: float
    contradicted: float
    neutral: float


class EntailmentPair(NamedTuple):
    """A premise and what is claimed of it; with a question, the claim is its answer."""

    premise: str
    claim: str
    question: str | None = None


@dataclass(frozen=True)
class Entail:
    """Ask the encoder how each premise stands to its claim. Reply: `list[Probabilities]`, in order."""

    pairs: tuple[EntailmentPair, ...]


class UnsupportedSpan(NamedTuple):
    """Characters of a claim that its premise does not bear out, and how probably it does not."""

    start: int
    end: int
    probability: float


@dataclass(frozen=True)
class TagSpans:
    """Ask the encoder which words of each claim its premise does not bear out. Reply: `list[tuple[Doubtful, ...]]`, in order."""

    pairs: tuple[EntailmentPair, ...]


@dataclass(frozen=True)
class Search:
    """Ask a retriever for the `k` best passages of each query. Reply: `list[list[Passage]]`, best first.

    With `documents`, these are searched chunk by chunk; without, the index is.
    """

    queries: tuple[str, ...]
    k: int
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Generate:
    """Ask an LLM to go on with a prompt. Reply: `Completion`.

    A chat model gets `system` and `prompt` as its messages and goes on with a reply that begins with `prefill`; a plain
    completion model goes on with all of it as one text. The first `fixed` characters of the prompt are the same for every
    sample. With `choices`, the reply is one of them, and nothing else. With `bypass_cache`, a stored reply is not used.
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


@dataclass(frozen=True)
class Completion:
    """What an LLM wrote, without the `prefill` and without the stop string.

    `finish_reason` is "stop" or "length". `choices` has the probability of each allowed choice, adding up to 1, where the
    request named some; it is empty where the backend cannot tell. `logprobs` are those of the generated tokens, natural
    logarithms, where the backend gives them. Of `prompt_tokens`, `cached_tokens` were not computed anew. A `reused` reply was
    kept from an earlier request: the model was not asked, and the tokens are those of that time.

    The probability of a choice is the model's own probability to go on with it, divided by the sum over the choices; a
    temperature does not change it. In process it is that of one token sequence, the choice as the tokenizer cuts it
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


Request = Entail | TagSpans | Search | Generate
Reply = list[Probabilities] | list[tuple[UnsupportedSpan, ...]] | list[list[Passage]] | Completion
