"""Rules on words alone: sentences copied from a source, and dates, numbers or names that stand in none.

Most texts are neither, and are left open. The rules make the first stage of a cascade; they read only the sources that come with
a text, since what an index gives is never all that it has.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from knowhalu.methods.common.sources import given
from knowhalu.methods.common.verdict import hallucinated, how_wrong
from knowhalu.methods.conli.entity_support import COUNTED, held_in
from knowhalu.requests import Steps
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.settings import LexicalOptions, LexicalRule
from knowhalu.text.entities import by_rules
from knowhalu.text.sentences import sentences
from knowhalu.types import Judgment, Kind, Label, OpenReason, Passage, Relation, Sample

SURE = 0.95
"""Stated, not measured: how far to trust a rule is for `knowhalu calibrate --method cascade` to say."""
OPEN, BARE = "no rule decides", "the rules read only sources that come with the text"


class LexicalReasoner(Protocol):
    """What the rules are applied by."""

    def findings(self, sample: Sample, sources: Sequence[Passage], rules: Sequence[LexicalRule]) -> tuple[Finding, ...]:
        """Return what decides: findings that are INCORRECT, or else CORRECT; none where no rule decides."""


class Lexical:
    """Decide by rules on words, or leave a text open."""

    name = "lexical"

    def __init__(self, reasoner: LexicalReasoner, options: LexicalOptions | None = None) -> None:
        self.reasoner, self.options = reasoner, options or LexicalOptions()

    def check(self, sample: Sample) -> Steps[Verdict]:
        """Check one sample; nobody is asked anything."""
        yield from ()
        sources = given(sample)
        found = self.reasoner.findings(sample, sources, self.options.rules) if sources else ()
        return _verdict(sample, found, *(OPEN, OpenReason.UNSURE) if sources else (BARE, OpenReason.NOTHING_RETRIEVED))


def _verdict(sample: Sample, found: Sequence[Finding], otherwise: str, why: OpenReason) -> Verdict:
    label = found[0].label if found else Label.INCONCLUSIVE
    p = {Label.CORRECT: 1 - SURE, Label.INCORRECT: SURE, Label.INCONCLUSIVE: 0.5}[label]
    reason = "; ".join(dict.fromkeys(f.reason for f in found)) or otherwise
    judgment = Judgment(
        label=label, confidence=max(p, 1 - p), supported=1 - p, rationale=reason, measured="nowhere", open=None if found else why
    )
    whole = Segment(
        start=0, end=len(sample.response), text=sample.response, label=label, open=judgment.open,
        relation=how_wrong(label, judgment, found), probability=p, base=judgment, findings=tuple(found),
    )  # fmt: skip
    return Verdict(
        id=sample.id, task=sample.task, method=Lexical.name, label=label, hallucinated=hallucinated(label),
        open=whole.open, relation=whole.relation,
        kind=Kind.FACTUAL if label is Label.INCORRECT else None, probability=p, reason=reason, segments=(whole,),
    )  # fmt: skip


_SPACE = re.compile(r"\s+")


class Rules:
    """Apply the rules by patterns, capitals and lists; needs no model."""

    name = "rules"

    def findings(self, sample: Sample, sources: Sequence[Passage], rules: Sequence[LexicalRule]) -> tuple[Finding, ...]:
        """Return what decides: entities that stand in no source, or else the sentences that stand there word for word."""
        told = "\n".join([sample.question or "", *map(str, sources)])
        missing = tuple(_missing(sample.response, told, rules))
        return missing or (_copied(sample, sources) if "copied" in rules else ())


def _missing(response: str, told: str, rules: Sequence[LexicalRule]) -> Iterator[Finding]:
    for entity in by_rules(response):
        kind = rule_of(entity.type)
        if kind in rules and not held_in(entity.text, told):
            yield Finding(
                unit="entity", start=entity.start, end=entity.end, text=entity.text, type=entity.type, label=Label.INCORRECT,
                relation=Relation.NEUTRAL, supported=0.0, reason=f"the {kind[:-1]} “{entity.text}” stands in no source",
            )  # fmt: skip


def rule_of(type: str) -> LexicalRule:
    """Return the rule that looks at entities of a type."""
    return "dates" if type in ("date", "time") else "numbers" if type in COUNTED else "names"


def _copied(sample: Sample, sources: Sequence[Passage]) -> tuple[Finding, ...]:
    """Return every sentence where all stand in the sources; an answer may stand there and still answer something else."""
    spans = sentences(sample.response)
    texts = [_plain(p.text) for p in sources]
    if sample.question or not spans or not all(any(_plain(s.text) in text for text in texts) for s in spans):
        return ()
    return tuple(
        Finding(unit="claim", start=s.start, end=s.end, text=s.text, label=Label.CORRECT,
                relation=Relation.ENTAILMENT, supported=1.0, reason="it stands word for word in a source")
        for s in spans
    )  # fmt: skip


def _plain(text: str) -> str:
    return f" {_SPACE.sub(' ', text).strip()} "


def lexical(options: LexicalOptions) -> Lexical:
    """Make the method of rules."""
    return Lexical(Rules(), options)
