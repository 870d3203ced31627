"""The encoder as reasoner: the small verifier, text rules and a calibrated model answer KnowHalu's requests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.evidence import (
    MAX_SENTENCES_READ,
    MAX_WIDE_WORDS,
    META_CONTEXT,
    ReadSentence,
    in_form,
    joined_sentences,
    read_sentences_of,
    reading_of,
    score_sentences,
    select_sentences,
    source_windows,
    subject_names,
)
from knowhalu.methods.common.judgment_model import JudgmentModel, Reading, denied_features, judgment_features, speaking_window
from knowhalu.methods.common.verdict import missing_evidence_reason
from knowhalu.methods.knowhalu.off_target import extract_entity
from knowhalu.methods.knowhalu.reasons import judgment_reason, missing_topic_reason, off_target_reason
from knowhalu.requests import Conversation, Entail, EntailmentPair, Probabilities, TagSpans, UnsupportedSpan, ask
from knowhalu.text.entities import find_names
from knowhalu.text.language import is_foreign
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.questions import AnswerType, general_query, is_checkable
from knowhalu.text.sentences import sentences
from knowhalu.text.statements import read_yes_no
from knowhalu.text.values import align_values
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
MIN_ON_TOPIC, MIN_ON_TOPIC_NAMELESS = 0.34, 0.2
"""Minimum shares of a question's (or a claim's) words and names that sources must have to be on its topic.

On training rows the first makes 80 % of the claims inconclusive that are paired with evidence of another claim, and 11 % of the
supported claims of FEVER, 8 % of those of Fool Me Twice.
"""


RULE_CHECKED_TYPES = frozenset({AnswerType.TIME, AnswerType.NUMBER, AnswerType.YES_NO})
"""Types of questions for which rules decide whether an answer has what is asked for."""


class LabelProbability(NamedTuple):
    """A label and the probability that it is right."""

    label: Label
    confidence: float


def decide_label(supported: float, features: Mapping[str, float], *, given: bool = False) -> LabelProbability:
    """Turn P(supported) into a label; INCONCLUSIVE where retrieved sources are off topic and do not contradict.

    What sources that were `given` do not speak of is not supported by them.
    """
    if supported >= 0.5:
        return LabelProbability(Label.CORRECT, supported)
    if not given and features["on_topic"] < MIN_ON_TOPIC and features["window_contradicted"] < 0:
        return LabelProbability(Label.INCONCLUSIVE, 1 - features["on_topic"])
    return LabelProbability(Label.INCORRECT, 1 - supported)


def unsupported_relation(features: Mapping[str, float]) -> Relation:
    """Return whether sources that do not support a statement contradict it, or are neutral."""
    contradicts = features.get("window_contradicted", 0.0) > 0 or features.get("sentence_contradicted", 0.0) > 0
    return Relation.CONTRADICTION if contradicts else Relation.NEUTRAL


class KnowHaluEncoder:
    """Answer with a 22M-parameter cross-encoder; needs no LLM and no GPU."""

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
        return _next_hop(part, steps) if part.question else _next_clause(part, steps)

    def distill(
        self, part: Sample, query: Query, passages: Sequence[Passage], steps: Sequence[Step], form: KnowledgeForm
    ) -> Conversation[Knowledge]:
        """Score the passages' sentences and keep those that are decisive for the claim."""
        # every statement of a claim is compared with all passages; the hops of a question read on
        seen = {(q.passage, q.start) for s in steps for q in s.knowledge.quotes} if part.question else set()
        stated, affirmed = _as_statement(part)
        known = yield from score_sentences(stated, query, select_sentences(passages, query, seen), form)
        return known if affirmed else known.model_copy(update={"quotes": tuple(map(_denied_quote, known.quotes))})

    def judge(self, part: Sample, steps: Sequence[Step], form: KnowledgeForm, of: int) -> Conversation[Judgment]:
        """Judge the claim by windows of its sources, by sentences of several sources, and by single sentences."""
        task, windows = _task(part), [in_form(w.text, form) for w in source_windows(part, steps)]
        read = read_sentences_of(steps, form)
        if (foreign := is_foreign(part.response)) or any(map(is_foreign, windows[:1])):
            note = LANGUAGE_NOTE.format("text is" if foreign else "sources are")
            return _inconclusive(form, steps, note, InconclusiveReason.LANGUAGE)
        if not windows or not read:
            why = missing_topic_reason(part, " ".join(str(p) for s in steps for p in s.passages))
            return _inconclusive(form, steps, why, missing_evidence_reason(steps))
        wide = [in_form(w.text, form) for w in source_windows(part, steps, MAX_WIDE_WORDS)]
        stated, affirmed = _as_statement(part)
        reading = yield from _read(stated, windows, wide, read)
        reading = reading if affirmed else reading.denied()
        source = " ".join((*windows, *(r.view for r in read)))
        names = subject_names(stated, source)
        features = judgment_features(stated, windows, reading, [r.view for r in read], names)
        features = features if affirmed else denied_features(features)
        part = stated if affirmed else part
        features["on_topic"] = _on_topic(part, source)
        p = self.model.weights(task, form).probability(features, of)
        (label, confidence), kind = decide_label(p, features, given=bool(part.knowledge or part.documents)), None
        best = speaking_window(reading, windows, names)
        window = reading.windows[best]
        off_topic = label is not Label.CORRECT and features["on_topic"] < MIN_ON_TOPIC and features["window_contradicted"] < 0
        together = max(r.supported for r in (window, *reading.wide, *([reading.joined] if reading.joined else [])))
        told = missing_topic_reason(part, source) if off_topic else judgment_reason(part, steps, label, together, source)
        rationale = told if self.model.fitted else f"{told}; {UNFITTED_NOTE}"
        if label is Label.INCORRECT and part.question and _misses_question(window, reading.plain[best], features):
            kind, rationale = HallucinationKind.OFF_TARGET, off_target_reason(part, steps)
        wrong = label is Label.INCORRECT and kind is None
        return Judgment(
            form=form,
            label=label,
            confidence=confidence,
            p_supported=p,
            rationale=rationale,
            kind=kind,
            inconclusive_reason=InconclusiveReason.OFF_TOPIC if label is Label.INCONCLUSIVE else None,
            relation=unsupported_relation(features) if wrong else None,
            steps=tuple(steps),
            features=features,
        )

    def unsupported_spans(self, part: Sample, judgment: Judgment) -> Conversation[tuple[UnsupportedSpan, ...]]:
        """Mark unsupported words with the verifier, by the nearest window; none where the answer is off target."""
        windows = source_windows(part, judgment.steps)
        if judgment.kind is HallucinationKind.OFF_TARGET or not windows:
            return ()
        spans = yield from ask(TagSpans((EntailmentPair(windows[0].text, part.response, reading_of(part)),)))
        return spans[0]


def _inconclusive(form: KnowledgeForm, steps: Sequence[Step], rationale: str, reason: InconclusiveReason) -> Judgment:
    return Judgment(
        form=form, label=Label.INCONCLUSIVE, confidence=1.0, rationale=rationale, steps=tuple(steps), inconclusive_reason=reason
    )


def _read(part: Sample, windows: Sequence[str], wide: Sequence[str], read: Sequence[ReadSentence]) -> Conversation[Reading]:
    """Ask the verifier about the windows, with question or context and without, and about sentences of several sources."""
    asked, claim, joined = reading_of(part), part.response, joined_sentences(part, read)
    claims = [align_values(claim, w) for w in windows]
    pairs = [EntailmentPair(w, c, asked) for w, c in zip(windows, claims, strict=True)]
    pairs += [EntailmentPair(w, c) for w, c in zip(windows, claims, strict=True) if asked]
    pairs += [EntailmentPair(joined, align_values(claim, joined), asked)] if joined else []
    pairs += [EntailmentPair(w, align_values(claim, w), asked) for w in wide]
    scores = yield from ask(Entail(tuple(pairs)))
    count, wider = len(windows), scores[len(pairs) - len(wide) :]
    return Reading(
        windows=tuple(scores[:count]),
        plain=tuple(scores[count : 2 * count] if asked else scores[:count]),
        joined=scores[len(pairs) - len(wide) - 1] if joined else None,
        wide=tuple(wider),
        sentences=tuple((r.scores, r.relevance) for r in read),
    )


def _as_statement(part: Sample) -> tuple[Sample, bool]:
    """Return a short yes or no as the statement of its question, and whether it is affirmed; else the part itself."""
    found = read_yes_no(part.question, part.response) if part.question else None
    if found is None:
        return part, True
    return part.model_copy(update={"response": found.statement, "question": None}), found.affirmed


def _denied_quote(quote: Quote) -> Quote:
    return quote.model_copy(update={"supported": quote.contradicted, "contradicted": quote.supported})


def _task(sample: Sample) -> str:
    return "answer" if sample.question else "claim"


def _misses_question(asked: Probabilities, plain: Probabilities, features: dict[str, float]) -> bool:
    """Tell whether the sources support the statement with all of its details, but not as an answer to the question."""
    missing = features["values_differ"] + features["values_missing"] + features["names_missing"]
    covered = features["fresh_covered"] == 1 and missing == 0
    return covered and plain.supported >= 0.5 and asked.neutral > max(asked.contradicted, asked.supported)


def _on_topic(part: Sample, evidence: str) -> float:
    """Return how far the evidence is on the topic: the mean of the shares of its words and of its names that are covered.

    A text without names may be a paraphrase that shares few words with its source, so its words count more.
    """
    asked = part.question or part.response
    names, share = text_facts(asked).names, coverage(asked, evidence)
    if not names:
        return min(1.0, share * MIN_ON_TOPIC / MIN_ON_TOPIC_NAMELESS)
    return (share + len(names & set(text_facts(evidence).content)) / len(names)) / 2


def _next_clause(part: Sample, steps: Sequence[Step]) -> tuple[str, Query] | None:
    """Query the claim, with the sentence that it refers back to."""
    if steps:
        return None
    claim = f"{part.meta.get(META_CONTEXT, '')} {part.response}".strip()
    return "Check the statement.", Query(specific=claim, general=general_query(part.response))


def _next_hop(part: Sample, steps: Sequence[Step]) -> tuple[str, Query] | None:
    """Query the question itself, then what is still uncovered, by the names found on the way."""
    question, answer = part.question or "", part.response
    if not steps:
        thought = f"Look for what the question asks, and whether it is {answer!r}."
        return thought, Query(specific=f"{question} {answer}", general=question)
    if part.knowledge and not part.documents and sum(len(sentences(k)) for k in part.knowledge) <= MAX_SENTENCES_READ:
        return None  # all of it has been read
    known = " ".join(q.text for s in steps for q in s.knowledge.quotes)
    last = " ".join(q.text for q in steps[-1].knowledge.quotes)
    asked = f"{question} {answer}"
    missing = [w for w in text_facts(asked).content if w not in set(text_facts(known).content)]
    used = f"{asked} {' '.join(s.query.general for s in steps[1:])}"
    bridge = [n for n in _names(last) if n.lower() not in used.lower()]
    if not missing or not bridge:
        return None
    named = ", ".join(bridge[:3])
    thought = f"Nothing yet on {', '.join(dict.fromkeys(missing[:4]))}; go on with {named}, found in step {len(steps)}."
    return thought, Query(specific=f"{question} ({named}) {answer}", general=f"{question} ({named})")


def _names(text: str) -> list[str]:
    """List the names of a text, longest first, each once."""
    found = dict.fromkeys(n.text for n in find_names(text) if n.type != "nationality")
    return sorted(found, key=lambda n: -len(n.split()))


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
