"""Writes replies and scores choices: side by side over a shared prefix, or one after the other."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch

from knowhalu.errors import StageError
from knowhalu.llm.attention import Columns
from knowhalu.llm.contexts import Contexts, Read, batches
from knowhalu.llm.decoding import Reply, chosen
from knowhalu.llm.forward import Alone
from knowhalu.llm.framing import Framed
from knowhalu.steps import Completion, Generate

Answer = Completion | StageError


@dataclass(frozen=True)
class Job:
    """A request, its place among the others, and the tokens that it makes."""

    number: int
    request: Generate
    framed: Framed
    reply: Reply

    @property
    def room(self) -> int:
        """Return the tokens that may follow the context."""
        return max(map(len, self.framed.choices)) if self.framed.choices else self.request.max_tokens


def answer_alone(alone: Alone, job: Job) -> Answer:
    """Answer one request from its first token on."""
    reply = job.reply
    logits, cache = alone.read(job.framed.context)
    if job.framed.choices:
        return _chosen(job, [_followed(alone, logits, deepcopy(cache), c) for c in job.framed.choices], 0)
    while True:
        [(token, over)] = _step([reply], logits)
        if over:
            return _finished(reply, 0)
        logits, cache = alone.read([token], cache)


def _followed(alone: Alone, logits: torch.Tensor, cache: object, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token, given the logits before the first; the cache is used up."""
    found = []
    for i, token in enumerate(tokens):
        if i:
            logits, cache = alone.read([tokens[i - 1]], cache)
        found += _gathered(logits.log_softmax(-1), [token])
    return found


class Together:
    """Answer requests that share a beginning."""

    def __init__(self, contexts: Contexts, keep_replies: bool) -> None:
        self.contexts, self.shared, self.keep_replies = contexts, contexts.shared, keep_replies

    def answer(self, jobs: Sequence[Job]) -> dict[int, Answer]:
        """Read all contexts, equal ones once, then write and score; returns the answers by the jobs' numbers."""
        texts = list(dict.fromkeys(j.framed.context for j in jobs))
        prefix, found = self.contexts.read(texts)
        by_text = dict(zip(texts, found, strict=True))
        reads: dict[int, Read] = {}
        for job in jobs:
            reads[job.number] = by_text[job.framed.context]
            again = reads[job.number]._replace(cached=len(job.framed.context))  # for whoever asks the same once more
            by_text[job.framed.context] = again
        free, bound = [j for j in jobs if not j.framed.choices], [j for j in jobs if j.framed.choices]
        answers = self._write(prefix, free, reads) if free else {}
        return answers | (self._score(prefix, bound, reads) if bound else {})

    def _write(self, prefix: torch.Tensor | None, jobs: Sequence[Job], reads: dict[int, Read]) -> dict[int, Answer]:
        """Write all replies token by token."""
        answers: dict[int, Answer] = {}
        begin = 0 if prefix is None else prefix.shape[-2]
        columns = Columns.of(prefix, [reads[j.number].states for j in jobs], max(j.room for j in jobs))
        logits = torch.stack([reads[j.number].logits for j in jobs])
        rows = list(jobs)
        while True:
            steps = _step([j.reply for j in rows], logits)
            for row, (job, (_, over)) in enumerate(zip(rows, steps, strict=True)):
                if over and job.number not in answers:
                    answers[job.number] = _finished(job.reply, reads[job.number].cached)
                    if self.keep_replies:
                        tokens = (*job.framed.context, *job.reply.tokens[:-1])
                        self.contexts.prefixes.keep(tokens, columns.states(row), begin)
            if len(answers) == len(jobs):
                return answers
            live = [row for row, (_, over) in enumerate(steps) if not over]
            if len(live) <= len(rows) // 2:
                columns, rows, steps = columns.take(live), [rows[i] for i in live], [steps[i] for i in live]
            logits = self.shared.read(columns, [[token] for token, _ in steps])[:, -1]

    def _score(self, prefix: torch.Tensor | None, jobs: Sequence[Job], reads: dict[int, Read]) -> dict[int, Answer]:
        """Score every choice as a continuation of its context."""
        scores = {
            (j.number, c): _gathered(reads[j.number].logits[None].log_softmax(-1), c[:1]) for j in jobs for c in j.framed.choices
        }
        longer = [(j, c) for j in jobs for c in j.framed.choices if len(c) > 1]
        for batch in batches([len(c) - 1 for _, c in longer], self.contexts.at_once):
            part = [longer[i] for i in batch]
            new = max(len(c) - 1 for _, c in part)
            columns = Columns.of(prefix, [reads[j.number].states for j, _ in part], new)
            logprobs = self.shared.read(columns, [c[:-1] for _, c in part], keep=new).log_softmax(-1)
            for row, (job, choice) in enumerate(part):
                scores[job.number, choice] += _gathered(logprobs[row, new - len(choice) + 1 :], choice[1:])
        return {j.number: _chosen(j, [scores[j.number, c] for c in j.framed.choices], reads[j.number].cached) for j in jobs}


def _step(replies: Sequence[Reply], logits: torch.Tensor) -> list[tuple[int, bool]]:
    """Draw the next token of every reply that is not over; returns each one's token and whether it is over now."""
    logprobs = logits.log_softmax(-1)
    best = logprobs.argmax(-1).tolist()
    tokens = [b if r.over else r.draw(logprobs[i], b) for i, (r, b) in enumerate(zip(replies, best, strict=True))]
    picked = logprobs.gather(-1, torch.tensor(tokens, device=logits.device)[:, None])[:, 0].tolist()
    return [(t, r.over or r.add(t, p)) for r, t, p in zip(replies, tokens, picked, strict=True)]


def _gathered(logprobs: torch.Tensor, tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each token in its row of `[tokens, vocabulary]`."""
    at = torch.tensor(list(tokens), device=logprobs.device)
    return [float(p) for p in logprobs.gather(-1, at[:, None])[:, 0].tolist()]


def _finished(reply: Reply, cached: int) -> Answer:
    try:
        return reply.completion(cached)
    except StageError as error:
        return error


def _chosen(job: Job, logprobs: Sequence[Sequence[float]], cached: int) -> Answer:
    try:
        return chosen(job.request, job.framed, logprobs, cached)
    except StageError as error:
        return error
