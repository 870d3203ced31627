"""Combination: of two judgments by their confidences (KnowHalu, Algorithm 1), and of a text's claims or segments."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from knowhalu.types import Judgment, Label

CombinationRule = Literal["product", "minimum", "geometric", "calibrated"]


class Thresholds(NamedTuple):
    """Confidences: a base judgment under `delta1` gives way to a supplement over `delta2`."""

    delta1: float
    delta2: float


def needs_second_opinion(base: Judgment, thresholds: Thresholds) -> bool:
    """Tell whether Algorithm 1 needs the supplement."""
    return base.label is Label.INCONCLUSIVE or _sureness(base) < thresholds.delta1


def aggregate_judgments(base: Judgment, supplement: Judgment, thresholds: Thresholds) -> Judgment:
    """Return the judgment that counts (KnowHalu, Algorithm 1)."""
    if base.label is Label.INCONCLUSIVE:
        return supplement
    if _sureness(base) < thresholds.delta1 and _sureness(supplement) > thresholds.delta2:
        return supplement
    return base


def _sureness(judgment: Judgment) -> float:
    """Return the confidence to compare; an unmeasured one is under every delta1, and over no delta2.

    So an unmeasured base needs the other form too, and an unmeasured supplement overrides only what is INCONCLUSIVE.
    """
    return 0.0 if judgment.confidence is None else judgment.confidence


SOFT_MAX_SHARPNESS = 4.0
"""How nearly the soft maximum of the segments' log-odds is the maximum."""
_MIN_PROBABILITY = 1e-12
COMBINATION_RULES: tuple[CombinationRule, ...] = get_args(CombinationRule)
RULE_NAMES: Mapping[str, str] = {
    "product": "the product", "minimum": "the minimum", "geometric": "the geometric mean",
    "calibrated": "the length-calibrated product",
}  # fmt: skip


class CombinationCalibration(NamedTuple):
    """Calibration of the combination: theta for each rule, P(supported) of a typical claim, and the usual number of claims."""

    thetas: Mapping[str, float]
    typical: float
    reference: float


DEFAULT_CALIBRATION = CombinationCalibration(dict.fromkeys(COMBINATION_RULES, 0.5), typical=0.95, reference=4.0)
"""The calibration where nothing was fitted: a text is hallucinated if that is more likely than not.

The paper fits theta for each model on 1,000 texts and gives no figures. `factored.theta` overrides them; `fit_theta` fits one on
labelled rows.
"""


def combine_probabilities(claims: Sequence[float], typical: float, reference: float) -> dict[CombinationRule, float]:
    """Combine P(supported) of n >= 1 claims by every rule; each result is in [0, 1] and grows with each claim's.

    - product: p1 x ... x pn, as if claims were independent. A long text gets less by its length alone.
    - minimum: the worst claim's.
    - geometric: the n-th root of the product. A long text hides one bad claim among many good ones.
    - calibrated: product / typical^(n - reference), at most 1. The effect of the number of claims is divided
      out, so a text of n typical claims gets typical^reference whatever n is, and one bad claim costs the same in a long text
      as in a short one. For n = reference claims it is the product.
    """
    n = len(claims)
    product, least = math.prod(claims), min(claims)
    if least == 0.0:
        return dict.fromkeys(COMBINATION_RULES, 0.0)
    logs = math.fsum(map(math.log, claims))  # the product of many claims may be too small for a float, its logarithm is not
    geometric = min(max(claims), max(least, math.exp(logs / n)))
    calibrated = math.exp(min(0.0, logs - (n - reference) * math.log(typical)))
    return {"product": product, "minimum": least, "geometric": geometric, "calibrated": calibrated}


def hallucination_probability(probability: float, theta: float) -> float:
    """Turn a combined probability into that of a hallucination: over 0.5 exactly where it is under theta.

    It falls in two straight lines: from 1 at 0 to 0.5 at theta, and on to 0 at 1.
    """
    if probability < theta:
        return max(math.nextafter(0.5, 1.0), 1 - 0.5 * probability / theta)
    return 0.5 * (1 - probability) / (1 - theta) if theta < 1 else 0.5


def fit_theta(rows: Iterable[tuple[float, bool]]) -> float:
    """Return the midpoint of the class means of `(combined probability, is faithful)` (Factored Verification, section 2.3).

    Raises ValueError where a class is missing.
    """
    found = list(rows)
    classes = [[p for p, faithful in found if faithful is wanted] for wanted in (True, False)]
    if not all(classes):
        raise ValueError("theta needs faithful and hallucinated texts")
    return math.fsum(math.fsum(c) / len(c) for c in classes) / 2


def soft_max_probability(deciding: float, every: Sequence[float]) -> float:
    """Return P(hallucinated) of a text from that of the segment that decides it, and of all its n >= 1 segments.

    The log-odds are a soft maximum, ln(mean(exp(s z))) / s with s = `SOFT_MAX_SHARPNESS`, in which no segment counts for more
    than the deciding one. They equal those of the deciding segment where all segments have the same, and are up to ln(n) / s
    lower otherwise, since the worst of many segments looks unsupported by chance. A change in any segment shows.
    The result stays on the deciding segment's side of 0.5.
    """
    if not 0.0 < deciding < 1.0:
        return deciding
    most = _log_odds(deciding)
    less = [min(0.0, _log_odds(p) - most) for p in every]
    if not any(less):
        return deciding
    z = most + math.log(math.fsum(math.exp(SOFT_MAX_SHARPNESS * d) for d in less) / len(less)) / SOFT_MAX_SHARPNESS
    z = max(z, most / 10) if most > 0 else z
    p = 1 / (1 + math.exp(-z))
    return max(p, math.nextafter(0.5, 1)) if deciding > 0.5 else p


def _log_odds(p: float) -> float:
    return math.log(max(p, _MIN_PROBABILITY) / max(1 - p, _MIN_PROBABILITY))
