"""Factored Verification's stored probabilities of whole texts, decided anew under any theta, for all rows at once."""

from typing import Any, NamedTuple

import numpy as np

from knowhalu.calibration.outcomes import RowIndices, VerdictLines, make_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.common.combine import fit_theta
from knowhalu.settings import CombinationRule
from knowhalu.types import Label


class TunableTheta(NamedTuple):
    """Combined probabilities by the rule in use, NaN where nothing was counted; `left` tells where a claim was left open."""

    gold: Flags
    value: Floats
    left: Flags

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose theta: the midpoint of the class means (Factored Verification, section 2.3)."""
        counted = rows[~np.isnan(self.value[rows])]
        try:
            theta = fit_theta((float(self.value[i]), not self.gold[i]) for i in counted)
        except ValueError as error:
            raise InputError(f"{error}. Give rows of both labels, each with a claim that could be judged.") from error
        return {"factored": {"theta": theta}}

    def said(self, settings: dict[str, Any]) -> Predictions:
        """Return what Factored Verification says of all rows under this theta."""
        theta = float(settings["factored"]["theta"])
        value = np.nan_to_num(self.value, nan=1.0)
        hallucinated = value < theta
        open_ = np.isnan(self.value) | (~hallucinated & self.left)
        return make_predictions(self.gold, hallucinated, open_, np.where(open_, 0.5, hallucination_probabilities(value, theta)))


def hallucination_probabilities(value: Floats, theta: float) -> Floats:
    """Return `knowhalu.methods.common.combine.hallucination_probability` of many values at once."""
    with np.errstate(over="ignore"):  # a theta near 0 leaves an infinite ratio, which the maximum below settles
        under = np.maximum(np.nextafter(0.5, 1.0), 1 - 0.5 * value / (theta or 1.0))
    over = 0.5 * (1 - value) / (1 - theta) if theta < 1 else np.full(value.shape, 0.5)
    return np.where(value < theta, under, over)


def read_tunable_theta(lines: VerdictLines, gold: Flags, rule: CombinationRule) -> TunableTheta:
    """Read the combined probabilities of all verdicts."""
    found = [(_value(fields, rule), _has_open_claim(fields)) for _, fields in lines]
    return TunableTheta(gold, np.array([v for v, _ in found], dtype=float), np.array([left for _, left in found], dtype=np.bool_))


def _value(fields: dict[str, Any], rule: CombinationRule) -> float:
    return float(fields["segments"][0]["base"]["features"].get(rule, np.nan)) if fields["segments"] else np.nan


def _has_open_claim(fields: dict[str, Any]) -> bool:
    return any(f["label"] == Label.INCONCLUSIVE for segment in fields["segments"] for f in segment["findings"])
