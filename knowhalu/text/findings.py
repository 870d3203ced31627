"""What the values of a claim and of sentences of its sources say about each other: equal, different, or calculated."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from knowhalu.text.arithmetic import Derivation, check_arithmetic
from knowhalu.text.operations import blank_out, find_operands, find_operations, topic_words
from knowhalu.text.overlap import coverage
from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.units import find_unit
from knowhalu.text.values import Agreement, Conflict, Value, ValueCheck, check_values, find_conflict

MIN_TOPIC_SHARE = 0.75
"""The share of a claim's other words that the sentences of a calculation must have for it to confirm the whole claim."""
MIN_UNIT_SHARE = 0.5


class Findings(NamedTuple):
    """The calculations of a claim, its values one by one, and another value that a sentence has, with places in the claim.

    `settled`: the calculations and values are all confirmed, by sentences with nearly all other words of the claim.
    """

    derived: tuple[Derivation, ...] = ()
    checks: tuple[ValueCheck, ...] = ()
    conflict: Conflict | None = None
    settled: bool = False

    @property
    def refuted(self) -> Derivation | None:
        """Return the calculation that values of the sources refute."""
        return next((d for d in self.derived if d.agreement is Agreement.DIFFERENT), None)

    @property
    def confirmed(self) -> list[Derivation]:
        """Return the calculations that values of the sources confirm."""
        return [d for d in self.derived if d.agreement is Agreement.EQUAL]

    @property
    def opposed(self) -> list[str]:
        """Return the sentences that oppose the claim."""
        if self.refuted:
            return sentences_of(self.refuted)
        return _with_values([self.conflict.sentence], [self.conflict.source]) if self.conflict else []

    @property
    def differ(self) -> float:
        """Return how surely a sentence opposes the claim: 0, 0.5, 1, or 2 for a slip of scale."""
        return 1.0 if self.refuted else self.conflict.sure if self.conflict else 0.0

    @property
    def agreements(self) -> list[Agreement | None]:
        """Return how the sources agree with each value; None where they have no comparable one."""
        return [*(d.agreement for d in self.derived), *(c.agreement for c in self.checks)]


def sentences_of(derived: Derivation) -> list[str]:
    """Return the sentences that have the values of a calculation."""
    return _with_values(derived.sentences, derived.sources)


def _with_values(texts: Sequence[str], values: Sequence[Value]) -> list[str]:
    """Return the sentences of texts that have one of some values; a text may open with what its sentence refers back to."""
    found = [s.text for text in texts for s in sentences(text) if any(v.text in s.text for v in values)]
    return found or list(texts)


def find_findings(claim: str, near: Sequence[str], source: str, question: str = "") -> Findings:
    """Compare a claim with the sentences near it, and its values with those of the whole source as well."""
    derived = check_arithmetic(claim, _without_repeats(near))
    rest = blank_out(claim, (d.value for d in derived if d.agreement is Agreement.EQUAL))
    found = Findings(derived, check_values(rest, source), find_conflict(rest, near, question))
    return found._replace(settled=_is_settled(claim, found, question))


def _without_repeats(texts: Sequence[str]) -> list[str]:
    """Return texts without those that only add a sentence without values to another text."""
    kept = []
    for text in dict.fromkeys(texts):
        parts = [s.text for s in sentences(text)]
        if len(parts) < 2 or find_operands(parts[-1]) or not set(parts) <= set(texts):
            kept.append(text)
    return kept


def _is_settled(claim: str, found: Findings, question: str) -> bool:
    """Tell whether calculations and values confirm a claim that says little else."""
    if not found.confirmed or found.conflict or any(a is not Agreement.EQUAL for a in found.agreements):
        return False
    places = {(d.value.start, d.value.end) for d in found.confirmed}
    calculated = [c for c in find_operations(claim) if (c.value.start, c.value.end) in places]
    topic = frozenset[str]().union(*(topic_words(claim, c) for c in calculated))
    known = set(content_words(" ".join((question, *(s for d in found.confirmed for s in d.sentences)))))
    return len(topic & known) >= MIN_TOPIC_SHARE * len(topic)


_MEASURED_IN = re.compile(r"\b(?:in|number of|amount of) (?P<unit>[a-z]{4,}s)\b")


def find_other_unit(claim: str, sentences: Iterable[str]) -> str | None:
    """Return the sentence that measures in another unit what a claim measures, as "in seconds" for "in milliseconds".

    It has at least half of the claim's other words; none where any sentence has the unit of the claim.
    """
    texts = list(sentences)
    for m in _MEASURED_IN.finditer(claim):
        found, topic = find_unit([m["unit"]]), f"{claim[: m.start()]}{claim[m.end() :]}"
        if found is None or any(re.search(rf"\b{m['unit'].removesuffix('s')}", text) for text in texts):
            continue
        for text in texts:
            others = [o[0] for n in _MEASURED_IN.finditer(text) if (o := find_unit([n["unit"]]))]
            if any(o.dimension == found[0].dimension for o in others) and coverage(topic, text) >= MIN_UNIT_SHARE:
                return text
    return None
