"""WikiChat's way of checking (Semnani et al. 2023), by a language model: the claims of a text, and a verdict on each."""

from collections.abc import Sequence
from dataclasses import replace

from knowhalu.options import BaselineOptions, LLMOptions
from knowhalu.prompts import joined, section
from knowhalu.reasoners.asking import asked_twice
from knowhalu.reasoners.baseline_book import CLAIM, BaselineBook
from knowhalu.reasoners.claim_lists import read_claims
from knowhalu.reasoners.grounding import grounded, weighed
from knowhalu.reasoners.judges import AS_THEY_ARE
from knowhalu.reasoners.judging import decided, supported
from knowhalu.reasoners.layout import checked_sample, passage_lines
from knowhalu.steps import Steps
from knowhalu.types import Form, Judgment, Label, Passage, Query, Sample, Step


class LLMClaims:
    """Take claims out of a text, and judge each by passages."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts; raises PromptError where one cannot be used."""
        self.options = options or LLMOptions()
        self.book = BaselineBook(self.options, ("claims", "verdict"))

    def claims(self, part: Sample) -> Steps[list[str]]:
        """List the claims of a piece of a response, each in words that can be understood alone."""
        request = self.book.request("claims", part.task, sample=checked_sample(part))
        again = replace(request, begun="\n1.", max_tokens=2 * request.max_tokens)
        _, claims = yield from asked_twice(request, read_claims, lambda c: again, joins=True)
        return claims

    def verdict(self, part: Sample, passages: Sequence[Passage]) -> Steps[Judgment]:
        """Judge a claim, the response of `part`, by the passages found for it."""
        query = Query(specific=part.response, general="")
        knowledge = grounded(Form.UNSTRUCTURED, [part.response], (), part, query, passages)
        if not knowledge.quotes:
            knowledge = knowledge.model_copy(update={"text": AS_THEY_ARE, "unfounded": ""})
        step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
        request = self.book.request(
            "verdict", part.task, passages=joined(passage_lines(passages)), claim=joined([section(CLAIM, part.response)])
        )
        judgment, shares = yield from decided(request, votes=self.options.votes)
        judgment = judgment.model_copy(update={"supported": supported(shares, part.task)})
        steps = weighed((step,), judgment, contradicted=shares.get(Label.INCORRECT, 0.0))
        return judgment.model_copy(update={"steps": steps})
