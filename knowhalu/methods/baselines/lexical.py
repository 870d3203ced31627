"""Lexical rules: sentences copied from a source, and dates, numbers or names that are in no source.

Most texts are neither, and stay inconclusive. The rules are the first stage of a cascade; they read only the sources given with
a text, since passages of an index are never all of it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from knowhalu.methods.common.sources import given_passages
from knowhalu.methods.common.verdict import error_relation, is_hallucinated
from knowhalu.methods.conli.entity_support import NUMERIC_TYPES, entity_match
from knowhalu.requests import Conversation
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.settings import LexicalOptions, LexicalRule
from knowhalu.text.entities import find_entities
from knowhalu.text.sentences import sentences
from knowhalu.types import HallucinationKind, InconclusiveReason, Judgment, Label, Passage, Relation, Sample

RULE_CONFIDENCE = 0.95
"""An assumption, not a measurement; `knowhalu calibrate --method cascade` measures how often the rules are right."""
UNDECIDED_NOTE, NO_SOURCES_NOTE = "no rule applies", "the rules read only sources that are given with the text"


class LexicalFinder(Protocol):
    """Applies the rules."""

    def findings(self, sample: Sample, sources: Sequence[Passage], rules: Sequence[LexicalRule]) -> tuple[Finding, ...]:
        """Return the findings that decide: INCORRECT ones, else CORRECT ones; empty where no rule applies."""


class LexicalBaseline:
    """Decide by rules on words, or leave a text inconclusive."""

    name = "lexical"

    def __init__(self, reasoner: LexicalFinder, options: LexicalOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or LexicalOptions()

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample, without any request."""
        yield from ()
        sources = given_passages(sample)
        found = self.reasoner.findings(sample, sources, self.options.rules) if sources else ()
        return _verdict(
            sample,
            found,
            *(UNDECIDED_NOTE, InconclusiveReason.UNSURE) if sources else (NO_SOURCES_NOTE, InconclusiveReason.NOTHING_RETRIEVED),
        )


def _verdict(sample: Sample, found: Sequence[Finding], otherwise: str, why: InconclusiveReason) -> Verdict:
    label = found[0].label if found else Label.INCONCLUSIVE
    p = {Label.CORRECT: 1 - RULE_CONFIDENCE, Label.INCORRECT: RULE_CONFIDENCE, Label.INCONCLUSIVE: 0.5}[label]
    reason = "; ".join(dict.fromkeys(f.reason for f in found)) or otherwise
    judgment = Judgment(
        label=label,
        confidence=max(p, 1 - p),
        p_supported=1 - p,
        rationale=reason,
        confidence_source="none",
        inconclusive_reason=None if found else why,
    )
    whole = Segment(
        start=0, end=len(sample.response), text=sample.response, label=label, inconclusive_reason=judgment.inconclusive_reason,
        relation=error_relation(label, judgment, found), probability=p, base=judgment, findings=tuple(found),
    )  # fmt: skip
    return Verdict(
        id=sample.id, task=sample.task, method=LexicalBaseline.name, label=label, hallucinated=is_hallucinated(label),
        inconclusive_reason=whole.inconclusive_reason, relation=whole.relation,
        kind=HallucinationKind.FACTUAL if label is Label.INCORRECT else None, probability=p, reason=reason, segments=(whole,),
    )  # fmt: skip


_SPACE = re.compile(r"\s+")


class LexicalRules:
    """Apply the rules by patterns, capitals and lists; needs no model."""

    name = "rules"

    def findings(self, sample: Sample, sources: Sequence[Passage], rules: Sequence[LexicalRule]) -> tuple[Finding, ...]:
        """Return the entities that are in no source, or else the sentences that are there word for word."""
        told = "\n".join([sample.question or "", *map(str, sources)])
        missing = tuple(_missing_entities(sample.response, told, rules))
        return missing or (_copied_sentences(sample, sources) if "copied" in rules else ())


def _missing_entities(response: str, told: str, rules: Sequence[LexicalRule]) -> Iterator[Finding]:
    for entity in find_entities(response):
        kind = rule_for_type(entity.type)
        if kind in rules and not entity_match(entity.text, told):
            yield Finding(
                unit="entity", start=entity.start, end=entity.end, text=entity.text, type=entity.type, label=Label.INCORRECT,
                relation=Relation.NEUTRAL, p_supported=0.0, reason=f"the {kind[:-1]} “{entity.text}” is in no source",
            )  # fmt: skip


def rule_for_type(type: str) -> LexicalRule:
    """Return the rule for entities of a type."""
    return "dates" if type in ("date", "time") else "numbers" if type in NUMERIC_TYPES else "names"


def _copied_sentences(sample: Sample, sources: Sequence[Passage]) -> tuple[Finding, ...]:
    """Return all sentences if all are in the sources; never of an answer, which may be copied and still miss its question."""
    spans = sentences(sample.response)
    texts = [_normalize(p.text) for p in sources]
    if sample.question or not spans or not all(any(_normalize(s.text) in text for text in texts) for s in spans):
        return ()
    return tuple(
        Finding(unit="claim", start=s.start, end=s.end, text=s.text, label=Label.CORRECT,
                relation=Relation.ENTAILMENT, p_supported=1.0, reason="it is in a source word for word")
        for s in spans
    )  # fmt: skip


def _normalize(text: str) -> str:
    return f" {_SPACE.sub(' ', text).strip()} "


def lexical_baseline(options: LexicalOptions) -> LexicalBaseline:
    """Make the method of rules."""
    return LexicalBaseline(LexicalRules(), options)
