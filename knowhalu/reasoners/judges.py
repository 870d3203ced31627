"""Judges by one prompt: HaluEval's three (Li et al. 2023), zero-shot chain of thought, few-shot, a factored check in one reply.

What the label rests on differs: nothing before it, reasons in prose, or a list of claims. The label is always chosen under
constraint after all else, so nothing that a text or a reply says of labels can stand for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from knowhalu.options import BaselineOptions, LLMOptions
from knowhalu.prompts import section
from knowhalu.reasoners.asking import asked_twice
from knowhalu.reasoners.baseline_book import BINARY, BaselineBook
from knowhalu.reasoners.claim_lists import JudgedClaim, listed, read_judged_claims
from knowhalu.reasoners.judging import LABELS, Scale, Think, Thought, decided, labelled, reasoned, supported
from knowhalu.reasoners.layout import LABEL
from knowhalu.steps import Generate, Steps
from knowhalu.types import Form, Judgment, Knowledge, Label, Passage, Query, Sample, Step

AS_THEY_ARE = "The passages as they are."
"""Stands as knowledge where passages are judged by without being distilled first."""
NO_REASONS = "No reasons were asked for."


class Judge(NamedTuple):
    """One way to ask: the prompt, what comes before the label, and the labels to choose from."""

    prompt: str
    before: Literal["nothing", "reasons", "claims"]
    scale: Scale = LABELS


_BINARY = Scale({str(label): label for label in BINARY})
JUDGES = {
    "halueval": Judge("halueval", "nothing", _BINARY),
    "halueval-knowledge": Judge("halueval_knowledge", "nothing", _BINARY),
    "halueval-cot": Judge("halueval_cot", "reasons", _BINARY),
    "zero-shot-cot": Judge("zero_shot_cot", "reasons", _BINARY),
    "few-shot": Judge("few_shot", "nothing"),
    "factored-single": Judge("factored_single", "claims"),
}


class PromptJudge:
    """Judge a whole text by one prompt."""

    def __init__(self, options: LLMOptions | None = None, method: BaselineOptions | None = None) -> None:
        """Load the prompts of all judges; raises PromptError where one cannot be used."""
        self.options, self.method = options or LLMOptions(), method or BaselineOptions()
        self.book = BaselineBook(self.options, [judge.prompt for judge in JUDGES.values()])

    def judge(
        self, name: str, sample: Sample, passages: Sequence[Passage], votes: int | None = None
    ) -> Steps[tuple[Judgment, tuple[JudgedClaim, ...]]]:
        """Judge by the judge `name`: once, or by a majority; claims come only from one that lists them.

        With `votes`, so many judgments are drawn at the method's temperature; else `llm.votes` holds.
        """
        how = JUDGES[name]
        lists: list[tuple[Label, tuple[JudgedClaim, ...]]] = []
        think: Think = {
            "nothing": partial(_at_once, scale=how.scale),
            "reasons": partial(reasoned, scale=how.scale),
            "claims": partial(_by_claims, scale=how.scale, lists=lists),
        }[how.before]
        judgment, shares = yield from decided(
            self.book.judge(how.prompt, sample, passages), None, votes or self.options.votes, how.scale, think=think,
            temperature=self.method.temperature if votes else 1.0,
        )  # fmt: skip
        steps = (read_whole(sample, passages),) if passages else ()
        said = judgment.model_copy(update={"supported": supported(shares, sample.task), "steps": steps})
        return said, next((claims for label, claims in lists if label is judgment.label), ())


def read_whole(sample: Sample, passages: Sequence[Passage]) -> Step:
    """Show passages that were judged by as they are."""
    query = Query(specific=sample.response, general=sample.question or "")
    knowledge = Knowledge(form=Form.UNSTRUCTURED, text=AS_THEY_ARE)
    return Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)


def _at_once(request: Generate, scale: Scale) -> Steps[Thought]:
    """Ask for the label alone; at a temperature, the label that was drawn is the vote."""
    label, shares = yield from labelled(request, "\n", scale, draw=request.temperature > 0)
    return NO_REASONS, label, shares


def _by_claims(request: Generate, scale: Scale, lists: list[tuple[Label, tuple[JudgedClaim, ...]]]) -> Steps[Thought]:
    """Ask for the claims with a label each, then for the label of the whole; every list goes to `lists` with its label."""
    again = replace(request, begun="\n1.", max_tokens=2 * request.max_tokens)
    _, claims = yield from asked_twice(request, read_judged_claims, lambda c: again, joins=True)
    label, shares = yield from labelled(request, f"\n{listed(claims)}\n{section(LABEL)}\n", scale)
    lists.append((label, tuple(claims)))
    return f"{sum(c.label is label for c in claims)} of {len(claims)} claims are {label}.", label, shares
