"""An LLM as CoNLI's reasoner: inference by prompts, one hypothesis at a time or several in one (CoNLI, appendix D)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from knowhalu.errors import ReplyError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import assign_quote_scores, ground_statements
from knowhalu.methods.common.labels import LabelScheme, generate_judgment, label_share, reason_fields
from knowhalu.methods.conli.method import EntityHypothesis
from knowhalu.methods.options import ConliOptions
from knowhalu.prompts.book import CONLI, PromptBook
from knowhalu.prompts.format import HYPOTHESIS, JUDGMENT, LABEL, QUESTION, SOURCE, format_hypotheses, format_sources
from knowhalu.prompts.replies import one_line, read_label
from knowhalu.requests import Conversation, Generate, ask
from knowhalu.text.detectors import EntityDetector, load_detector
from knowhalu.text.sentences import sentences
from knowhalu.types import Judgment, KnowledgeForm, Label, Passage, Query, Sample, Step

LABEL_BY_WORD = {"ENTAILMENT": Label.CORRECT, "CONTRADICTION": Label.INCORRECT, "NEUTRAL": Label.INCONCLUSIVE}
"""The relations of an inference as a model chooses them, and their labels."""
INFERENCE_SCHEME = LabelScheme(LABEL_BY_WORD, f"{LABEL} 1", " The sources are held against each detail in turn.")
BATCH_NOTE = "(judged in a batch, so without a probability)"
MAX_LABEL_TOKENS = 24
"""Tokens of a heading and a label in a reply to a batch."""
_HEADING = re.compile(
    rf"^[ \t>-]*(?:#{{2,6}})?[ \t]*[*_]{{0,2}}({JUDGMENT}|{LABEL})[ -]?(\d{{1,3}})[*_]{{0,2}}[ \t]*[:\uff1a][*_]{{0,2}}",
    re.MULTILINE | re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:no|not|nor|neither|never|without)\b|n['\u2019]t\b", re.IGNORECASE)


class HypothesisAnswer(NamedTuple):
    """The reason and the label of one hypothesis."""

    reason: str
    label: Label


def read_hypothesis_answers(reply: str, count: int, words: Mapping[str, Label], *, whole: bool) -> dict[int, HypothesisAnswer]:
    """Read the answers to hypotheses 1 to `count`; the reply begins under the heading of the first judgment.

    A number without a judgment or label, with several, or with one that cannot be read, is left out; where the reply is not
    `whole`, so is its last text.
    """
    texts: dict[tuple[str, int], list[str]] = {}
    key, start = (JUDGMENT, 1), 0
    for match in _HEADING.finditer(reply):
        _add_text(texts, key, reply[start : match.start()])
        key, start = (match[1].capitalize(), int(match[2])), match.end()
    if whole or key[0] == LABEL:
        _add_text(texts, key, reply[start:])
    answers = {}
    for n in range(1, count + 1):
        reasons, labels = texts.get((JUDGMENT, n), []), texts.get((LABEL, n), [])
        if len(reasons) == 1 and len(labels) == 1:
            try:
                answers[n] = HypothesisAnswer(one_line(reasons[0]), _read_first_label(labels[0], reply, words))
            except ReplyError:
                continue
    return answers


def _add_text(texts: dict[tuple[str, int], list[str]], key: tuple[str, int], text: str) -> None:
    if any(c.isalnum() for c in text):
        texts.setdefault(key, []).append(text)


def _read_first_label(text: str, reply: str, words: Mapping[str, Label]) -> Label:
    """Read the label in the first line, as a model may go on after it; raises ReplyError unless it names exactly one."""
    first = one_line(text.strip().partition("\n")[0])
    named = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", first))
    if len({m[0] for m in named}) > 1 or (named and _DENIAL.search(first, 0, named[0].start())):
        raise ReplyError("judge", "the reply names several labels, or denies one", reply=reply)
    return read_label(first, reply, words)


class ConliLLM:
    """Infer with an instruct or completion model, by prompts and demonstrations."""

    name = "llm"

    def __init__(self, options: LLMOptions | None = None, method: ConliOptions | None = None) -> None:
        """Load both prompts; raises PromptError where one cannot be used, SettingsError where votes are to be batched."""
        self.options, method = options or LLMOptions(), method or ConliOptions()
        self.size = method.batch_size if method.batched else 1
        if self.options.votes > 1 and method.batched:
            raise SettingsError("llm.votes are drawn for one hypothesis at a time: use --set conli.batched=false with them")
        self.book = PromptBook(CONLI, self.options)

    def detector(self, name: str) -> EntityDetector:
        """Return what finds the entities of a sentence."""
        return load_detector(name)

    def infer(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge each hypothesis by the passages: alone, or where they are batched several in one prompt."""
        judgments: list[Judgment] = []
        for i in range(0, len(hypotheses), self.size):
            batch = hypotheses[i : i + self.size]
            if len(batch) > 1:
                judgments += yield from self._batch(sample, batch, passages)
                continue
            request = self._request(sample, batch, passages)  # its reason, then its relation, whose probability is measured
            judgment, shares = yield from generate_judgment(request, votes=self.options.votes, scale=INFERENCE_SCHEME)
            judgment = judgment.model_copy(update={"p_supported": label_share(shares, Label.CORRECT)})
            judgments.append(_with_quotes(judgment, sample, batch[0], passages, label_share(shares, Label.INCORRECT)))
        return judgments

    def _request(self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]) -> Generate:
        return self.book.request(
            "entity" if hypotheses[0].focus else "sentence",
            sources=format_sources(p for p in passages if p.text.strip()),
            hypotheses=format_hypotheses(hypotheses, sample.question),
        )  # fmt: skip

    def _batch(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge several in one prompt; those without exactly one answer are asked about once more."""
        answers = yield from self._answers(sample, hypotheses, passages)
        judgments = []
        for hypothesis, (reason, label) in zip(hypotheses, answers, strict=True):
            judgment = Judgment(
                label=label, confidence=None, p_supported=None, rationale=f"{reason} {BATCH_NOTE}",
                confidence_source="none", **reason_fields(label, INFERENCE_SCHEME),
            )  # fmt: skip
            judgments.append(_with_quotes(judgment, sample, hypothesis, passages, None))
        return judgments

    def _answers(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[list[HypothesisAnswer]]:
        answers: dict[int, HypothesisAnswer] = {}
        last, calls, bypass = "", 0, False
        while (missing := [i for i in range(len(hypotheses)) if i not in answers]) and calls < 2:
            request = _extend_to_all(self._request(sample, [hypotheses[i] for i in missing], passages), len(missing))
            reply = yield from ask(replace(request, bypass_cache=bypass))
            last, whole = reply.text, reply.finish_reason != "length"
            readable = read_hypothesis_answers(reply.text, len(missing), LABEL_BY_WORD, whole=whole)
            answers |= {missing[n - 1]: answer for n, answer in readable.items()}
            calls += bypass or not reply.reused
            bypass = not readable  # the same request comes again: a stored reply would be the same too
        if missing:
            which = ", ".join(str(i + 1) for i in missing)
            raise ReplyError(
                "judge", f"no single answer to hypothesis {which} of {len(hypotheses)}, also when asked again", reply=last
            )
        return [answers[i] for i in range(len(hypotheses))]


def _extend_to_all(request: Generate, count: int) -> Generate:
    """Extend the request so that the reply ends after all judgments and labels."""
    stop = tuple(f"\n### {name}" for name in (SOURCE, QUESTION, HYPOTHESIS, f"{JUDGMENT} {count + 1}:"))
    return replace(request, stop=stop, max_tokens=count * (request.max_tokens + MAX_LABEL_TOKENS))


def _with_quotes(
    judgment: Judgment, sample: Sample, hypothesis: EntityHypothesis, passages: Sequence[Passage], contradicted: float | None
) -> Judgment:
    """Quote the sentences of the passages that support the reason, or else the hypothesis."""
    query = Query(specific=hypothesis.text, general=sample.question or "")
    part = sample.model_copy(update={"response": hypothesis.text})
    reasons = [s.text for s in sentences(judgment.rationale)]
    for statements in (reasons, [hypothesis.text]):
        knowledge = ground_statements(KnowledgeForm.UNSTRUCTURED, list(dict.fromkeys(statements)), (), part, query, passages)
        if knowledge.quotes:
            break
    quoted = " ".join(q.text for q in knowledge.quotes)
    knowledge = knowledge.model_copy(update={"unsupported": "", **({"text": quoted} if quoted else {})})
    step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
    return judgment.model_copy(update={"steps": assign_quote_scores((step,), judgment, contradicted=contradicted)})
