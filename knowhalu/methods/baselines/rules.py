"""Baselines by rules, without a model: one number of a text against a threshold, and rules on copied and missing words.

A detector must beat the trivial rules; on several published sets they beat the published methods. The lexical rules leave most
texts inconclusive: they are the first stage of a cascade. They read only the sources given with a text, since passages of an
index are never all of it.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import SettingsError
from knowhalu.methods.common.sources import given_passages, retrieve_passages
from knowhalu.methods.common.verdict import error_relation, is_hallucinated
from knowhalu.methods.conli.entity_support import NUMERIC_TYPES, entity_match
from knowhalu.methods.options import LexicalOptions, LexicalRule, TrivialOptions
from knowhalu.requests import Conversation
from knowhalu.results import Finding, Segment, Verdict
from knowhalu.text.entities import find_entities
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.sentences import STOPWORDS, sentences, stem, word_count, words
from knowhalu.types import HallucinationKind, InconclusiveReason, Judgment, Label, Passage, Relation, Sample

Direction = Literal["over", "under"]
_SENTENCE_START = re.compile(r"(?:^|[.!?:])\W*$")


class TrivialRule(NamedTuple):
    """A trivial rule: its measure, the wording of its value, and the side on which hallucinated texts are expected."""

    name: str
    measure: Callable[[str, str], float]
    says: str
    usual: Direction
    reads: bool = True


def response_length(response: str, source: str) -> float:
    """Return the number of words."""
    return float(word_count(response))


def source_overlap(response: str, source: str) -> float:
    """Return the share of the response's content words that the source has, each counted as often as it occurs."""
    return coverage(response, source)


def source_novelty(response: str, source: str) -> float:
    """Return the share of the response's word pairs, names and numbers that the source lacks; of its words where it has none."""
    facts, known = text_facts(response), text_facts(source)
    wanted: set[tuple[str, ...]] = {*facts.pairs, *((w,) for w in _names_and_numbers(response))} or {(w,) for w in facts.content}
    missing = wanted - known.pairs - {(w,) for w in known.content}
    return len(missing) / len(wanted) if wanted else 0.0


def _names_and_numbers(text: str) -> set[str]:
    """Return capitalised words inside a sentence, and what has a digit, as `content_words` writes them."""
    return {
        stem(w.text.lower())
        for w in words(text)
        if w.text[0].isalnum()
        and w.text.lower() not in STOPWORDS
        and (
            any(c.isdigit() for c in w.text)
            or (w.text[0].isupper() and not _SENTENCE_START.search(text[max(0, w.start - 8) : w.start]))
        )
    }


TRIVIAL_RULES = {
    rule.name: rule for rule in (
        TrivialRule("trivial-length", response_length, "{:.0f} words", "over", reads=False),
        TrivialRule("trivial-overlap", source_overlap, "{:.3f} of its words are in the sources", "under"),
        TrivialRule("trivial-novelty", source_novelty, "{:.3f} of its word pairs, names and numbers are in no source", "over"),
    )
}  # fmt: skip


class TrivialBaseline:
    """Check by one rule. The question counts as a source, since repeating it adds nothing new."""

    def __init__(self, rule: TrivialRule, options: TrivialOptions) -> None:
        """Take the threshold from the options or their file; raises SettingsError where there is none."""
        if options.rule is not None and options.threshold is not None:
            raise SettingsError("trivial.rule and trivial.threshold are both given. Keep one of them")
        self.rule, self.name = rule, rule.name
        threshold, direction = (
            _read_fitted_rule(rule.name, options.rule) if options.rule else (options.threshold, options.direction)
        )
        if threshold is None:
            raise SettingsError(
                f"{rule.name} has no threshold. Fit one on labelled rows (knowhalu compare IN --fit VALIDATION.jsonl) and name "
                "its file by --set trivial.rule=FOLDER/trivial.json, or give one by --set trivial.threshold=NUMBER"
            )
        self.threshold: float = threshold
        self.sign = 1 if (direction or rule.usual) == "over" else -1

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        source = ""
        if self.rule.reads:
            query = " ".join(filter(None, (sample.question, sample.response)))
            passages = given_passages(sample) or (yield from retrieve_passages(sample, [query], 2))
            source = "\n".join([sample.question or "", *map(str, passages)])
        return self.verdict(sample, self.rule.measure(sample.response, source))

    def verdict(self, sample: Sample, value: float) -> Verdict:
        """Decide by the value of a sample."""
        distance = self.sign * (value - self.threshold)
        p = threshold_probability(distance, self.threshold)
        side = "over" if self.sign > 0 else "under"
        judgment = Judgment(
            label=Label.INCORRECT if distance > 0 else Label.CORRECT, confidence=max(p, 1 - p), p_supported=1 - p,
            rationale=f"{self.rule.says.format(value)}; {side} {self.threshold:g} counts as hallucinated",
            confidence_source="none", features={self.name: value},
        )  # fmt: skip
        return _rule_verdict(sample, self.name, judgment, p)


def threshold_probability(distance: float, threshold: float) -> float:
    """Return 0.5 + d / 2(|d| + max(1, |threshold|)): 0.5 at the threshold, more on the hallucinated side.

    It ranks texts and is not calibrated.
    """
    return 0.5 + 0.5 * distance / (abs(distance) + max(1.0, abs(threshold)))


def _read_fitted_rule(name: str, file: Path) -> tuple[float, Direction]:
    """Read a rule from the file that a fit left; raises SettingsError."""
    try:
        fields: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))[name]
        threshold, direction = float(fields["threshold"] if "threshold" in fields else fields["border"]), fields["direction"]
        if direction not in ("over", "under") or not isfinite(threshold):
            raise ValueError(f"{direction} {threshold}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "Fit it again by knowhalu compare IN --fit VALIDATION.jsonl"
        raise SettingsError(f"{file}: holds no rule for {name} ({type(error).__name__}: {error}). {remedy}") from error
    return threshold, direction


length_baseline = partial(TrivialBaseline, TRIVIAL_RULES["trivial-length"])
overlap_baseline = partial(TrivialBaseline, TRIVIAL_RULES["trivial-overlap"])
novelty_baseline = partial(TrivialBaseline, TRIVIAL_RULES["trivial-novelty"])


RULE_CONFIDENCE = 0.95
"""An assumption, not a measurement; `knowhalu calibrate --method cascade` measures how often the rules are right."""
UNDECIDED_NOTE, NO_SOURCES_NOTE = "no rule applies", "the rules read only sources that are given with the text"


class LexicalBaseline:
    """Decide by rules on words, or leave a text inconclusive."""

    name = "lexical"

    def __init__(self, options: LexicalOptions) -> None:
        self.options = options

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample, without any request."""
        yield from ()
        if sources := given_passages(sample):
            findings, undecided, why = self.findings(sample, sources), UNDECIDED_NOTE, InconclusiveReason.UNSURE
        else:
            findings, undecided, why = (), NO_SOURCES_NOTE, InconclusiveReason.NOTHING_RETRIEVED
        label = findings[0].label if findings else Label.INCONCLUSIVE
        p = {Label.CORRECT: 1 - RULE_CONFIDENCE, Label.INCORRECT: RULE_CONFIDENCE, Label.INCONCLUSIVE: 0.5}[label]
        judgment = Judgment(
            label=label, confidence=max(p, 1 - p), p_supported=1 - p, confidence_source="none",
            rationale="; ".join(dict.fromkeys(f.reason for f in findings)) or undecided,
            inconclusive_reason=None if findings else why,
        )  # fmt: skip
        return _rule_verdict(sample, self.name, judgment, p, findings)

    def findings(self, sample: Sample, sources: Sequence[Passage]) -> tuple[Finding, ...]:
        """Return the entities that are in no source, or else the sentences that are there word for word."""
        rules = self.options.rules
        source_text = "\n".join([sample.question or "", *map(str, sources)])
        missing = tuple(_missing_entities(sample.response, source_text, rules))
        return missing or (_copied_sentences(sample, sources) if "copied" in rules else ())


def _rule_verdict(
    sample: Sample, method: str, judgment: Judgment, probability: float, findings: tuple[Finding, ...] = ()
) -> Verdict:
    """Make the verdict on a text that a rule judges as a whole; without findings, its kind is unknown."""
    label = judgment.label
    whole = Segment(
        start=0, end=len(sample.response), text=sample.response, label=label, inconclusive_reason=judgment.inconclusive_reason,
        relation=error_relation(label, judgment, findings), probability=probability, base=judgment, findings=findings,
    )  # fmt: skip
    return Verdict(
        id=sample.id, task=sample.task, method=method, label=label, hallucinated=is_hallucinated(label),
        inconclusive_reason=whole.inconclusive_reason, relation=whole.relation, probability=probability,
        kind=HallucinationKind.FACTUAL if findings and label is Label.INCORRECT else None,
        reason=judgment.rationale, segments=(whole,),
    )  # fmt: skip


def _missing_entities(response: str, source_text: str, rules: Sequence[LexicalRule]) -> Iterator[Finding]:
    for entity in find_entities(response):
        kind = rule_for_type(entity.type)
        if kind in rules and not entity_match(entity.text, source_text):
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
    return f" {' '.join(text.split())} "
