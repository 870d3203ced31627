"""The small calibrated model over evidence features: a logistic regression whose weights can be read in its file."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import check_fitted_weights
from knowhalu.methods.common.combine import Thresholds
from knowhalu.methods.common.features import FEATURES

OLD_NAMES = {"stated_supported": "asked_supported", "stated_contradicted": "asked_contradicted"}
"""Features of earlier fits, question and answer as one statement, which took these values where no statement could be made."""
MAX_FITTED_SEGMENTS = 4
"""Segments of the longest texts that the slack was fitted on; longer texts get no more of it, so that one error still shows."""


@dataclass(frozen=True)
class FeatureWeights:
    """One logistic regression on raw features.

    P(supported) = sigmoid(slope x (bias + sum of weight x feature - cut + slack x ln(segments))): of many segments the worst
    looks doubtful by chance, so each of them is doubted less. The slope is one over the temperature, fitted on rows that the
    weights were not.
    """

    bias: float
    weights: Mapping[str, float]
    cut: float
    slack: float = 0.0
    slope: float = 1.0

    def probability(self, features: Mapping[str, float], segments: int = 1) -> float:
        """Return P(supported) of one of `segments` segments, moved so that the fitted decision border lies at 0.5."""
        score = self.bias + sum(w * features[name] for name, w in self.weights.items())
        score = self.slope * (score + self.slack * math.log(min(segments, MAX_FITTED_SEGMENTS)) - self.cut)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def _known(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights by today's names; raises ValueError for a feature that is not computed."""
    found: dict[str, float] = {}
    for name, weight in weights.items():
        name = OLD_NAMES.get(name, name)
        if name not in FEATURES:
            raise ValueError(f"unknown feature {name!r}")
        found[name] = found.get(name, 0.0) + weight
    return found


class JudgmentModel:
    """The weights for each task and form, and the thresholds of the aggregation, from `judgment.json`.

    `evades` is the probability from which an answer does not deliver what was asked for; None where the verifier was not trained
    to tell.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "judgment.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            self._weights = {
                k: FeatureWeights(v["bias"], _known(v["weights"]), v["cut"], v["slack"], v.get("slope", 1.0))
                for k, v in data["weights"].items()
            }
            self._thresholds = {k: Thresholds(*v) for k, v in data["thresholds"].items()}
            self.evades = None if data.get("evades") is None else float(data["evades"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"{path}: cannot read the judgment weights ({error}); fit them with scripts/fit_judgment.py"
            ) from error
        check_fitted_weights(path, data, "scripts/fit_judgment.py")

    def weights(self, task: str, form: str) -> FeatureWeights:
        """Return the weights of "claim" or "answer" in one form."""
        return self._weights[f"{task}.{form}"]

    def thresholds(self, task: str) -> Thresholds:
        """Return delta1 and delta2 as calibrated."""
        return self._thresholds[task]
