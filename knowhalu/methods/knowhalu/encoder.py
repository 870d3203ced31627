"""The encoder as reasoner: the small verifier, text rules and a calibrated model answer KnowHalu's requests."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.evidence import (
    MAX_JOINED_WORDS,
    ReadSentence,
    in_form,
    joined_sentences,
    read_nearest_again,
    read_sentences_of,
    reading_of,
    score_sentences,
    select_sentences,
    source_windows,
    subject_names,
)
from knowhalu.methods.common.judgment_model import (
    JudgmentModel,
    Reading,
    SentenceScores,
    denied_features,
    judgment_features,
    speaking_window,
)
from knowhalu.methods.common.verdict import missing_evidence_reason
from knowhalu.methods.knowhalu.bridges import best_bridge, find_bridges
from knowhalu.methods.knowhalu.decision import decide_label, is_off_topic, misses_question, topic_share, unsupported_relation
from knowhalu.methods.knowhalu.hops import next_clause, next_hop
from knowhalu.methods.knowhalu.off_target import extract_entity
from knowhalu.methods.knowhalu.reasons import bridge_reason, judgment_reason, missing_topic_reason, off_target_reason
from knowhalu.methods.knowhalu.rules import apply_rules, find_row, find_unknown_name, settle, without_arguments
from knowhalu.requests import Conversation, Entail, EntailmentPair, TagSpans, UnsupportedSpan, ask
from knowhalu.text.cells import CellCheck
from knowhalu.text.language import is_foreign
from knowhalu.text.questions import AnswerType, is_checkable
from knowhalu.text.sentences import content_words, sentences, word_count
from knowhalu.text.statements import MIN_STATEMENT_WORDS, read_yes_no
from knowhalu.text.values import Agreement, align_values
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
_NEEDS_QUESTION = re.compile(r"\W*(?:because|so that|in order|to|by|with|for|that|which|when|if|due)\b", re.IGNORECASE)
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
        stated, affirmed = _as_statement(without_arguments(part))
        known = yield from score_sentences(stated, query, select_sentences(passages, query, seen), form)
        return known if affirmed else known.model_copy(update={"quotes": tuple(map(_denied_quote, known.quotes))})

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm, of: int) -> Conversation[Judgment]:
        """Judge the claim by windows of its sources, by sentences of several sources, and by single sentences."""
        (stated, affirmed), task = _as_statement(without_arguments(part, steps)), _task(part)
        evidence = _read_sources(stated, steps, form)
        if (unread := _left_open(part, steps, form, evidence)) is not None:
            return unread
        reading = yield from _read(stated, evidence)
        reading = reading if affirmed else reading.denied()
        names = subject_names(stated, evidence.source)
        features = judgment_features(stated, evidence.windows, reading, names)
        features = features if affirmed else denied_features(features, evidence.source)
        finding = apply_rules(stated, evidence.row, evidence.sentences)
        finding = finding.turned() if finding and not affirmed else finding or find_unknown_name(part, steps)
        features = settle(features, finding)
        part = stated if affirmed else part
        features["on_topic"] = topic_share(part, evidence.source)
        p = self.model.weights(task, form).probability(features, of)
        label, confidence = decide_label(p, features, given=bool(part.knowledge or part.documents))
        if label is Label.CORRECT and affirmed:
            steps = yield from read_nearest_again(stated, steps, form)
        best = speaking_window(reading, evidence.windows, names)
        window, plain = reading.windows[best], reading.plain[best]
        off_target = label is Label.INCORRECT and bool(part.question) and misses_question(window, plain, features)
        if off_target:
            rationale = off_target_reason(part, steps)
        elif finding and (finding.agreement is Agreement.EQUAL) == (label is Label.CORRECT):
            rationale = finding.reason
        elif label is not Label.CORRECT and is_off_topic(features):
            rationale = missing_topic_reason(part, evidence.source)
        elif label is Label.CORRECT and (by := reading.bridged) and by.settles and by.supported > window.supported:
            rationale = bridge_reason(by.name, by.sentences)
        else:
            together = max(r.supported for r in (window, reading.joined) if r is not None)
            rationale = judgment_reason(part, steps, label, together, evidence.source)
        return Judgment(
            form=form,
            label=label,
            confidence=confidence,
            p_supported=p,
            rationale=rationale if self.model.fitted else f"{rationale}; {UNFITTED_NOTE}",
            kind=HallucinationKind.OFF_TARGET if off_target else None,
            inconclusive_reason=InconclusiveReason.OFF_TOPIC if label is Label.INCONCLUSIVE else None,
            relation=unsupported_relation(features) if label is Label.INCORRECT and not off_target else None,
            steps=tuple(steps),
            features=features,
        )

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


class ReadSources(NamedTuple):
    """What a claim is judged by: a window of each source, and the sentences that were quoted from them.

    Of a claim that names a row of a table, it is that row alone.
    """

    windows: list[str]
    read: list[ReadSentence]
    row: CellCheck | None = None

    @property
    def source(self) -> str:
        """Return all texts that were read."""
        return " ".join((*self.windows, *(r.view for r in self.read)))

    @property
    def sentences(self) -> list[str]:
        """Return the sentences that were read, one by one."""
        return [r.view for r in self.read] + [s.text for window in self.windows for s in sentences(window)]


def _read_sources(part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> ReadSources:
    windows, read = [in_form(w.text, form) for w in source_windows(part, steps)], read_sentences_of(steps, form)
    row = find_row(part, steps) if windows and read else None
    if row is None:
        return ReadSources(windows, read)
    own = set(content_words(row.text))
    return ReadSources([row.text], [max(read, key=lambda r: len(own & set(content_words(r.view))))], row)


def _left_open(part: Sample, steps: Sequence[Step], form: KnowledgeForm, evidence: ReadSources) -> Judgment | None:
    """Return the judgment of a claim that cannot be read: in another language, or without evidence."""
    if (foreign := is_foreign(part.response)) or any(map(is_foreign, evidence.windows[:1])):
        note = LANGUAGE_NOTE.format("text is" if foreign else "sources are")
        return _inconclusive(form, steps, note, InconclusiveReason.LANGUAGE)
    if evidence.windows and evidence.read:
        return None
    why = missing_topic_reason(part, " ".join(str(p) for s in steps for p in s.passages))
    return _inconclusive(form, steps, why, missing_evidence_reason(steps))


def _read(part: Sample, evidence: ReadSources) -> Conversation[Reading]:
    """Ask the verifier about the windows, with question or context and without, and about sentences of several sources."""
    asked, claim, joined = reading_of(part), part.response, joined_sentences(part, evidence.read)
    aligned = [(w, align_values(claim, w)) for w in evidence.windows]
    pairs = [EntailmentPair(w, c, asked) for w, c in aligned]
    pairs += [EntailmentPair(w, c) for w, c in aligned if asked]
    pairs += [EntailmentPair(joined, align_values(claim, joined), asked)] if joined else []
    bridges = find_bridges(part, evidence.read)
    pairs += [step for bridge in bridges for step in (bridge.first, bridge.second)]
    scores = iter((yield from ask(Entail(tuple(pairs)))))
    windows = tuple(islice(scores, len(aligned)))
    return Reading(
        windows=windows,
        plain=tuple(islice(scores, len(aligned))) if asked else windows,
        joined=next(scores) if joined else None,
        bridged=best_bridge(bridges, scores),
        sentences=tuple(SentenceScores(r.view, r.scores, r.relevance) for r in evidence.read),
    )


def _as_statement(part: Sample) -> tuple[Sample, bool]:
    """Return an answer as a statement of its own, and whether it is affirmed; the part itself where it needs its question."""
    if part.question is None:
        return part, True
    found = read_yes_no(part.question, part.response)
    if found is not None:
        return part.model_copy(update={"response": found.statement, "question": None}), found.affirmed
    stands_alone = word_count(part.response) >= MIN_STATEMENT_WORDS and not _NEEDS_QUESTION.match(part.response)
    if stands_alone and not is_checkable(part.question):
        return part.model_copy(update={"question": None}), True
    return part, True


def _denied_quote(quote: Quote) -> Quote:
    return quote.model_copy(update={"supported": quote.contradicted, "contradicted": quote.supported})


def _task(sample: Sample) -> str:
    return "answer" if sample.question else "claim"


class EntailmentJudge:
    """Judge statements by passages with the small verifier and its calibrated model."""

    def __init__(self, folder: Path) -> None:
        self.reasoner = KnowHaluEncoder(folder)

    def judge(self, part: Sample, passages: Sequence[Passage], of: int = 1) -> Conversation[Judgment]:
        """Judge the response of `part`, one of `of` statements of its text, by passages; its step holds their quotes."""
        query = Query(specific=part.response, general=part.question or "")
        form = KnowledgeForm.UNSTRUCTURED
        knowledge = yield from self.reasoner.distill(part, query, passages, (), form)
        step = Step(thought="", query=query, passages=tuple(passages), knowledge=knowledge)
        return (yield from self.reasoner.judge(part, (step,), form, of))


def inference_relation(judgment: Judgment) -> Relation:
    """Read a judgment as natural language inference: what is not entailed is contradicted, or else neutral."""
    if judgment.p_supported >= 0.5:
        return Relation.ENTAILMENT
    return unsupported_relation(judgment.features)
