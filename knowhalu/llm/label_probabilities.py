"""Labels: how probable each allowed choice is, from the log-probabilities of generated tokens alone.

Tokenizers cut labels differently: INCORRECT and INCONCLUSIVE may share their first token, a label may begin with a blank.
So nothing here knows tokens: what counts is which choices the text that a token leads to can still become. The probability
of a choice is the share of the model's own, unconstrained mass that flows into it, normalised over the choices. A text that
can only become one choice counts for it whole; a text that can become several is split by what the model says after it.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MIN_TEXT_MASS = 1e-4
"""Shared beginnings with less than this share of the mass are not looked into: no probability moves by more."""
MIN_CHOICE_MASS = 1e-3
"""Where less than this share of the mass goes to any choice, the model wants to say something else: it tells nothing of them."""
MAX_QUESTIONS = 12
"""Questions about one label at most."""


class TokenLogprobs(NamedTuple):
    """One generated token, and the likeliest tokens in its place: texts with natural logarithms of probabilities."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


class LabelProbabilitySearch:
    """Find the probabilities of choices by asking as little as possible.

    Take `next()`, let the model go on from there, hand what it said to `read`, until `next()` is None. With all tokens in
    `top` and a floor of 0 the probabilities are exact; with the k likeliest they are exact up to the mass left out.
    """

    def __init__(
        self, choices: Sequence[str], *, floor: float = MIN_TEXT_MASS, heard: float = MIN_CHOICE_MASS, asks: int = MAX_QUESTIONS
    ) -> None:
        self.choices, self.floor, self.heard, self.asks = tuple(choices), floor, heard, asks
        self._after: dict[str, dict[str, float]] = {}
        self._asked: set[str] = set()

    def next(self) -> str | None:
        """Return the text, "" at first, whose continuation would tell most; None where nothing more is worth asking."""
        settled, unsettled = self._flow()
        total = sum(settled.values()) + sum(unsettled.values())
        left = {text: mass for text, mass in unsettled.items() if text not in self._asked and mass >= self.floor * total}
        return max(left, key=left.__getitem__) if left and len(self._asked) < self.asks else None

    def read(self, text: str, positions: Iterable[TokenLogprobs]) -> None:
        """Take in what the model said when it went on from `text`: any number of tokens, the first one at least."""
        self._asked.add(text)
        for position in positions:
            self._after.setdefault(text, _token_probabilities(position))
            text += position.token

    def probabilities(self) -> dict[str, float]:
        """Return the probability of each choice, adding up to 1; empty where the model hardly thinks of any."""
        settled, unsettled = self._flow()
        if not self._after:
            return {}
        for text, mass in unsettled.items():  # what was not looked into is shared evenly: it is too little to matter
            able = self.candidates(text)
            if len(able) < len(self.choices):  # mere blanks tell nothing
                for choice in able:
                    settled[choice] += mass / len(able)
        total = sum(settled.values())
        return {c: mass / total for c, mass in settled.items()} if total > self.heard else {}

    def candidates(self, text: str) -> list[str]:
        """Return the choices that a text is or may become; a text may begin with blanks and go on after a choice."""
        text = text.lstrip()
        ended = max((c for c in self.choices if text.startswith(c)), key=len, default=None)
        return [c for c in self.choices if c == ended or c.startswith(text)]

    def _flow(self) -> tuple[dict[str, float], dict[str, float]]:
        """Let a mass of 1 flow along all that is known; return what reached each choice, and what stands where unsettled."""
        settled, unsettled = dict.fromkeys(self.choices, 0.0), dict[str, float]()
        flowing = [("", 1.0)]
        while flowing:
            text, mass = flowing.pop()
            able = self.candidates(text)
            after = {token: p for token, p in self._after.get(text, {}).items() if token and self.candidates(text + token)}
            ended = text.lstrip()
            if len(able) == 1:
                settled[able[0]] += mass
            elif text not in self._after:
                unsettled[text] = unsettled.get(text, 0.0) + mass
            else:
                flowing += [(text + token, mass * p) for token, p in after.items()]
                if ended in settled:  # the end of the text, or a token too rare to be listed
                    settled[ended] += mass * max(0.0, 1.0 - sum(after.values()))
        return settled, unsettled


def _token_probabilities(position: TokenLogprobs) -> dict[str, float]:
    """Return the probability of each token's text: tokens of the same text count together, the generated one once."""
    tokens = list(position.top)
    if not any(t == position.token and math.isclose(p, position.logprob, abs_tol=1e-6) for t, p in tokens):
        tokens.append((position.token, position.logprob))
    found: dict[str, float] = {}
    for text, logprob in tokens:
        found[text] = found.get(text, 0.0) + math.exp(min(logprob, 0.0))
    return found


def pick_label(probabilities: Mapping[str, float], temperature: float, seed: int) -> str:
    """Return the likeliest choice at temperature 0, else draw one; the same seed draws the same."""
    if temperature <= 0:
        return max(probabilities, key=probabilities.__getitem__)
    # relative to the best one, so that a low temperature cannot round all weights to nothing
    best = max(probabilities.values())
    weights = [(p / best) ** (1 / temperature) for p in probabilities.values()]
    return random.Random(seed).choices(list(probabilities), weights)[0]
