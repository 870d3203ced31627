"""Choosing one of several labels at a server: as few requests as possible until the probabilities of all are known."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from knowhalu.errors import ReplyError
from knowhalu.llm.dialects import ServerSession
from knowhalu.llm.label_probabilities import MIN_CHOICE_MASS, LabelProbabilitySearch, pick_label
from knowhalu.llm.label_tokens import MASKED, MAX_NAMED, LabelSearch, LabelTokens, LabelTokenTree, read_lines, write_lines
from knowhalu.llm.server_reply import ServerReply
from knowhalu.llm.thinking import opens_thinking
from knowhalu.requests import Completion, Generate

Tokenize = Callable[[Generate, str], Awaitable[list[int] | None]]
"""Returns the tokens of a text by the server of a request; None where it has no tokenizer to offer."""
LabelKey = tuple[tuple[str, ...], tuple[str, ...]]
"""What may stand before a label, and the labels."""
MAX_TREES = 4096
"""Sets of labels whose tokens are kept."""
UNKNOWN = -1
"""The number of a token whose number the server does not tell."""


class Post(Protocol):
    """Sends one request to the server."""

    async def __call__(
        self, request: Generate, session: ServerSession, max_tokens: int, *,
        constrained: bool = True, tokens: LabelTokens | None = None,
    ) -> ServerReply:  # fmt: skip
        """Return the server's reply."""


class _Measured(NamedTuple):
    """The probabilities of labels, empty where they are not known, and the replies that told them."""

    probabilities: dict[str, float]
    replies: list[ServerReply]


class ServerChoice:
    """Measure the probabilities of choices by requests to a server, which errors call `shown_url`."""

    def __init__(self, post: Post, tokenize: Tokenize, shown_url: str) -> None:
        self._post, self._tokenize, self._shown_url = post, tokenize, shown_url
        self._trees: dict[LabelKey, LabelTokenTree | None] = {}
        self._reading: dict[tuple[asyncio.AbstractEventLoop, LabelKey], asyncio.Task[None]] = {}

    async def choose(self, request: Generate, session: ServerSession) -> Completion:
        """Return one of the choices, with the probabilities of all where they can be measured.

        Raises ReplyError where the reply is none of the choices, or the model would write something else.
        """
        by_tokens = await self._measure_by_tokens(request, session)
        spent = by_tokens.replies if by_tokens else []
        if by_tokens and by_tokens.probabilities:
            label = pick_label(by_tokens.probabilities, request.temperature, request.seed)
            return _completion(label, by_tokens.probabilities, (), "", spent)
        # where the tokens of labels have too little mass, the model shows without a constraint what it would write instead
        constrained = by_tokens is None
        measured, search = await self._measure_by_text(request, session, constrained=constrained)
        first = measured.replies[0]
        self._check_answers(search, first)
        if measured.probabilities:
            label = pick_label(measured.probabilities, request.temperature, request.seed)
        else:
            label = self._label_in_text(first, search, session)
        return _completion(label, measured.probabilities, first.logprobs, first.thinking, spent + measured.replies)

    async def _measure_by_tokens(self, request: Generate, session: ServerSession) -> _Measured | None:
        """Measure by named tokens, mostly in one request; None where the server cannot, or the model thinks first.

        There are no probabilities where the model would write something else.
        """
        if session.constrain != "tokens" or not session.top or (session.thinks and not session.prefill(request)[0]):
            return None
        greedy = replace(request, temperature=0.0)
        tree = await self._label_tree(greedy, session)
        if tree is None:
            return None
        search, replies = LabelSearch(tree), list[ServerReply]()
        while (tokens := search.next()) is not None:
            replies.append(await self._post(greedy, session, tokens.length, tokens=tokens))
            if (measured := _read_named(replies[-1], tokens)) is None:
                session.constrain = "structured"
                return None
            search.read(*measured)
        return _Measured(search.probabilities() if search.mass > MIN_CHOICE_MASS else {}, replies)

    async def _measure_by_text(
        self, request: Generate, session: ServerSession, *, constrained: bool
    ) -> tuple[_Measured, LabelProbabilitySearch]:  # fmt: skip
        """Measure by the likeliest tokens of a reply that is constrained to the choices, as far as the server can do so.

        Where it is not, decode greedily: that tells more than a sampled reply.
        """
        longest = max(map(len, request.choices)) + 4
        greedy = session.top and request.temperature > 0 and (session.constrain == "logprobs" or not constrained)
        reply = None
        if greedy:
            reply = await self._post(replace(request, temperature=0.0), session, longest, constrained=constrained)
        if reply is None or not reply.positions:
            reply = await self._post(request, session, longest, constrained=constrained)
        return await self._search(replace(request, temperature=0.0), session, reply)

    async def _search(
        self, request: Generate, session: ServerSession, first: ServerReply
    ) -> tuple[_Measured, LabelProbabilitySearch]:  # fmt: skip
        """Send further requests until the probabilities of all choices are known.

        After a reply that could not be begun, or that the model thought about, nothing can be continued: what it left open has
        no probability.
        """
        search, replies = LabelProbabilitySearch(request.choices), [first]
        search.read("", first.positions)
        begun = request.prefill if session.style == "completion" else request.prefill.rstrip()
        continues = session.prefills and not first.thought
        while continues and (text := search.next()) is not None:
            further = replace(request, prefill=begun + text)
            if session.prefill(further)[1]:  # a chat template may trim it, and the model would continue from another text
                search.read(text, ())
                continue
            replies.append(await self._post(further, session, 1, constrained=False))
            search.read(text, replies[-1].positions)
        complete = continues or search.next() is None
        return _Measured(search.probabilities() if complete else {}, replies), search

    async def _label_tree(self, request: Generate, session: ServerSession) -> LabelTokenTree | None:
        """Return the tokens of a request's labels; None where they are not known."""
        key = (tuple(session.leads(request)), request.choices)
        if key not in self._trees:  # requests that arrive meanwhile wait for the same answer
            place = (asyncio.get_running_loop(), key)
            if place not in self._reading:
                self._reading[place] = asyncio.create_task(self._read_tree(request, session, key))
                self._reading[place].add_done_callback(lambda _: self._reading.pop(place))
            await asyncio.shield(self._reading[place])
        return self._trees.get(key)

    async def _read_tree(self, request: Generate, session: ServerSession, key: LabelKey) -> None:
        """Ask the server's own tokenizer for the tokens of labels; one that has none is not asked again."""
        text = write_lines(*key)
        tokens = await self._tokenize(request, text) if text is not None and session.constrain == "tokens" else []
        if tokens is None:
            session.constrain = "structured"
            return
        if len(self._trees) >= MAX_TREES:
            self._trees.clear()
        ways = read_lines(tokens, *key)
        tree = LabelTokenTree(ways) if ways else None
        self._trees[key] = tree if tree and len(tree.named) <= MAX_NAMED else None

    def _check_answers(self, search: LabelProbabilitySearch, reply: ServerReply) -> None:
        """Raise ReplyError where the model would think or write something else than a label, which a constraint hides."""
        (token, probability), mass = search.likeliest_start, search.mass
        thinks = opens_thinking(token)
        if mass is None or (mass > search.min_mass and not (thinks and probability > mass)):
            return
        wants = "the model thinks before it answers" if thinks else "the model would write something else"
        reason = f"{wants} where a label belongs ({token!r}); all labels together have the probability {mass:.2g}"
        raise ReplyError("generate", f"{self._shown_url}: {reason}", reply=reply.text)

    def _label_in_text(self, reply: ServerReply, search: LabelProbabilitySearch, session: ServerSession) -> str:
        """Return the choice with which a reply without log-probabilities begins, if it names no other."""
        text = reply.text.strip()
        named = [c for c in search.choices if re.search(rf"(?<!\w){re.escape(c)}(?!\w)", text)]
        if len(named) == 1 and text.startswith(named[0]):
            return named[0]
        reason = f"{self._shown_url}: the reply is none of {', '.join(search.choices)}, and has no log-probabilities"
        used = f"{session.dialect.name} was used with llm.constrain = {session.constrain!r}"
        cure = "Set llm.dialect or llm.constrain, or try another server"
        raise ReplyError("generate", f"{reason}. {used}. {cure}", reply=reply.text)


def _completion(
    label: str, probabilities: dict[str, float], logprobs: tuple[float, ...], thinking: str, replies: Sequence[ServerReply]
) -> Completion:
    prompt, cached, completion = (
        sum(counts) for counts in zip(*((r.prompt_tokens, r.cached_tokens, r.completion_tokens) for r in replies), strict=True)
    )
    return Completion(label, "stop", probabilities, logprobs, prompt, cached, completion, thinking=thinking)


def _read_named(reply: ServerReply, tokens: LabelTokens) -> tuple[list[int], list[dict[int, float]]] | None:
    """Return the generated tokens and the log-probabilities of the named ones at each; None where these are not the model's.

    A server that does not know the fields ignores them; one that was started with processed log-probabilities takes them after
    the constraint, so that all but the allowed tokens are impossible.
    """
    generated = [_token_id(position.token) for position in reply.positions]
    logprobs = [{_token_id(token): logprob for token, logprob in position.top} for position in reply.positions]
    known = all(name in at and at[name] > MASKED for at in logprobs for name in tokens.named)
    return (generated, logprobs) if generated and known and UNKNOWN not in generated else None


def _token_id(token: str) -> int:
    """Return the number of a token that vLLM writes as `token_id:NUMBER`."""
    number = token.removeprefix("token_id:")
    return int(number) if number != token and number.isdecimal() else UNKNOWN
