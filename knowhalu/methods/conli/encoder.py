"""The encoder as CoNLI's reasoner: sentences by the verifier and its calibrated model, entities by their place in the sources.

A sentence is judged as in KnowHalu. An entity is judged alone by the sentence of the sources that is about the same matter:
whether the sources contain it, whether they contain it there, and the verifier's scores of its clause against that sentence. A
logistic regression over these gives P(supported); its threshold is where a sentence should fail by one entity.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knowhalu.methods.common.judgment_model import FeatureWeights
from knowhalu.methods.common.verdict import NO_EVIDENCE, RELATION_BY_LABEL
from knowhalu.methods.conli.entity_support import (
    EntitySupport,
    SentenceInContext,
    entity_features,
    find_entity_support,
    sentences_in_context,
)
from knowhalu.methods.conli.method import EntityHypothesis
from knowhalu.methods.knowhalu.encoder import EntailmentJudge, inference_relation
from knowhalu.requests import Conversation, Entail, EntailmentPair, Probabilities, ask
from knowhalu.text.detectors import EntityDetector, load_detector
from knowhalu.text.overlap import coverage
from knowhalu.text.probabilities import complement, require_measured
from knowhalu.text.sentences import Span, clause_spans, word_count
from knowhalu.types import (
    Entity,
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

ENTITY_WEIGHTS = FeatureWeights(
    bias=0.0, weights={"absent": -2.607, "count_absent": -0.183, "apart": -1.655, "covered": 1.475, "supported": 0.357}, cut=-1.5
)
"""Fitted by scripts/fit_entities.py on 3,214 entities of held-out training sources: edited summaries, own sentences and written
claims (ROC-AUC 0.81, 0.94 and 0.68; 55 %, 45 % and 20 % of the wrong entities fail, and 11 %, 0 % and 8 % of the right ones).

The cut comes from whole held-out claims: about the strictest at which both levels are as good as sentences alone (average
accuracy 0.808 and 0.810; false claims found 0.789 and 0.771, true ones passed 0.828 and 0.850). The model of sentences
sees missing numbers, dates and names already, so the entities add no accuracy; one that fails shows where the error is.
"""
MIN_CLAUSE_WORDS = 5
"""A shorter clause is replaced by its whole sentence."""
LABEL_BY_RELATION = {relation: label for label, relation in RELATION_BY_LABEL.items()}


class ConliEncoder:
    """Infer with the verifier; needs no LLM and no GPU."""

    name = "encoder"

    def __init__(self, folder: Path) -> None:
        self.entailment = EntailmentJudge(folder)

    def detector(self, name: str) -> EntityDetector:
        """Return the detector of entities."""
        return load_detector(name)

    def infer(
        self, sample: Sample, hypotheses: Sequence[EntityHypothesis], passages: Sequence[Passage]
    ) -> Conversation[Sequence[Judgment]]:
        """Judge each hypothesis by the passages: sentences as wholes, entities alone."""
        focused = [(h.text, h.focus) for h in hypotheses if h.focus is not None]
        if focused:
            return (yield from judge_entities(focused, sentences_in_context(passages)))
        judgments = []
        for text, _ in hypotheses:
            judgment = yield from self.entailment.judge(sample.model_copy(update={"response": text}), passages)
            label = LABEL_BY_RELATION[inference_relation(judgment)]
            p = require_measured(judgment.p_supported)
            sure = max(p, 1 - p)
            fields = _reason_fields(label, judgment.inconclusive_reason or InconclusiveReason.UNSURE)
            updates = {"form": None, "label": label, "confidence": sure, "kind": None, **fields}
            judgments.append(judgment.model_copy(update=updates))
        return judgments


def _reason_fields(label: Label, why: InconclusiveReason) -> dict[str, Any]:
    return {
        "inconclusive_reason": why if label is Label.INCONCLUSIVE else None,
        "relation": Relation.CONTRADICTION if label is Label.INCORRECT else None,
    }


def judge_entities(hypotheses: Sequence[tuple[str, Entity]], views: Sequence[SentenceInContext]) -> Conversation[list[Judgment]]:
    """Judge `(sentence, entity)` pairs by the sentences of the sources in their context."""
    if not views:
        none = InconclusiveReason.NOTHING_RETRIEVED
        no_evidence = Judgment(
            label=Label.INCONCLUSIVE, confidence=1.0, p_supported=0.0, rationale=NO_EVIDENCE, inconclusive_reason=none
        )  # fmt: skip
        return [no_evidence] * len(hypotheses)
    supports = [find_entity_support(text, entity, views) for text, entity in hypotheses]
    pairs = [
        [EntailmentPair(view.context, clause_of(*h)) for view in (s.best_match, s.best_context)]
        for h, s in zip(hypotheses, supports, strict=True)
    ]
    distinct = tuple(dict.fromkeys(pair for both in pairs for pair in both))
    scores = dict(zip(distinct, (yield from ask(Entail(distinct))), strict=True))
    return [
        _judge_entity(*h, s, (scores[match], scores[context]))
        for h, s, (match, context) in zip(hypotheses, supports, pairs, strict=True)
    ]


def _judge_entity(text: str, entity: Entity, support: EntitySupport, scores: tuple[Probabilities, Probabilities]) -> Judgment:
    features = entity_features(entity, support, *scores)
    p = ENTITY_WEIGHTS.probability(features)
    sources_differ = features["other_count"] > 0 or features["contradicted"] > 0
    label = Label.CORRECT if p >= 0.5 else Label.INCORRECT if sources_differ else Label.INCONCLUSIVE
    judgment = Judgment(
        label=label, confidence=max(p, 1 - p), p_supported=p, rationale=_rationale(label, support, scores), features=features,
        **_reason_fields(label, InconclusiveReason.OFF_TOPIC if support.match < 1 else InconclusiveReason.UNSURE),
    )  # fmt: skip
    return judgment.model_copy(update={"steps": (_quote_step(text, entity, support, judgment),)})


def clause_of(text: str, entity: Entity) -> str:
    """Return the clause of a sentence that has the entity, or the sentence where that is short."""
    for clause in clause_spans(text, Span(0, len(text), text)):
        if clause.start <= entity.start and entity.end <= clause.end and word_count(clause.text) >= MIN_CLAUSE_WORDS:
            return clause.text
    return text


def _rationale(label: Label, support: EntitySupport, scores: Sequence[Probabilities]) -> str:
    """Return the main reason in a sentence."""
    supported, contradicted = max(s.supported for s in scores), max(s.contradicted for s in scores)
    if label is Label.CORRECT and support.match < 1:
        return f"the sources do not contain all of it in these words, but it may follow from them (P {supported:.2f})"
    if label is Label.CORRECT:
        return f"the sources contain it in this context (P {supported:.2f})"
    if support.match < 1:
        return "the sources do not contain it" if support.match == 0 else f"the sources contain only {support.match:.0%} of it"
    if support.match_in_context < 1:
        return "the sources contain it, but in another context"
    return f"the sources do not support it in this context (P {supported:.2f}, contradicted {contradicted:.2f})"


def _quote_step(text: str, entity: Entity, support: EntitySupport, judgment: Judgment) -> Step:
    """Quote the sentence by which the entity was judged: the one that has it, or the one on the same matter."""
    view = support.best_match if judgment.label is Label.CORRECT else support.best_context
    quote = Quote(
        passage=view.passage.id, text=view.text, start=view.start, end=view.end, supported=judgment.p_supported,
        contradicted=complement(judgment.p_supported) if judgment.label is Label.INCORRECT else 0.0,
        relevance=max(coverage(text, view.context), coverage(entity.text, view.context)),
    )  # fmt: skip
    knowledge = Knowledge(form=KnowledgeForm.UNSTRUCTURED, quotes=(quote,), text=view.text)
    return Step(thought="", query=Query(specific=entity.text, general=""), passages=(view.passage,), knowledge=knowledge)
