"""An LLM as CoNLI's reasoner: inference by prompts, one hypothesis at a time or several in one (CoNLI, appendix D).

Alone, a hypothesis gets its reason first, then a relation under constraint with its probability. In a batch, the model writes
reasons and relations for all of them in one reply; they have no probabilities then.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from knowhalu.errors import ReplyError, SettingsError
from knowhalu.methods.conli import Hypothesis
from knowhalu.options import ConliOptions, LLMOptions
from knowhalu.reasoners.asking import asking
from knowhalu.reasoners.detectors import EntityDetector, detector
from knowhalu.reasoners.grounding import grounded, weighed
from knowhalu.reasoners.inference_prompts import (
    HYPOTHESIS,
    QUESTION,
    SOURCE,
    WORDS,
    hypothesis_lines,
    inference_prompt,
    source_lines,
)
from knowhalu.reasoners.judging import Scale, decided, reasons
from knowhalu.reasoners.layout import JUDGMENT, LABEL
from knowhalu.reasoners.numbered import Answer, read_answers
from knowhalu.steps import Completion, Generate, Steps
from knowhalu.text import sentences
from knowhalu.types import Form, Judgment, Label, Passage, Query, Sample, Step

SCALE = Scale(WORDS, f"{LABEL} 1", " The sources are held against each detail in turn.")
UNMEASURED = "(judged in a batch, so without a probability)"
LABEL_TOKENS = 24
"""Tokens that a heading and a label take in a reply to a batch."""


class ConliLLM:
    """Infer with an instruct or completion model, by prompts and demonstrations."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None, method: ConliOptions | None = None) -> None:
        """Load both prompts; raises PromptError where one cannot be used, SettingsError where votes are to be batched."""
        self.options, method = options or LLMOptions(), method or ConliOptions()
        self.size = method.batch_size if method.batched else 1
        if self.options.votes > 1 and method.batched:
            raise SettingsError("llm.votes are drawn for one hypothesis at a time: use --set conli.batched=false with them")
        folder = self.options.prompts
        self.sentence, self.entity = inference_prompt("sentence", folder), inference_prompt("entity", folder)

    def detector(self, name: str) -> EntityDetector:
        """Return what finds the entities of a sentence."""
        return detector(name)

    def infer(
        self, sample: Sample, hypotheses: Sequence[Hypothesis], passages: Sequence[Passage], of: int
    ) -> Steps[Sequence[Judgment]]:
        """Judge each hypothesis by the passages: alone, or where they are batched several in one prompt."""
        found: list[Judgment] = []
        for i in range(0, len(hypotheses), self.size):
            batch = hypotheses[i : i + self.size]
            found += yield from (self._batch if len(batch) > 1 else self._single)(sample, batch, passages)
        return found

    def _single(self, sample: Sample, hypotheses: Sequence[Hypothesis], passages: Sequence[Passage]) -> Steps[Sequence[Judgment]]:
        """Judge one: its reason, then its relation, whose probability is measured."""
        request = self._request(sample, hypotheses, passages)
        judgment, shares = yield from decided(request, votes=self.options.votes, scale=SCALE)
        judgment = judgment.model_copy(update={"supported": min(1.0, shares.get(Label.CORRECT, 0.0))})
        return [_with_quotes(judgment, sample, hypotheses[0], passages, shares.get(Label.INCORRECT, 0.0))]

    def _request(self, sample: Sample, hypotheses: Sequence[Hypothesis], passages: Sequence[Passage]) -> Generate:
        return asking(
            self.entity if hypotheses[0].focus else self.sentence, self.options,
            sources=source_lines((p.title, p.text) for p in passages if p.text.strip()),
            hypotheses=hypothesis_lines([(h.text, h.focus) for h in hypotheses], sample.question),
        )  # fmt: skip

    def _batch(self, sample: Sample, hypotheses: Sequence[Hypothesis], passages: Sequence[Passage]) -> Steps[Sequence[Judgment]]:
        """Judge several in one prompt; those without exactly one answer are asked once more, alone."""
        answers = yield from self._answers(hypotheses, lambda some: self._request(sample, some, passages))
        judged = []
        for hypothesis, (reason, label) in zip(hypotheses, answers, strict=True):
            judgment = Judgment(
                label=label, confidence=0.0, supported=float(label is Label.CORRECT), rationale=f"{reason} {UNMEASURED}",
                measured="nowhere", **reasons(label, SCALE),
            )  # fmt: skip
            judged.append(_with_quotes(judgment, sample, hypothesis, passages, float(label is Label.INCORRECT)))
        return judged

    def _answers(
        self, hypotheses: Sequence[Hypothesis], request: Callable[[Sequence[Hypothesis]], Generate]
    ) -> Steps[list[Answer]]:
        found: dict[int, Answer] = {}
        last, asked, fresh = "", 0, False
        while (missing := [i for i in range(len(hypotheses)) if i not in found]) and asked < 2:
            wanted = _for_all(request([hypotheses[i] for i in missing]), len(missing))
            reply: Completion = yield replace(wanted, fresh=fresh)
            last, whole = reply.text, reply.finish_reason != "length"
            read = read_answers(reply.text, len(missing), WORDS, whole=whole)
            found |= {missing[n - 1]: answer for n, answer in read.items()}
            asked += fresh or not reply.reused
            fresh = not read  # the same request comes again: a reply that was kept would be the same too
        if missing:
            which = ", ".join(str(i + 1) for i in missing)
            raise ReplyError(
                "judge", f"no single answer to hypothesis {which} of {len(hypotheses)}, also when asked again", reply=last
            )
        return [found[i] for i in range(len(hypotheses))]


def _for_all(request: Generate, count: int) -> Generate:
    """Let the reply go on through all judgments and labels, and no further."""
    stop = tuple(f"\n### {name}" for name in (SOURCE, QUESTION, HYPOTHESIS, f"{JUDGMENT} {count + 1}:"))
    return replace(request, stop=stop, max_tokens=count * (request.max_tokens + LABEL_TOKENS))


def _with_quotes(
    judgment: Judgment, sample: Sample, hypothesis: Hypothesis, passages: Sequence[Passage], contradicted: float
) -> Judgment:
    """Quote the sentences of the passages that the reason, or else the hypothesis, rests on."""
    query, part = (
        Query(specific=hypothesis.text, general=sample.question or ""),
        sample.model_copy(update={"response": hypothesis.text}),
    )
    reasons = [s.text for s in sentences(judgment.rationale)]
    for statements in (reasons, [hypothesis.text]):
        knowledge = grounded(Form.UNSTRUCTURED, list(dict.fromkeys(statements)), (), part, query, passages)
        if knowledge.quotes:
            break
    told = " ".join(q.text for q in knowledge.quotes)
    knowledge = knowledge.model_copy(update={"unfounded": "", **({"text": told} if told else {})})
    step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
    return judgment.model_copy(update={"steps": weighed((step,), judgment, contradicted=contradicted)})
