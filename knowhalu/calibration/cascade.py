"""The stored stages of a cascade, decided again with other rules and another band, for all rows at once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from knowhalu.calibration.measures import error_rate_upper_limit, is_error_rate_bounded
from knowhalu.calibration.run_settings import ALL_STAGES_FLAGS
from knowhalu.calibration.tunable import RowIndices, VerdictLines, make_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.baselines.rules import rule_for_type
from knowhalu.methods.cascade import ENCODER_STAGE, LLM_STAGE, RULES_STAGE

RULE_NAMES = ("copied", "dates", "numbers", "names")
NEVER_FAITHFUL, NEVER_HALLUCINATED = -1.0, 1.0
"""Thresholds of a side that decides nothing: no probability is at most the one, or over the other."""
RISK_SIZES = 50
"""Numbers of rows for which the lowest reachable risk is computed."""


class TunableCascade(NamedTuple):
    """The results of every stage for every row; probabilities are NaN where a stage did not run or was inconclusive.

    `rules` has a row for each of `RULE_NAMES`, true where it decides; "copied" decides faithful, the others hallucinated.
    `last` are the predictions of the language model, an abstention where it did not run or was inconclusive.
    """

    gold: Flags
    rules: Flags
    encoder: Floats
    last: Predictions
    risk: float

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose the rules and the band that decide as many rows as possible at the stated risk.

        The upper 95 % limit of the error rate of each rule, and of each side of the band, must be below the risk.
        """
        kept = [name for i, name in enumerate(RULE_NAMES) if self._is_safe(rows[self.rules[i, rows]], faithful=name == "copied")]
        left = rows[~self._by_rules(kept)[rows] & ~np.isnan(self.encoder[rows])]
        left = left[np.argsort(self.encoder[left], kind="stable")]
        low, high = self._band(left)
        if low is None and high is None and not kept:
            raise InputError(self._unreachable(left))
        low, high = NEVER_FAITHFUL if low is None else low, NEVER_HALLUCINATED if high is None else high
        return {"lexical": {"rules": kept}, "cascade": {"low": low, "high": high}}

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the predictions of the cascade for all rows with these rules and this band."""
        stage, own = self.stage(settings), settings["cascade"]
        copied = self.rules[RULE_NAMES.index("copied")]
        p = np.nan_to_num(self.encoder, nan=0.5)
        p = np.where(stage == RULES_STAGE, np.where(copied, 0.05, 0.95), np.where(stage == LLM_STAGE, self.last.probability, p))
        flagged = np.where(stage == RULES_STAGE, ~copied, np.where(stage == ENCODER_STAGE, p > own["high"], self.last.settled))
        return make_predictions(self.gold, flagged, (stage == "") | ((stage == LLM_STAGE) & self.last.abstained), p)

    def stage(self, settings: dict[str, Any]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """Return the stage that decides each row; "" where none does."""
        low, high = settings["cascade"]["low"], settings["cascade"]["high"]
        by_encoder = (self.encoder <= low) | (self.encoder > high)
        found = np.where(by_encoder, ENCODER_STAGE, np.where(np.isnan(self.last.probability), "", LLM_STAGE))
        return np.where(self._by_rules(settings["lexical"]["rules"]), RULES_STAGE, found)

    def _by_rules(self, names: Sequence[str]) -> Flags:
        return np.asarray(self.rules[[RULE_NAMES.index(name) for name in names]].any(axis=0))

    def _is_safe(self, rows: RowIndices, *, faithful: bool) -> bool:
        return is_error_rate_bounded(self.risk, int((self.gold[rows] == faithful).sum()), len(rows))

    def _band(self, ordered: RowIndices) -> tuple[float | None, float | None]:
        """Return the thresholds of both sides, rows ordered by probability; None for a side that decides nothing.

        Where they cross, one threshold near the middle replaces both, if both sides keep the risk there; if none does, only the
        side that decides more rows is kept.
        """
        low, high = self._threshold(ordered, faithful=True), self._threshold(ordered[::-1], faithful=False)
        if low is None or high is None or low <= high:
            return low, high
        p = self.encoder[ordered]
        known, middle = np.unique(p), (low + high) / 2
        between = [float(cut) for cut in (known[:-1] + known[1:]) / 2 if high <= cut <= low]
        for cut in sorted((middle, *between), key=lambda cut: abs(cut - middle)):
            at = np.searchsorted(p, cut, side="right")
            if self._is_safe(ordered[:at], faithful=True) and self._is_safe(ordered[at:], faithful=False):
                return cut, cut
        return (low, None) if (p <= low).sum() >= (p > high).sum() else (None, high)

    def _threshold(self, ordered: RowIndices, *, faithful: bool) -> float | None:
        """Return the threshold of one side, as far as the risk allows; rows are ordered by falling confidence."""
        p, wrong = self.encoder[ordered], self.gold[ordered] == faithful
        errors = np.cumsum(wrong)
        for size in range(len(p), 0, -1):
            beyond = p[size] if size < len(p) else float(faithful)
            if p[size - 1] != beyond and is_error_rate_bounded(self.risk, int(errors[size - 1]), size):
                return float((p[size - 1] + beyond) / 2)
        return None

    def _unreachable(self, ordered: RowIndices) -> str:
        """Return a message with the lowest risk that can be kept, and the number of rows."""
        best = (1.0, 0, "passed")
        for rows, faithful, name in ((ordered, True, "passed"), (ordered[::-1], False, "flagged")):
            errors = np.cumsum(self.gold[rows] == faithful)
            sizes = np.unique(np.geomspace(1, max(1, len(rows)), RISK_SIZES).astype(int)) if len(rows) else ()
            found = ((error_rate_upper_limit(int(errors[n - 1]), int(n)), int(n), name) for n in sizes)
            best = min([best, *found])
        limit, rows_, name = best
        return (
            f"no stage can decide any of these rows at a risk of {self.risk:g}: the lowest that can be kept is {limit:.3f}, for "
            f"the {rows_:,} rows that are most confidently {name}. Set --max-risk to it, or give more rows."
        )


def read_tunable_cascade(lines: VerdictLines, gold: Flags, risk: float) -> TunableCascade:
    """Return the stages of all verdicts; raises InputError where a stage did not run."""
    rules = np.zeros((len(RULE_NAMES), len(lines)), dtype=np.bool_)
    encoder = np.full(len(lines), np.nan)
    p, flagged, open_ = np.full(len(lines), np.nan), np.zeros(len(lines), np.bool_), np.ones(len(lines), np.bool_)
    for i, (_, fields) in enumerate(lines):
        stages = {stage["name"]: stage for stage in fields["stages"]}
        if ENCODER_STAGE not in stages:
            raise InputError(f"the sample {fields['id']!r} was not checked by every stage. Run it with {ALL_STAGES_FLAGS}.")
        if stages.get(RULES_STAGE, {"decided": False})["decided"]:
            for finding in fields["segments"][0]["findings"]:
                rules[RULE_NAMES.index("copied" if finding["unit"] == "claim" else rule_for_type(finding["type"])), i] = True
        if stages[ENCODER_STAGE]["hallucinated"] is not None:
            encoder[i] = stages[ENCODER_STAGE]["probability"]
        if LLM_STAGE in stages:
            predictions = stages[LLM_STAGE]
            p[i], flagged[i], open_[i] = (
                predictions["probability"],
                bool(predictions["hallucinated"]),
                predictions["hallucinated"] is None,
            )
    return TunableCascade(gold, rules, encoder, Predictions(gold, flagged, open_, p), risk)
