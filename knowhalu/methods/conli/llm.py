"""An LLM as CoNLI's reasoner: inference by prompts, one hypothesis at a time or several in one (CoNLI, appendix D)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from knowhalu.errors import PromptError, ReplyError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import assign_quote_scores, ground_statements
from knowhalu.methods.common.labels import LabelScheme, generate_judgment, reason_fields
from knowhalu.methods.conli.method import EntityHypothesis
from knowhalu.methods.conli.options import ConliOptions
from knowhalu.prompts.claim_replies import HypothesisAnswer, read_hypothesis_answers
from knowhalu.prompts.examples import ExampleSource, ExampleText, examples_file, read_examples
from knowhalu.prompts.format import ENTITY, JUDGMENT, LABEL
from knowhalu.prompts.generate import make_request
from knowhalu.prompts.template import Prompt, PromptText, join_sections, load_prompt, section
from knowhalu.requests import Conversation, Generate, ask
from knowhalu.text.detectors import EntityDetector, load_detector
from knowhalu.text.sentences import sentences
from knowhalu.types import Entity, Judgment, KnowledgeForm, Label, Passage, Query, Record, Sample, Step

PROMPT_FAMILY = "conli"
SOURCE, QUESTION, HYPOTHESIS = "Source", "Question", "Hypothesis"
LABEL_BY_WORD = {"ENTAILMENT": Label.CORRECT, "CONTRADICTION": Label.INCORRECT, "NEUTRAL": Label.INCONCLUSIVE}
"""The relations of an inference, as a model chooses them, and how they are read."""


class ExampleHypothesis(Record):
    """A worked hypothesis: its entity where that alone is in question, the reason and the relation."""

    text: ExampleText
    entity: str = ""
    type: str = ""
    reason: ExampleText
    label: Literal["ENTAILMENT", "CONTRADICTION", "NEUTRAL"]

    @model_validator(mode="after")
    def _has_its_entity(self) -> "ExampleHypothesis":
        if bool(self.entity) != bool(self.type) or self.entity not in self.text:
            raise ValueError("entity and type belong together, and the entity must stand in the text")
        return self

    @property
    def focus(self) -> Entity | None:
        """Return the entity in question."""
        start = self.text.index(self.entity)
        return Entity(start=start, end=start + len(self.entity), text=self.entity, type=self.type) if self.entity else None


class InferenceExample(Record):
    """A worked example: sources, and hypotheses about them."""

    sources: tuple[ExampleSource, ...] = Field(min_length=1)
    question: str = ""
    hypotheses: tuple[ExampleHypothesis, ...] = Field(min_length=1)


def load_inference_prompt(level: Literal["sentence", "entity"], folder: Path | None = None) -> Prompt:
    """Load the prompt of a level with its demonstrations in place; raises PromptError where one of them cannot be used."""
    prompt = load_prompt(f"{PROMPT_FAMILY}/{level}", folder)
    shown = {"demonstrations": _demonstrations(level, folder)} if "demonstrations" in prompt.holes else {}
    settled = prompt.settled(**shown)
    settled.render(sources="x", hypotheses="x")  # a prompt with other holes is refused here, not in every check
    return settled


def _demonstrations(level: str, folder: Path | None) -> PromptText:
    file = examples_file(level, folder, PROMPT_FAMILY)
    examples = read_examples(file, InferenceExample)
    for number, example in enumerate(examples, 1):
        if any(bool(asked.entity) != (level == "entity") for asked in example.hypotheses):
            need = "need an entity each" if level == "entity" else "have no entity"
            raise PromptError(f"{file}: example {number}: the hypotheses of this prompt {need}")
    return PromptText("\n\n".join(map(_format_example, examples)))


def _format_example(example: InferenceExample) -> PromptText:
    answers = [
        join_sections([section(f"{JUDGMENT} {n}", asked.reason), section(f"{LABEL} {n}"), PromptText(asked.label)])
        for n, asked in enumerate(example.hypotheses, 1)
    ]
    asked = format_hypotheses([(h.text, h.focus) for h in example.hypotheses], example.question)
    return join_sections([format_sources((s.title, s.text) for s in example.sources), asked, *answers])


def format_sources(sources: Iterable[tuple[str, str]]) -> PromptText:
    """Show (title, text) of every source, numbered."""
    return join_sections(
        section(f"{SOURCE} {n}", f"{title}: {text}" if title else text) for n, (title, text) in enumerate(sources, 1)
    )


def format_hypotheses(hypotheses: Sequence[tuple[str, Entity | None]], question: str | None) -> PromptText:
    """Show numbered hypotheses, an entity in question between brackets and on a line of its own."""
    lines = [section(QUESTION, question)] if question else []
    for number, (text, focus) in enumerate(hypotheses, 1):
        lines.append(section(f"{HYPOTHESIS} {number}", text if focus is None else bracket_entity(text, focus)))
        if focus is not None:
            lines.append(section(f"{ENTITY} {number}", f"{focus.text} ({focus.type})"))
    return join_sections(lines)


def bracket_entity(text: str, focus: Entity) -> str:
    """Put an entity of a text between brackets."""
    return f"{text[: focus.start]}[[{text[focus.start : focus.end]}]]{text[focus.end :]}"


INFERENCE_SCHEME = LabelScheme(LABEL_BY_WORD, f"{LABEL} 1", " The sources are held against each detail in turn.")
BATCH_NOTE = "(judged in a batch, so without a probability)"
MAX_LABEL_TOKENS = 24
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
        self.sentence, self.entity = load_inference_prompt("sentence", folder), load_inference_prompt("entity", folder)

    def detector(self, name: str) -> EntityDetector:
        """Return what finds the entities of a sentence."""
        return load_detector(name)

    def infer(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage], of: int
    ) -> Conversation[Sequence[Judgment]]:
        """Judge each hypothesis by the passages: alone, or where they are batched several in one prompt."""
        found: list[Judgment] = []
        for i in range(0, len(hypotheses), self.size):
            batch = hypotheses[i : i + self.size]
            found += yield from (self._batch if len(batch) > 1 else self._single)(sample, batch, passages)
        return found

    def _single(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge one: its reason, then its relation, whose probability is measured."""
        request = self._request(sample, hypotheses, passages)
        judgment, shares = yield from generate_judgment(request, votes=self.options.votes, scale=INFERENCE_SCHEME)
        judgment = judgment.model_copy(update={"p_supported": min(1.0, shares.get(Label.CORRECT, 0.0))})
        return [_with_quotes(judgment, sample, hypotheses[0], passages, shares.get(Label.INCORRECT, 0.0))]

    def _request(self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]) -> Generate:
        return make_request(
            self.entity if hypotheses[0].focus else self.sentence, self.options,
            sources=format_sources((p.title, p.text) for p in passages if p.text.strip()),
            hypotheses=format_hypotheses([(h.text, h.focus) for h in hypotheses], sample.question),
        )  # fmt: skip

    def _batch(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge several in one prompt; those without exactly one answer are asked once more, alone."""
        answers = yield from self._answers(hypotheses, lambda some: self._request(sample, some, passages))
        judged = []
        for hypothesis, (reason, label) in zip(hypotheses, answers, strict=True):
            judgment = Judgment(
                label=label, confidence=0.0, p_supported=float(label is Label.CORRECT), rationale=f"{reason} {BATCH_NOTE}",
                confidence_source="none", **reason_fields(label, INFERENCE_SCHEME),
            )  # fmt: skip
            judged.append(_with_quotes(judgment, sample, hypothesis, passages, float(label is Label.INCORRECT)))
        return judged

    def _answers(
        self, hypotheses: Sequence[EntityHypothesis], request: Callable[[Sequence[EntityHypothesis]], Generate]
    ) -> Conversation[list[HypothesisAnswer]]:
        found: dict[int, HypothesisAnswer] = {}
        last, asked, fresh = "", 0, False
        while (missing := [i for i in range(len(hypotheses)) if i not in found]) and asked < 2:
            wanted = _extend_to_all(request([hypotheses[i] for i in missing]), len(missing))
            reply = yield from ask(replace(wanted, bypass_cache=fresh))
            last, whole = reply.text, reply.finish_reason != "length"
            read = read_hypothesis_answers(reply.text, len(missing), LABEL_BY_WORD, whole=whole)
            found |= {missing[n - 1]: answer for n, answer in read.items()}
            asked += fresh or not reply.reused
            fresh = not read  # the same request comes again: a reply that was kept would be the same too
        if missing:
            which = ", ".join(str(i + 1) for i in missing)
            raise ReplyError(
                "judge", f"no single answer to hypothesis {which} of {len(hypotheses)}, also when asked again", reply=last
            )
        return [found[i] for i in range(len(hypotheses))]


def _extend_to_all(request: Generate, count: int) -> Generate:
    """Let the reply go on through all judgments and labels, and no further."""
    stop = tuple(f"\n### {name}" for name in (SOURCE, QUESTION, HYPOTHESIS, f"{JUDGMENT} {count + 1}:"))
    return replace(request, stop=stop, max_tokens=count * (request.max_tokens + MAX_LABEL_TOKENS))


def _with_quotes(
    judgment: Judgment, sample: Sample, hypothesis: EntityHypothesis, passages: Sequence[Passage], contradicted: float
) -> Judgment:
    """Quote the sentences of the passages that the reason, or else the hypothesis, rests on."""
    query, part = (
        Query(specific=hypothesis.text, general=sample.question or ""),
        sample.model_copy(update={"response": hypothesis.text}),
    )
    reasons = [s.text for s in sentences(judgment.rationale)]
    for statements in (reasons, [hypothesis.text]):
        knowledge = ground_statements(KnowledgeForm.UNSTRUCTURED, list(dict.fromkeys(statements)), (), part, query, passages)
        if knowledge.quotes:
            break
    told = " ".join(q.text for q in knowledge.quotes)
    knowledge = knowledge.model_copy(update={"unsupported": "", **({"text": told} if told else {})})
    step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
    return judgment.model_copy(update={"steps": assign_quote_scores((step,), judgment, contradicted=contradicted)})
