"""How a reply is drawn token by token, where it ends, and which of the allowed choices it is."""

import math
import random
from collections.abc import Mapping, Sequence

import torch

from knowhalu.errors import StageError
from knowhalu.llm.framing import Framed, Framing
from knowhalu.steps import Completion, Generate

BROKEN = "the model's output is not a number; try llm.precision=fp32"


class Reply:
    """A reply that grows until a stop string, an end token or `max_tokens` ends it."""

    def __init__(self, request: Generate, framed: Framed, framing: Framing, ends: frozenset[int]) -> None:
        self.request, self.context, self.framing, self.ends = request, framed.context, framing, ends
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.finish_reason = ""
        self.error: StageError | None = None
        self._random = random.Random(request.seed)

    def draw(self, logprobs: torch.Tensor, best: int) -> int:
        """Draw the next token from the model's log-probabilities (`[vocabulary]`): the best, or by the seed."""
        if self.request.temperature <= 0:
            return best
        warmed = (logprobs.double().cpu() / self.request.temperature).softmax(-1).cumsum(-1)
        found = int(torch.searchsorted(warmed, self._random.random() * float(warmed[-1]), right=True))
        return min(found, len(warmed) - 1)

    @property
    def over(self) -> bool:
        """Tell whether nothing more is to be drawn."""
        return bool(self.finish_reason) or self.error is not None

    def add(self, token: int, logprob: float) -> bool:
        """Take the next token; tells whether the reply is over."""
        if math.isnan(logprob):
            self.error = StageError("generate", BROKEN, reply=self.text())
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
        found = [at for s in self.request.stop if s and (at := text.find(s)) >= 0]
        return min(found, default=None)

    def text(self) -> str:
        """Return the text before the first stop string."""
        text = self._written()
        return text[: self._stop_at(text)]

    def completion(self, cached: int) -> Completion:
        """Return the whole reply; of its prompt's tokens, `cached` were not computed anew. Raises StageError."""
        if self.error:
            raise self.error
        return Completion(
            self.text(), self.finish_reason, {}, tuple(self.logprobs), len(self.context), cached, len(self.tokens)
        )  # fmt: skip


def chosen(request: Generate, framed: Framed, logprobs: Sequence[Sequence[float]], cached: int) -> Completion:
    """Choose by the log-probabilities of each choice's tokens: the likeliest, or by the seed where there is a temperature.

    A choice's probability is that of its token sequence, normalised over the choices; the temperature does not change it.
    Raises StageError where the model broke down.
    """
    sums = [math.fsum(s) for s in logprobs]
    if not all(math.isfinite(s) for s in sums):
        raise StageError("generate", BROKEN)
    probabilities = normalised(dict(zip(request.choices, sums, strict=True)))
    text = max(probabilities, key=lambda c: probabilities[c])
    if request.temperature > 0:
        warmed = normalised({c: s / request.temperature for c, s in zip(request.choices, sums, strict=True)})
        text = random.Random(request.seed).choices(list(warmed), list(warmed.values()))[0]
    at = request.choices.index(text)
    return Completion(
        text, "stop", probabilities, tuple(logprobs[at]), len(framed.context), cached, len(framed.choices[at])
    )  # fmt: skip


def normalised(sums: Mapping[str, float]) -> dict[str, float]:
    """Turn log-probabilities into probabilities that add up to 1."""
    top = max(sums.values())
    weights = {c: math.exp(s - top) for c, s in sums.items()}
    total = math.fsum(weights.values())
    return {c: w / total for c, w in weights.items()}
