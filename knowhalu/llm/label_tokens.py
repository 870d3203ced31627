"""The tokens that tell labels apart, for a server that returns the log-probabilities of named tokens, as vLLM does.

`logprob_token_ids` names tokens whose log-probabilities are returned at every generated position, and `allowed_token_ids` forces
a reply after these are taken, so that they are those of the model. One request that forces the tokens with which several labels
begin, and names those that follow, thus measures all labels at once.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from knowhalu.llm.label_probabilities import MAX_REQUESTS, MIN_TEXT_MASS

TokenIds = tuple[int, ...]
MAX_NAMED = 128
"""vLLM's limit of `logprob_token_ids`."""
MASKED = -9999.0
"""What vLLM writes for a log-probability of minus infinity."""


class LabelTokens(NamedTuple):
    """The tokens `named` in a request, those `allowed` in its reply, and the `length` of the reply."""

    named: TokenIds
    allowed: TokenIds
    length: int


class LabelTokenTree:
    """The token sequences of labels, and the probability of each label by the tokens of which the probability is known.

    `shared` are the prefixes with which several labels begin, `named` the tokens that may follow them. A token counts for a
    label where no other label has a sequence that goes on from it.
    """

    def __init__(self, ways: Mapping[str, Sequence[TokenIds]]) -> None:
        self.labels = tuple(ways)
        self._after: dict[TokenIds, set[str]] = {}
        self._whole: dict[TokenIds, str] = {tokens: label for label, sequences in ways.items() for tokens in sequences}
        for tokens, label in self._whole.items():
            for end in range(len(tokens) + 1):
                self._after.setdefault(tokens[:end], set()).add(label)
        self.shared = {prefix for prefix, labels in self._after.items() if not prefix or len(labels) > 1}
        self.named = tuple(dict.fromkeys(prefix[-1] for prefix in self._after if prefix and prefix[:-1] in self.shared))

    def children(self, prefix: TokenIds) -> list[TokenIds]:
        """Return the prefixes that are one token longer."""
        return [longer for longer in self._after if longer[:-1] == prefix and longer]

    def candidates(self, prefix: TokenIds) -> set[str]:
        """Return the labels that begin with a prefix."""
        return self._after[prefix]

    def ending(self, prefix: TokenIds) -> str | None:
        """Return the label that ends with a prefix."""
        return self._whole.get(prefix)


class LabelSearch:
    """The probabilities of labels, by as few requests as possible.

    Take `next()`, send it, give the reply to `read`, and repeat until `next()` is None: once, unless labels begin with different
    tokens that each need another one.
    """

    def __init__(self, tree: LabelTokenTree) -> None:
        self.tree = tree
        self._known: dict[TokenIds, dict[int, float]] = {}
        self._tried: set[TokenIds] = set()

    def next(self) -> LabelTokens | None:
        """Return the tokens for the request that tells most; None where no further one is worth its cost."""
        shared = self.tree.shared
        if not self._tried:
            self._tried.add(())
            forced = {token for prefix in shared for token in prefix} or set(self.tree.named)
            return LabelTokens(self.tree.named, tuple(sorted(forced)), 1 + max(map(len, shared)))
        assigned, unknown = self._distribute()
        total = sum(assigned.values()) + sum(unknown.values())
        left = {p: mass for p, mass in unknown.items() if p not in self._tried and mass >= MIN_TEXT_MASS * total}
        if not left or () in unknown or len(self._tried) >= MAX_REQUESTS:
            return None
        prefix = max(left, key=left.__getitem__)
        self._tried.add(prefix)
        return LabelTokens(self.tree.named, tuple(sorted(set(prefix))), len(prefix) + 1)

    def read(self, generated: Sequence[int], logprobs: Sequence[Mapping[int, float]]) -> None:
        """Record the log-probabilities at each generated token."""
        prefix: TokenIds = ()
        for token, at in zip(generated, logprobs, strict=True):
            if prefix not in self.tree.shared:
                return
            self._known[prefix] = {longer[-1]: math.exp(min(at[longer[-1]], 0.0)) for longer in self.tree.children(prefix)}
            prefix = (*prefix, token)

    @property
    def mass(self) -> float:
        """The share of the model's mass on all labels together."""
        assigned, unknown = self._distribute()
        return math.fsum((*assigned.values(), *unknown.values()))

    def probabilities(self) -> dict[str, float]:
        """Return the probability of each label, adding up to 1; unknown mass, which is little, is divided evenly."""
        assigned, unknown = self._distribute()
        for prefix, mass in unknown.items():
            for label in self.tree.candidates(prefix):
                assigned[label] += mass / len(self.tree.candidates(prefix))
        total = math.fsum(assigned.values())
        return {label: mass / total for label, mass in assigned.items()}

    def _distribute(self) -> tuple[dict[str, float], dict[TokenIds, float]]:
        """Return the mass of each label, and that of each prefix after which the probabilities are not known."""
        assigned, unknown = dict.fromkeys(self.tree.labels, 0.0), dict[TokenIds, float]()
        pending: list[tuple[TokenIds, float]] = [((), 1.0)]
        while pending:
            prefix, mass = pending.pop()
            if prefix not in self.tree.shared:
                [label] = self.tree.candidates(prefix)
                assigned[label] += mass
            elif prefix not in self._known:
                unknown[prefix] = mass
            else:
                after = self._known[prefix]
                pending += [((*prefix, token), mass * p) for token, p in after.items()]
                if (ending := self.tree.ending(prefix)) is not None:
                    assigned[ending] += mass * max(0.0, 1.0 - math.fsum(after.values()))
        return assigned, unknown


def write_lines(leads: Sequence[str], labels: Sequence[str]) -> str | None:
    """Return a text whose tokens are those of every label after every lead, for `read_lines`; None for an unusual lead."""
    if not set(leads) <= {"", " ", "\n"}:
        return None
    return "a\n" + "\n".join(_spaces(lead) + label for lead in leads for label in labels)


def read_lines(tokens: Sequence[int], leads: Sequence[str], labels: Sequence[str]) -> dict[str, list[TokenIds]] | None:
    """Read the token sequences of each label from the tokens of that text; None where a token is part of two lines."""
    if len(tokens) < 2:
        return None
    newline, lines = tokens[1], [list[int]()]
    for token in tokens[2:]:
        if token == newline:
            lines.append([])
        else:
            lines[-1].append(token)
    if len(lines) != len(leads) * len(labels) or not all(lines):
        return None
    ways: dict[str, list[TokenIds]] = {label: [] for label in labels}
    for i, line in enumerate(lines):
        before = [newline] if leads[i // len(labels)] == "\n" else []
        ways[labels[i % len(labels)]].append((*before, *line))
    return ways


def _spaces(lead: str) -> str:
    """Return what stands before a label in its line: a line break is a token of its own there."""
    return "" if lead == "\n" else lead
