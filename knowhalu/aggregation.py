"""Aggregation of the judgments from two forms of knowledge by their confidences (KnowHalu, Algorithm 1)."""

from typing import NamedTuple

from knowhalu.types import Judgment, Label


class Thresholds(NamedTuple):
    """Confidences: a base under `delta1` is doubted, a supplement over `delta2` is believed."""

    delta1: float
    delta2: float


def needs_second_opinion(base: Judgment, thresholds: Thresholds) -> bool:
    """Tell whether Algorithm 1 will look at the supplement at all."""
    return base.label is Label.INCONCLUSIVE or base.confidence < thresholds.delta1


def aggregate(base: Judgment, supplement: Judgment, thresholds: Thresholds) -> Judgment:
    """Return the judgment that counts (KnowHalu, Algorithm 1)."""
    if base.label is Label.INCONCLUSIVE:
        return supplement
    if base.confidence < thresholds.delta1 and supplement.confidence > thresholds.delta2:
        return supplement
    return base
