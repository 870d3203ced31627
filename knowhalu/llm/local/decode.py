"""Decoding: generate replies token by token and score choices, in batches over a shared prefix."""

import math
import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch

from knowhalu.errors import ReplyError, StageError
from knowhalu.llm.local.attention import BatchedKVCache
from knowhalu.llm.local.forward import PrefilledPrompt, PrefixPrefiller, SinglePromptModel, batch_by_padded_size
from knowhalu.llm.local.prompt_encoding import EncodedPrompt, PromptEncoder
from knowhalu.llm.thinking import without_thinking
from knowhalu.requests import Completion, Generate

Answer = Completion | StageError
NOT_A_NUMBER_MESSAGE = "the model's output is not a number (NaN). Set llm.precision=fp32"


class PartialReply:
    """A reply that grows until a stop string, an end token or `max_tokens` ends it."""

    def __init__(self, request: Generate, framed: EncodedPrompt, framing: PromptEncoder, ends: frozenset[int]) -> None:
        self.request, self.context, self.framing, self.ends = request, framed.context, framing, ends
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.finish_reason = ""
        self.error: StageError | None = None
        self._random = random.Random(request.seed)

    def draw(self, logprobs: torch.Tensor, best: int) -> int:
        """Return the next token by the model's log-probabilities (`[vocabulary]`): `best`, or one sampled by the seed."""
        if self.request.temperature <= 0:
            return best
        cumulative = (logprobs.double().cpu() / self.request.temperature).softmax(-1).cumsum(-1)
        token = int(torch.searchsorted(cumulative, self._random.random() * float(cumulative[-1]), right=True))
        return min(token, len(cumulative) - 1)

    @property
    def over(self) -> bool:
        """Whether the reply is complete."""
        return bool(self.finish_reason) or self.error is not None

    def add(self, token: int, logprob: float) -> bool:
        """Append the next token; returns whether the reply is over."""
        if math.isnan(logprob):
            self.error = StageError("generate", NOT_A_NUMBER_MESSAGE, reply=self.text())
            return True
        self.tokens.append(token)
        self.logprobs.append(logprob)
        if token in self.ends or (self.request.stop and self._stop_at(self._written()) is not None):
            self.finish_reason = "stop"
        elif len(self.tokens) >= self.request.max_tokens:
            self.finish_reason = "length"
        return self.over

    def _written(self) -> str:
        tokens = self.tokens[:-1] if self.tokens and self.tokens[-1] in self.ends else self.tokens
        return self.framing.reply(self.context, tokens)

    def _stop_at(self, text: str) -> int | None:
        starts = [at for s in self.request.stop if s and (at := text.find(s)) >= 0]
        return min(starts, default=None)

    def text(self) -> str:
        """Return the text before the first stop string."""
        text = self._written()
        return text[: self._stop_at(text)]

    def answer(self, cached: int) -> Answer:
        """Return the complete reply, with the number of prompt tokens taken from the cache, or its error."""
        if self.error:
            return self.error
        reply = Completion(
            self.text(), self.finish_reason, {}, tuple(self.logprobs), len(self.context), cached, len(self.tokens)
        )  # fmt: skip
        try:
            return without_thinking(reply)
        except ReplyError as error:
            return error


def choose_label(request: Generate, framed: EncodedPrompt, logprobs: Sequence[Sequence[float]], cached: int) -> Answer:
    """Choose by the log-probabilities of each choice's tokens: the most probable, or one sampled at the temperature.

    The probability of a choice is that of its token sequence, normalised over the choices; the temperature does not change it.
    The answer is an error where a log-probability is not finite.
    """
    sums = [math.fsum(s) for s in logprobs]
    if not all(math.isfinite(s) for s in sums):
        return StageError("generate", NOT_A_NUMBER_MESSAGE)
    probabilities = _normalise(dict(zip(request.choices, sums, strict=True)))
    text = max(probabilities, key=lambda c: probabilities[c])
    if request.temperature > 0:
        weights = _normalise({c: s / request.temperature for c, s in zip(request.choices, sums, strict=True)})
        text = random.Random(request.seed).choices(list(weights), list(weights.values()))[0]
    at = request.choices.index(text)
    return Completion(
        text, "stop", probabilities, tuple(logprobs[at]), len(framed.context), cached, len(framed.choices[at])
    )  # fmt: skip


def _normalise(sums: Mapping[str, float]) -> dict[str, float]:
    """Return probabilities that add up to 1."""
    top = max(sums.values())
    weights = {c: math.exp(s - top) for c, s in sums.items()}
    total = math.fsum(weights.values())
    return {c: w / total for c, w in weights.items()}


@dataclass(frozen=True)
class DecodingJob:
    """A request, its index among the others, its encoded prompt and its reply."""

    number: int
    request: Generate
    framed: EncodedPrompt
    reply: PartialReply

    @property
    def room(self) -> int:
        """The most tokens that may follow the context."""
        return max(map(len, self.framed.choices)) if self.framed.choices else self.request.max_tokens


def decode_single(alone: SinglePromptModel, job: DecodingJob) -> Answer:
    """Answer one request, computing its prompt from the first token."""
    reply = job.reply
    logits, cache = alone.read(job.framed.context)
    if job.framed.choices:
        logprobs = [_continuation_logprobs(alone, logits, deepcopy(cache), c) for c in job.framed.choices]
        return choose_label(job.request, job.framed, logprobs, 0)
    while True:
        [(token, over)] = _draw_tokens([reply], logits)
        if over:
            return reply.answer(0)
        logits, cache = alone.read([token], cache)


def _continuation_logprobs(alone: SinglePromptModel, logits: torch.Tensor, cache: object, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token, given the logits before the first; changes the cache."""
    logprobs: list[float] = []
    for i, token in enumerate(tokens):
        if i:
            logits, cache = alone.read([tokens[i - 1]], cache)
        logprobs += _token_logprobs(logits.log_softmax(-1), [token])
    return logprobs


class SharedPrefixDecoder:
    """Answer requests that share a prefix."""

    def __init__(self, contexts: PrefixPrefiller, keep_replies: bool) -> None:
        self.contexts, self.shared, self.keep_replies = contexts, contexts.shared, keep_replies

    def answer(self, jobs: Sequence[DecodingJob]) -> dict[int, Answer]:
        """Compute all contexts, equal ones once, then generate and score; returns the answers by job number."""
        texts = list(dict.fromkeys(j.framed.context for j in jobs))
        prefix, prompts = self.contexts.read(texts)
        by_text = dict(zip(texts, prompts, strict=True))
        reads: dict[int, PrefilledPrompt] = {}
        for job in jobs:
            reads[job.number] = by_text[job.framed.context]
            reused = reads[job.number]._replace(cached=len(job.framed.context))  # for an equal context in a later job
            by_text[job.framed.context] = reused
        texts_wanted, labels_wanted = [j for j in jobs if not j.framed.choices], [j for j in jobs if j.framed.choices]
        answers = self._generate(prefix, texts_wanted, reads) if texts_wanted else {}
        return answers | (self._score(prefix, labels_wanted, reads) if labels_wanted else {})

    def _generate(
        self, prefix: torch.Tensor | None, jobs: Sequence[DecodingJob], reads: dict[int, PrefilledPrompt]
    ) -> dict[int, Answer]:
        """Generate all replies token by token."""
        answers: dict[int, Answer] = {}
        begin = 0 if prefix is None else prefix.shape[-2]
        columns = BatchedKVCache.of(prefix, [reads[j.number].states for j in jobs], max(j.room for j in jobs))
        logits = torch.stack([reads[j.number].logits for j in jobs])
        rows = list(jobs)
        while True:
            steps = _draw_tokens([j.reply for j in rows], logits)
            for row, (job, (_, over)) in enumerate(zip(rows, steps, strict=True)):
                if over and job.number not in answers:
                    answers[job.number] = job.reply.answer(reads[job.number].cached)
                    if self.keep_replies:
                        tokens = (*job.framed.context, *job.reply.tokens[:-1])
                        self.contexts.prefixes.keep(tokens, columns.states(row), begin)
            if len(answers) == len(jobs):
                return answers
            live = [row for row, (_, over) in enumerate(steps) if not over]
            if len(live) <= len(rows) // 2:
                columns, rows, steps = columns.take(live), [rows[i] for i in live], [steps[i] for i in live]
            logits = self.shared.read(columns, [[token] for token, _ in steps])[:, -1]

    def _score(
        self, prefix: torch.Tensor | None, jobs: Sequence[DecodingJob], reads: dict[int, PrefilledPrompt]
    ) -> dict[int, Answer]:
        """Score every choice as a continuation of its context."""
        scores = {
            (j.number, c): _token_logprobs(reads[j.number].logits[None].log_softmax(-1), c[:1])
            for j in jobs
            for c in j.framed.choices
        }
        longer = [(j, c) for j in jobs for c in j.framed.choices if len(c) > 1]
        for batch in batch_by_padded_size([len(c) - 1 for _, c in longer], self.contexts.at_once):
            pairs = [longer[i] for i in batch]
            new = max(len(c) - 1 for _, c in pairs)
            columns = BatchedKVCache.of(prefix, [reads[j.number].states for j, _ in pairs], new)
            logprobs = self.shared.read(columns, [c[:-1] for _, c in pairs], keep=new).log_softmax(-1)
            for row, (job, choice) in enumerate(pairs):
                scores[job.number, choice] += _token_logprobs(logprobs[row, new - len(choice) + 1 :], choice[1:])
        return {
            j.number: choose_label(j.request, j.framed, [scores[j.number, c] for c in j.framed.choices], reads[j.number].cached)
            for j in jobs
        }


def _draw_tokens(replies: Sequence[PartialReply], logits: torch.Tensor) -> list[tuple[int, bool]]:
    """Append the next token to every unfinished reply; returns the token of each and whether it is now over."""
    logprobs = logits.log_softmax(-1)
    best = logprobs.argmax(-1).tolist()
    tokens = [b if r.over else r.draw(logprobs[i], b) for i, (r, b) in enumerate(zip(replies, best, strict=True))]
    picked = logprobs.gather(-1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0].tolist()
    return [(t, r.over or r.add(t, p)) for r, t, p in zip(replies, tokens, picked, strict=True)]


def _token_logprobs(logprobs: torch.Tensor, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token in its row of `[tokens, vocabulary]`."""
    at = torch.tensor(list(tokens), device=logprobs.device)
    return [float(p) for p in logprobs.gather(-1, at[:, None])[:, 0].tolist()]
