"""The stored stages of a cascade, decided again with other rules and another band, for all rows at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from knowhalu.calibration.measures import error_rate_upper_limit, estimate_ratio, is_error_rate_bounded
from knowhalu.calibration.tunable import ALL_STAGES_FLAGS, RowIndices, VerdictLines, make_predictions
from knowhalu.calibration.tuning import Tuner, TuningResult
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.baselines.rules import rule_for_type
from knowhalu.methods.cascade import ENCODER_STAGE, LLM_STAGE, RULES_STAGE

RULE_NAMES = ("copied", "dates", "numbers", "names")
NEVER_FAITHFUL, NEVER_HALLUCINATED = -1.0, 1.0
"""Thresholds of a side that decides nothing: no probability is at most the one, or over the other."""
RISK_SIZES = 50
"""Numbers of rows for which the lowest reachable risk is computed."""


@dataclass(frozen=True)
class StageShare:
    """The rows to which a stage of a cascade gives one label: number, share of all, and error rate, also cross-validated."""

    name: str
    label: str
    rows: int
    share: Estimate
    errors: Estimate
    held: Estimate


class TunableCascade(NamedTuple):
    """The results of every stage for every row; the encoder's probability is NaN where it was inconclusive or not measured.

    `rules` has a row for each of `RULE_NAMES`, true where it decides; "copied" decides faithful, the others hallucinated.
    `last` are the predictions of the language model, an abstention where it did not run or was inconclusive; `ran` tells where
    it ran. Its labels decide also where their probability was not measured (NaN).
    """

    gold: Flags
    rules: Flags
    encoder: Floats
    last: Predictions
    ran: Flags
    risk: float

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose the rules and the band that decide as many rows as possible at the stated risk.

        The upper 95 % limit of the error rate of each rule, and of each side of the band, must be below the risk.
        """
        safe = [name for i, name in enumerate(RULE_NAMES) if self._is_safe(rows[self.rules[i, rows]], faithful=name == "copied")]
        left = rows[~self._by_rules(safe)[rows] & ~np.isnan(self.encoder[rows])]
        left = left[np.argsort(self.encoder[left], kind="stable")]
        low, high = self._band(left)
        if low is None and high is None and not safe:
            raise InputError(self._unreachable(left))
        low, high = NEVER_FAITHFUL if low is None else low, NEVER_HALLUCINATED if high is None else high
        return {"lexical": {"rules": safe}, "cascade": {"low": low, "high": high}}

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the predictions of the cascade for all rows with these rules and this band."""
        stage, high = self.stage(settings), settings["cascade"]["high"]
        copied = self.rules[RULE_NAMES.index("copied")]
        p = np.nan_to_num(self.encoder, nan=0.5)
        p = np.where(stage == RULES_STAGE, np.where(copied, 0.05, 0.95), np.where(stage == LLM_STAGE, self.last.probability, p))
        flagged = np.where(stage == RULES_STAGE, ~copied, np.where(stage == ENCODER_STAGE, p > high, self.last.settled))
        return make_predictions(self.gold, flagged, (stage == "") | ((stage == LLM_STAGE) & self.last.abstained), p)

    def stage(self, settings: dict[str, Any]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """Return the stage that decides each row; "" where none does."""
        low, high = settings["cascade"]["low"], settings["cascade"]["high"]
        by_encoder = (self.encoder <= low) | (self.encoder > high)
        later = np.where(by_encoder, ENCODER_STAGE, np.where(self.ran, LLM_STAGE, ""))
        return np.where(self._by_rules(settings["lexical"]["rules"]), RULES_STAGE, later)

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
            best = min([best, *((error_rate_upper_limit(int(errors[n - 1]), int(n)), int(n), name) for n in sizes)])
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
    ran = np.zeros(len(lines), np.bool_)
    for i, (_, fields) in enumerate(lines):
        stages = {stage["name"]: stage for stage in fields["stages"]}
        if ENCODER_STAGE not in stages:
            raise InputError(f"the sample {fields['id']!r} was not checked by every stage. Run it with {ALL_STAGES_FLAGS}.")
        if stages.get(RULES_STAGE, {"decided": False})["decided"]:
            for finding in fields["segments"][0]["findings"]:
                rules[RULE_NAMES.index("copied" if finding["unit"] == "claim" else rule_for_type(finding["type"])), i] = True
        if stages[ENCODER_STAGE]["hallucinated"] is not None and stages[ENCODER_STAGE]["probability"] is not None:
            encoder[i] = stages[ENCODER_STAGE]["probability"]
        if LLM_STAGE in stages:
            hallucinated = stages[LLM_STAGE]["hallucinated"]
            measured, ran[i] = stages[LLM_STAGE]["probability"], True
            p[i], flagged[i], open_[i] = np.nan if measured is None else measured, bool(hallucinated), hallucinated is None
    return TunableCascade(gold, rules, encoder, Predictions(gold, flagged, open_, p), ran, risk)


def stage_shares(
    tuned: TunableCascade, tuner: Tuner, choice: TuningResult, crossed: Sequence[tuple[Flags, TuningResult]],
    predictions: Predictions, held: Predictions | None, named: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Return the share and the error rate of every stage and label, and the share of rows that the encoder leaves undecided.

    `predictions` are those of the choice, `held` those of cross-validation; `named` has the set of each row.
    """
    stage, groups = _deciding_stages(tuned, tuner, choice), tuner.groups
    held_stage = stage
    for mask, other in crossed:
        held_stage = np.where(mask, _deciding_stages(tuned, tuner, other), held_stage)
    shares = []
    for name, flagged in product((RULES_STAGE, ENCODER_STAGE, LLM_STAGE), (False, True)):
        decided = _decided_as(predictions, stage == name, flagged)
        errors, held_errors = estimate_ratio(~predictions.right, decided, groups), Estimate(None)
        if held is not None:
            held_errors = estimate_ratio(~held.right, _decided_as(held, held_stage == name, flagged), groups)
        share = estimate_ratio(decided, np.ones_like(decided), groups)
        shares.append(StageShare(name, "hallucinated" if flagged else "faithful", int(decided.sum()), share, errors, held_errors))
    sent_on = (stage == LLM_STAGE) | (stage == "")
    sets = {"": np.ones_like(sent_on), **{name: np.array(named) == name for name in sorted(set(named) - {""})}}
    by_set = {name: estimate_ratio(sent_on, members, groups) for name, members in sets.items()}
    return {"stages": tuple(s for s in shares if s.rows), "sent_on": by_set}


def _decided_as(predictions: Predictions, by_stage: Flags, flagged: bool) -> Flags:
    flags: Flags = by_stage & (predictions.settled == flagged) & ~predictions.abstained
    return flags


def _deciding_stages(tuned: TunableCascade, tuner: Tuner, choice: TuningResult) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    stage = tuned.stage(choice.whole.settings)
    for mask, chosen in tuner.by_rows(choice):
        stage = np.where(mask, tuned.stage(chosen.settings), stage)
    return stage
