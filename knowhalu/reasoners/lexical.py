"""Rules on words: whether a text stands in its sources as it is, and which of its dates, numbers and names stand in none."""

import re
from collections.abc import Iterator, Sequence

from knowhalu.methods.lexical import Lexical
from knowhalu.options import LexicalOptions, LexicalRule
from knowhalu.reasoners.entities import by_rules
from knowhalu.reasoners.standing import COUNTED, held_in
from knowhalu.text import sentences
from knowhalu.types import Label, Passage, Relation, Sample
from knowhalu.verdicts import Finding

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
