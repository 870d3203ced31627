"""SelfCheckGPT (Manakul et al. 2023): further responses to the same, and how far each supports a sentence of the first.

By a language model, which writes the responses and says whether each supports a sentence; or by the encoder, for responses
that are given.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from knowhalu.errors import ReplyError, StageError
from knowhalu.options import BaselineOptions, LLMOptions
from knowhalu.prompts import joined, section
from knowhalu.reasoners.asking import asked_twice
from knowhalu.reasoners.baseline_book import BaselineBook
from knowhalu.reasoners.choosing import chosen
from knowhalu.reasoners.layout import passage_lines
from knowhalu.reasoners.replies import line, whole_sentences
from knowhalu.steps import Completion, Entail, Hypothesis, Probabilities, Steps
from knowhalu.types import Passage, Sample

INCONSISTENT = {"Yes": 0.0, "No": 1.0, "N/A": None}
"""How inconsistent a sentence is with a response that supports it or not; None where the response says nothing of the matter."""
UNLIKE = 1_000_003
"""Added to the seed of a response that is drawn again, so that it cannot come out the same."""


class LLMSampling:
    """Draw responses with a language model, and ask it what each supports (the prompt variant)."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or BaselineOptions()
        self.book = BaselineBook(self.options, ("answer", "supported"))

    def draw(self, sample: Sample, passages: Sequence[Passage], number: int) -> Steps[str]:
        """Draw the response `number`, from 0, to what the sample responds to."""
        asked = [section("Question", sample.question)] if sample.question else []
        request = self.book.request("answer", sample.task, sample=joined([*passage_lines(passages), *asked]))
        request = replace(request, temperature=self.method.temperature, seed=request.seed + number)
        _, text = yield from asked_twice(request, _response, lambda c: replace(request, seed=request.seed + UNLIKE))
        return text

    def inconsistent(self, part: Sample, contexts: Sequence[str]) -> Steps[list[float | None]]:
        """Say for each context how inconsistent the response of `part` is with it: 0 or 1, or None where it says nothing."""
        found: list[float | None] = []
        for context in contexts:
            question = [section("Question", part.question)] if part.question else []
            request = self.book.request(
                "supported", part.task, context=joined([*question, section("Context", context)]),
                sentence=section("Sentence", part.response),
            )  # fmt: skip
            found.append(INCONSISTENT[(yield from chosen(request, tuple(INCONSISTENT), "supported"))])
        return found


class EncoderSampling:
    """Hold sentences against given responses with the verifier (the NLI variant)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def draw(self, sample: Sample, passages: Sequence[Passage], number: int) -> Steps[str]:
        """Raise StageError: the encoder writes nothing."""
        yield from ()
        raise StageError(
            "samples",
            "the encoder cannot write further responses. Give them with the row as meta.samples, a list of texts, or let a "
            "language model write them: --reasoner llm",
        )

    def inconsistent(self, part: Sample, contexts: Sequence[str]) -> Steps[list[float | None]]:
        """Say for each context how inconsistent it is: P(contradicted) against P(supported), the neutral left out."""
        scores: list[Probabilities] = yield Entail(tuple(Hypothesis(c, part.response, part.question) for c in contexts))
        return [p.contradicted / told if (told := p.contradicted + p.supported) > 0 else None for p in scores]


def _response(reply: Completion) -> str:
    text = line(whole_sentences(reply.text) or reply.text) if reply.finish_reason == "length" else line(reply.text)
    if not any(c.isalnum() for c in text):
        raise ReplyError("samples", "the model wrote no response", reply=reply.text)
    return text
