"""The encoder as reasoner: the small verifier, text rules and a calibrated model answer KnowHalu's requests."""

from collections.abc import Sequence
from pathlib import Path

from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.evidence import (
    MAX_JOINED_WORDS,
    read_nearest_again,
    reading_of,
    score_sentences,
    select_sentences,
    source_windows,
    subject_names,
)
from knowhalu.methods.common.judgment_model import (
    JudgmentModel,
    speaking_window,
)
from knowhalu.methods.common.verdict import missing_evidence_reason
from knowhalu.methods.knowhalu.decision import decide_label, is_off_topic, misses_question, unsupported_relation
from knowhalu.methods.knowhalu.grounds import Texts, opposing_ground, read_quotes, rest_on, rule_ground, supporting_ground
from knowhalu.methods.knowhalu.hops import next_clause, next_hop
from knowhalu.methods.knowhalu.off_target import extract_entity
from knowhalu.methods.knowhalu.reading import ReadSources, as_statement, measure_claim, read_claim, read_sources
from knowhalu.methods.knowhalu.reasons import judgment_reason, missing_topic_reason, off_target_reason
from knowhalu.requests import Conversation, Entail, EntailmentPair, TagSpans, UnsupportedSpan, ask
from knowhalu.text.language import is_foreign
from knowhalu.text.probabilities import require_measured
from knowhalu.text.questions import AnswerType, is_checkable
from knowhalu.types import (
    Extraction,
    HallucinationKind,
    InconclusiveReason,
    Judgment,
    Knowledge,
    KnowledgeForm,
    Label,
    Passage,
    Query,
    Quote,
    Relation,
    Sample,
    Step,
)

LANGUAGE_NOTE = "the {} not in English, and the verifier reads English only"
NOT_CHECKABLE_NOTE = "the question asks for no single detail"
MISSES_QUESTION_NOTE = "the answer does not give what the question asks for"
UNFITTED_NOTE = "by the verifier's probability alone, as no judgment is fitted to it"
RULE_CHECKED_TYPES = frozenset({AnswerType.TIME, AnswerType.NUMBER, AnswerType.YES_NO})
"""Types of questions for which rules decide whether an answer has what is asked for."""


class KnowHaluEncoder:
    """Answer with the verifier; needs no LLM and no GPU."""

    name = "encoder"

    def __init__(self, folder: Path) -> None:
        self.model = JudgmentModel(folder)

    def thresholds(self, sample: Sample) -> Thresholds:
        """Return delta1 and delta2 as calibrated for this kind of sample."""
        return self.model.thresholds(_task(sample))

    def extract(self, question: str, answer: str) -> Conversation[Extraction]:
        """Extract what the question asks for from the answer: by rules, then by the verifier, without a source."""
        found = extract_entity(question, answer)
        if not found.refusal and (not is_checkable(question) or is_foreign(question) or is_foreign(answer)):
            return found.model_copy(update={"entity": answer, "reason": NOT_CHECKABLE_NOTE})
        if self.model.evades is None or found.refusal or found.is_none or found.asked_for in RULE_CHECKED_TYPES:
            return found
        scores = yield from ask(Entail((EntailmentPair("", answer, question),)))
        evading = 1 - scores[0].supported
        if evading < self.model.evades:
            return found
        return found.model_copy(update={"entity": None, "reason": MISSES_QUESTION_NOTE, "confidence": evading})

    def next_query(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[tuple[str, Query] | None]:
        """Return the next thought and one-hop query, or None when there is nothing left to ask."""
        yield from ()
        return next_hop(part, steps) if part.question else next_clause(part, steps)

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: KnowledgeForm
    ) -> Conversation[Knowledge]:
        """Score the passages' sentences and keep those that are decisive for the claim."""
        # every statement of a claim is compared with all passages; the hops of a question read on
        seen = {(q.passage, q.start) for s in steps for q in s.knowledge.quotes} if part.question else set()
        stated, affirmed = as_statement(part)
        known = yield from score_sentences(stated, query, select_sentences(passages, query, seen, part.documents), form)
        return known if affirmed else known.model_copy(update={"quotes": tuple(map(_denied_quote, known.quotes))})

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> Conversation[Judgment]:
        """Judge the claim by windows of its sources, by sentences of several sources, and by single sentences."""
        (stated, affirmed), task = as_statement(part, steps), _task(part)
        evidence = read_sources(stated, steps, form)
        if (unread := _left_open(part, steps, form, evidence)) is not None:
            return unread
        reading = yield from read_claim(stated, evidence, by_small=self.model.by_small)
        reading = reading if affirmed else reading.denied()
        names = subject_names(stated, evidence.source)
        features, found, rule = measure_claim(part, stated, steps, evidence, reading, names, affirmed=affirmed)
        part = stated if affirmed else part
        p = self.model.weights(task, form).probability(features)
        label, confidence = decide_label(p, features, given=bool(part.knowledge or part.documents))
        if label is Label.CORRECT and affirmed:
            steps = yield from read_nearest_again(stated, steps, form)
        best = speaking_window(reading, evidence.windows, names, stated.question or "")
        window, plain = reading.windows[best], reading.plain[best]
        off_target = label is Label.INCORRECT and bool(part.question) and misses_question(window, plain, features)
        off_topic = label is not Label.CORRECT and is_off_topic(features)
        read, texts = read_quotes(part, steps, names), Texts(part, steps, form, evidence.windows[best], evidence.joined)
        rule = rule if rule is not None and rule.decides(label) else None
        if rule is not None:
            ground = rule_ground(texts, rule.sentence, p)
        elif label is Label.CORRECT:
            ground = supporting_ground(texts, read, reading, window, found)
        else:
            ground = None if off_target or off_topic else opposing_ground(texts, read, found, p, reading.bridged)
        steps = rest_on(steps, read, ground)
        if off_target:
            rationale = off_target_reason(part, steps, read)
        elif rule is not None:
            rationale = rule.reason
        elif off_topic:
            rationale = missing_topic_reason(part, steps, evidence.source)
        else:
            rationale = judgment_reason(part, steps, label, read, ground, found, evidence.source)
        return Judgment(
            form=form,
            label=label,
            confidence=confidence,
            p_supported=p,
            rationale=self._noted(rationale),
            kind=HallucinationKind.OFF_TARGET if off_target else None,
            inconclusive_reason=InconclusiveReason.OFF_TOPIC if label is Label.INCONCLUSIVE else None,
            relation=unsupported_relation(features) if label is Label.INCORRECT and not off_target else None,
            steps=steps,
            features=features,
        )

    def _noted(self, rationale: str) -> str:
        return rationale if self.model.fitted else f"{rationale}; {UNFITTED_NOTE}"

    def unsupported_spans(self, part: Sample, judgment: Judgment) -> Conversation[tuple[UnsupportedSpan, ...]]:
        """Mark unsupported words with the verifier, by the nearest window; none where the answer is off target."""
        windows = source_windows(part, judgment.steps, MAX_JOINED_WORDS)
        if judgment.kind is HallucinationKind.OFF_TARGET or not windows:
            return ()
        spans = yield from ask(TagSpans((EntailmentPair(windows[0].text, part.response, reading_of(part)),)))
        return spans[0]


def _inconclusive(form: KnowledgeForm, steps: Sequence[Step], rationale: str, reason: InconclusiveReason) -> Judgment:
    return Judgment(
        form=form, label=Label.INCONCLUSIVE, confidence=1.0, rationale=rationale, steps=tuple(steps), inconclusive_reason=reason
    )


def _left_open(part: Sample, steps: Sequence[Step], form: KnowledgeForm, evidence: ReadSources) -> Judgment | None:
    """Return the judgment of a claim that cannot be read: in another language, or without evidence."""
    if (foreign := is_foreign(part.response)) or any(map(is_foreign, evidence.windows[:1])):
        note = LANGUAGE_NOTE.format("text is" if foreign else "sources are")
        return _inconclusive(form, steps, note, InconclusiveReason.LANGUAGE)
    if evidence.windows and evidence.read:
        return None
    why = missing_topic_reason(part, steps, "")
    return _inconclusive(form, steps, why, missing_evidence_reason(steps))


def _denied_quote(quote: Quote) -> Quote:
    return quote.model_copy(update={"supported": quote.contradicted, "contradicted": quote.supported})


def _task(sample: Sample) -> str:
    return "answer" if sample.question else "claim"


class EntailmentJudge:
    """Judge statements by passages with the small verifier and its calibrated model."""

    def __init__(self, folder: Path) -> None:
        self.reasoner = KnowHaluEncoder(folder)

    def judge(self, part: Sample, passages: Sequence[Passage]) -> Conversation[Judgment]:
        """Judge the response of `part` by passages; its step holds their quotes."""
        query = Query(specific=part.response, general=part.question or "")
        form = KnowledgeForm.UNSTRUCTURED
        knowledge = yield from self.reasoner.distill(part, query, passages, (), form)
        step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
        return (yield from self.reasoner.judge(part, (step,), form))


def inference_relation(judgment: Judgment) -> Relation:
    """Read a judgment as natural language inference: what is not entailed is contradicted, or else neutral."""
    if require_measured(judgment.p_supported) >= 0.5:
        return Relation.ENTAILMENT
    return unsupported_relation(judgment.features)
