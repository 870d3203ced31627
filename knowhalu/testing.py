"""Test doubles: a language model and an encoder that say what a test tells them to, and keep what they were asked."""

from collections.abc import Callable, Mapping
from typing import Any

from knowhalu.errors import StageError
from knowhalu.requests import Completion, Entail, EntailmentPair, Generate, Probabilities, TagSpans, UnsupportedSpan

ScriptedReply = str | Completion
ScriptedScores = Probabilities | tuple[float, float, float]


class ScriptedLLM:
    """Answer `Generate` requests from a script: `{end of the prompt: reply}`, or a function of the request.

    A prompt is looked up whole, then by the longest key that it ends with. What the script does not know is a
    StageError, never a default reply.
    """

    def __init__(self, replies: Mapping[str, ScriptedReply] | Callable[[Generate], ScriptedReply]) -> None:
        self.replies = replies
        self.history: list[Generate] = []

    def answer_many(self, requests: list[Any]) -> list[Completion | StageError]:
        """Answer every request, in order."""
        return [self._answer(r) for r in requests]

    def _answer(self, request: Generate) -> Completion | StageError:
        self.history.append(request)
        try:
            said = self.replies(request) if callable(self.replies) else self._looked_up(self.replies, request.prompt)
        except StageError as error:
            return error
        return said if isinstance(said, Completion) else Completion(said)

    @staticmethod
    def _looked_up(replies: Mapping[str, ScriptedReply], prompt: str) -> ScriptedReply:
        ends = [end for end in replies if prompt.endswith(end)]
        if not ends:
            raise StageError("generate", f"the script has no reply to a prompt that ends with {prompt[-200:]!r}")
        return replies[max(ends, key=len)]


class ScriptedEncoder:
    """Answer `Entail` requests from a script: `{(premise, claim): probabilities}`, or a function of the hypothesis.

    `TagSpans` requests are answered by `marks`; by default nothing is marked.

    Probabilities are (supported, contradicted, neutral). A pair that the script does not know is a StageError, never a
    default label.
    """

    def __init__(
        self,
        probabilities: Mapping[tuple[str, str], ScriptedScores] | Callable[[EntailmentPair], ScriptedScores],
        marks: Callable[[EntailmentPair], tuple[UnsupportedSpan, ...]] = lambda pair: (),
    ) -> None:
        self.probabilities, self.marks = probabilities, marks
        self.history: list[Entail | TagSpans] = []

    def answer_many(self, requests: list[Any]) -> list[Any]:
        """Answer every request, in order."""
        return [self._answer(r) for r in requests]

    def _answer(self, request: Entail | TagSpans) -> list[Probabilities] | list[tuple[UnsupportedSpan, ...]] | StageError:
        self.history.append(request)
        if isinstance(request, TagSpans):
            return [self.marks(pair) for pair in request.pairs]
        try:
            return [self._scored(pair) for pair in request.pairs]
        except StageError as error:
            return error

    def _scored(self, pair: EntailmentPair) -> Probabilities:
        if callable(self.probabilities):
            scored = self.probabilities(pair)
        elif (pair.premise, pair.claim) in self.probabilities:
            scored = self.probabilities[pair.premise, pair.claim]
        else:
            raise StageError("entail", f"the script has no probabilities for ({pair.premise!r}, {pair.claim!r})")
        found = Probabilities(*scored)
        if min(found) < 0.0 or abs(sum(found) - 1.0) > 1e-6:
            raise StageError("entail", f"the script's probabilities for ({pair.premise!r}, {pair.claim!r}) do not add up to 1")
        return found
