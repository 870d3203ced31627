"""Compute the probability of each label from the log-probabilities of generated tokens alone.

Tokenizers split labels differently: INCORRECT and INCONCLUSIVE may share their first token, and a label may begin with a space.
So this module works on text, not on tokens: a generated text counts for every choice of which it is a prefix. The probability
of a choice is the share of the model's unconstrained probability mass that leads to it, normalised over the choices. The mass
of a text that is a prefix of several choices is divided among them by the tokens that the model generates next.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MIN_TEXT_MASS = 1e-3
"""A shared prefix with less than this share of the mass is not expanded: no probability changes by more."""
MIN_CHOICE_MASS = 0.1
"""With less than this share of the mass on all choices together, the model would write something else: no probabilities."""
MAX_REQUESTS = 12
"""Requests for one label at most."""


class TokenLogprobs(NamedTuple):
    """One generated token and its most probable alternatives, with natural logarithms of probabilities."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...]


class LabelProbabilitySearch:
    """Find the probabilities of choices with as few requests as possible.

    Take `next()`, generate after that text, give the tokens to `read`, and repeat until `next()` is None. With all tokens in
    `top` and a floor of 0 the probabilities are exact; with the k most probable ones, exact up to the mass left out.
    """

    def __init__(
        self,
        choices: Sequence[str],
        *,
        floor: float = MIN_TEXT_MASS,
        min_mass: float = MIN_CHOICE_MASS,
        max_requests: int = MAX_REQUESTS,
    ) -> None:
        self.choices, self.floor, self.min_mass, self.max_requests = tuple(choices), floor, min_mass, max_requests
        self._after: dict[str, dict[str, float]] = {}
        self._expanded: set[str] = set()

    def next(self) -> str | None:
        """Return the text with the largest unassigned mass, "" at first; None where no further request is worth its cost."""
        assigned, unassigned = self._distribute()
        total = sum(assigned.values()) + sum(unassigned.values())
        open_texts = {t: mass for t, mass in unassigned.items() if t not in self._expanded and mass >= self.floor * total}
        if not open_texts or len(self._expanded) >= self.max_requests:
            return None
        return max(open_texts, key=open_texts.__getitem__)

    def read(self, text: str, positions: Iterable[TokenLogprobs]) -> None:
        """Record the tokens generated after `text`; none where the text cannot be expanded."""
        self._expanded.add(text)
        for position in positions:
            self._after.setdefault(text, _token_probabilities(position))
            text += position.token

    def probabilities(self) -> dict[str, float]:
        """Return the probability of each choice, adding up to 1; empty below the minimum mass."""
        masses = self._choice_masses()
        total = math.fsum(masses.values())
        return {c: mass / total for c, mass in masses.items()} if total > self.min_mass else {}

    @property
    def mass(self) -> float | None:
        """The share of the model's mass on all choices together; None without log-probabilities."""
        return math.fsum(self._choice_masses().values()) if self._after else None

    @property
    def likeliest_start(self) -> tuple[str, float]:
        """The most probable first token and its probability; ("", 0) without log-probabilities."""
        return max(self._after.get("", {"": 0.0}).items(), key=lambda item: item[1])

    def _choice_masses(self) -> dict[str, float]:
        assigned, unassigned = self._distribute() if self._after else ({}, {})
        for text, mass in unassigned.items():  # divided evenly: too little to matter
            candidates = self.candidates(text)
            if len(candidates) < len(self.choices):  # spaces alone say nothing about the choices
                for choice in candidates:
                    assigned[choice] += mass / len(candidates)
        return assigned

    def candidates(self, text: str) -> list[str]:
        """Return the choices that a text contains or may become; it may begin with spaces and continue after a choice."""
        text = text.lstrip()
        complete = max((c for c in self.choices if text.startswith(c)), key=len, default=None)
        return [c for c in self.choices if c == complete or c.startswith(text)]

    def _distribute(self) -> tuple[dict[str, float], dict[str, float]]:
        """Distribute a mass of 1 along the known tokens; return the mass of each choice, and of each ambiguous text."""
        assigned, unassigned = dict.fromkeys(self.choices, 0.0), dict[str, float]()
        pending = [("", 1.0)]
        while pending:
            text, mass = pending.pop()
            candidates = self.candidates(text)
            after = {token: p for token, p in self._after.get(text, {}).items() if token and self.candidates(text + token)}
            written = text.lstrip()
            if len(candidates) == 1:
                assigned[candidates[0]] += mass
            elif text not in self._after:
                unassigned[text] = unassigned.get(text, 0.0) + mass
            else:
                pending += [(text + token, mass * p) for token, p in after.items()]
                if written in assigned:  # the end of the text, or a token too rare to be listed
                    assigned[written] += mass * max(0.0, 1.0 - sum(after.values()))
        return assigned, unassigned


def _token_probabilities(position: TokenLogprobs) -> dict[str, float]:
    """Return the probability of each token text: tokens with the same text are added up, the generated one counts once."""
    tokens = list(position.top)
    if not any(t == position.token and math.isclose(p, position.logprob, abs_tol=1e-6) for t, p in tokens):
        tokens.append((position.token, position.logprob))
    probabilities: dict[str, float] = {}
    for text, logprob in tokens:
        probabilities[text] = probabilities.get(text, 0.0) + math.exp(min(logprob, 0.0))
    return probabilities


def pick_label(probabilities: Mapping[str, float], temperature: float, seed: int) -> str:
    """Return the most probable choice at temperature 0, else sample one; the same seed samples the same."""
    if temperature <= 0:
        return max(probabilities, key=probabilities.__getitem__)
    # relative to the best one, so that a low temperature cannot round all weights to 0
    best = max(probabilities.values())
    weights = [(p / best) ** (1 / temperature) for p in probabilities.values()]
    return random.Random(seed).choices(list(probabilities), weights)[0]
