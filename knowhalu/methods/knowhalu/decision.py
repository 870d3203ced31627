"""From the features of a judgment to its label: supported or not, on the topic or not, an answer to the question or not."""

from collections.abc import Mapping
from typing import NamedTuple

from knowhalu.requests import Probabilities
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.types import Label, Relation, Sample

MIN_ON_TOPIC, MIN_ON_TOPIC_NAMELESS = 0.34, 0.2
"""Minimum shares of a question's (or a claim's) words and names that sources must have to be on its topic.

On training rows the first makes 80 % of the claims inconclusive that are paired with evidence of another claim, and 11 % of the
supported claims of FEVER, 8 % of those of Fool Me Twice.
"""


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
    if not given and is_off_topic(features):
        return LabelProbability(Label.INCONCLUSIVE, 1 - features["on_topic"])
    return LabelProbability(Label.INCORRECT, 1 - supported)


def is_off_topic(features: Mapping[str, float]) -> bool:
    """Tell whether the sources are not on a claim's topic, and do not contradict it either."""
    return features["on_topic"] < MIN_ON_TOPIC and features["window_contradicted"] < 0


def unsupported_relation(features: Mapping[str, float]) -> Relation:
    """Return whether sources that do not support a statement contradict it, or are neutral."""
    against = ("window_contradicted", "sentence_contradicted", "values_differ")
    return Relation.CONTRADICTION if any(features.get(name, 0.0) > 0 for name in against) else Relation.NEUTRAL


def misses_question(asked: Probabilities, plain: Probabilities, features: dict[str, float]) -> bool:
    """Tell whether the sources support the statement with all of its details, but not as an answer to the question."""
    missing = features["values_differ"] + features["values_missing"] + features["names_missing"]
    covered = features["fresh_covered"] == 1 and missing == 0
    return covered and plain.supported >= 0.5 and asked.neutral > max(asked.contradicted, asked.supported)


def topic_share(part: Sample, evidence: str) -> float:
    """Return how far the evidence is on the topic: the mean of the shares of its words and of its names that are covered.

    A text without names may be a paraphrase that shares few words with its source, so its words count more.
    """
    asked = part.question or part.response
    names, share = text_facts(asked).names, coverage(asked, evidence)
    if not names:
        return min(1.0, share * MIN_ON_TOPIC / MIN_ON_TOPIC_NAMELESS)
    return (share + len(names & set(text_facts(evidence).content)) / len(names)) / 2
