"""What rules alone can tell: a text that stands word for word in its sources, or a date, number or name that stands in none.

Most texts are neither, and are left open. The rules make the first stage of a cascade; they read only the sources that come with
a text, since what an index gives is never all that it has.
"""

from collections.abc import Sequence
from typing import Protocol

from knowhalu.methods.concluding import hallucinated, how_wrong
from knowhalu.methods.sources import given
from knowhalu.options import LexicalOptions, LexicalRule
from knowhalu.reasons import OpenReason
from knowhalu.steps import Steps
from knowhalu.types import Judgment, Kind, Label, Passage, Sample
from knowhalu.verdicts import Finding, Segment, Verdict

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
