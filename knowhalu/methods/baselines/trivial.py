"""Trivial rules: one number of a text against a threshold, a baseline that every detector must beat.

On several published sets such a rule beats the published methods, so results need these baselines for comparison.
"""

import json
import re
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import SettingsError
from knowhalu.methods.baselines.options import TrivialOptions
from knowhalu.methods.common.sources import given_passages, retrieve_passages
from knowhalu.requests import Conversation
from knowhalu.results import Segment, Verdict
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.sentences import STOPWORDS, stem, word_count, words
from knowhalu.types import Judgment, Label, Sample

Direction = Literal["over", "under"]
Measure = Callable[[str, str], float]
_SENTENCE_START = re.compile(r"(?:^|[.!?:])\W*$")


class TrivialRule(NamedTuple):
    """A trivial rule: its measure, the wording of its value, and the side on which hallucinated texts are expected."""

    name: str
    measure: Measure
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
    own, known = text_facts(response), text_facts(source)
    wanted: set[tuple[str, ...]] = {*own.pairs, *((w,) for w in _names_and_numbers(response))} or {(w,) for w in own.content}
    missing = wanted - known.pairs - {(w,) for w in known.content}
    return len(missing) / len(wanted) if wanted else 0.0


def _names_and_numbers(text: str) -> set[str]:
    """Return capitalised words inside a sentence, and what has a digit, as `content_words` writes them."""
    found = [w for w in words(text) if w.text[0].isalnum() and w.text.lower() not in STOPWORDS]
    return {
        stem(w.text.lower())
        for w in found
        if any(c.isdigit() for c in w.text)
        or (w.text[0].isupper() and not _SENTENCE_START.search(text[max(0, w.start - 8) : w.start]))
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
        self.threshold, direction = (
            _read_fitted_rule(rule.name, options.rule) if options.rule else (options.threshold, options.direction)
        )
        if self.threshold is None:
            raise SettingsError(
                f"{rule.name} has no threshold. Fit one on labelled rows (knowhalu compare IN --fit VALIDATION.jsonl) and name "
                "its file by --set trivial.rule=FOLDER/trivial.json, or give one by --set trivial.threshold=NUMBER"
            )
        self.sign = 1 if (direction or rule.usual) == "over" else -1

    def check(self, sample: Sample) -> Conversation[Verdict]:
        """Check one sample."""
        source = (yield from _source(sample)) if self.rule.reads else ""
        return self.verdict(sample, self.rule.measure(sample.response, source))

    def verdict(self, sample: Sample, value: float) -> Verdict:
        """Decide by the value of a sample."""
        threshold = self.threshold or 0.0
        distance = self.sign * (value - threshold)
        hallucinated, p = distance > 0, threshold_probability(distance, threshold)
        label = Label.INCORRECT if hallucinated else Label.CORRECT
        reason = f"{self.rule.says.format(value)}; {'over' if self.sign > 0 else 'under'} {threshold:g} counts as hallucinated"
        judgment = Judgment(
            label=label, confidence=max(p, 1 - p), p_supported=1 - p, rationale=reason, confidence_source="none",
            features={self.name: value},
        )  # fmt: skip
        whole = Segment(
            start=0, end=len(sample.response), text=sample.response, label=label, probability=p, base=judgment
        )  # fmt: skip
        return Verdict(
            id=sample.id, task=sample.task, method=self.name, label=label, hallucinated=hallucinated, kind=None, probability=p,
            reason=reason, segments=(whole,),
        )  # fmt: skip


def threshold_probability(distance: float, threshold: float) -> float:
    """Return 0.5 + d / 2(|d| + max(1, |threshold|)): 0.5 at the threshold, more on the hallucinated side.

    It ranks texts and is not calibrated.
    """
    return 0.5 + 0.5 * distance / (abs(distance) + max(1.0, abs(threshold)))


def _source(sample: Sample) -> Conversation[str]:
    passages = given_passages(sample) or (
        yield from retrieve_passages(sample, [" ".join(filter(None, (sample.question, sample.response)))], 2)
    )
    return "\n".join([sample.question or "", *(str(p) for p in passages)])


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


def length_baseline(options: TrivialOptions) -> TrivialBaseline:
    """Make the rule on the number of words."""
    return TrivialBaseline(TRIVIAL_RULES["trivial-length"], options)


def overlap_baseline(options: TrivialOptions) -> TrivialBaseline:
    """Make the rule on the words that stand in the sources."""
    return TrivialBaseline(TRIVIAL_RULES["trivial-overlap"], options)


def novelty_baseline(options: TrivialOptions) -> TrivialBaseline:
    """Make the rule on words, names and numbers that no source contains."""
    return TrivialBaseline(TRIVIAL_RULES["trivial-novelty"], options)
