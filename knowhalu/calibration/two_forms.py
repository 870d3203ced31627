"""The stored judgments of KnowHalu by both forms of knowledge, joined again with other thresholds, for all rows at once.

The thresholds are chosen as in the paper (appendix E.3): delta1 at a quantile q1 of the base's confidences, delta2 at a quantile
q2 >= q1 of the supplement's, the pair with the best average accuracy; the base is the form that is better alone.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.calibration.tunable import RowIndices, VerdictLines, make_predictions
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.methods.common.combine import Thresholds, soft_max_probability
from knowhalu.types import Judgment, KnowledgeForm, Label, Task

LABEL_RANKS = {Label.CORRECT: 0, Label.INCONCLUSIVE: 1, Label.INCORRECT: 2}
"""Ranks of labels: of several segments, the one with the highest rank decides."""
INCONCLUSIVE_RANK, INCORRECT_RANK = LABEL_RANKS[Label.INCONCLUSIVE], LABEL_RANKS[Label.INCORRECT]
FORMS = (KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED)
QUANTILES: Floats = np.arange(1, 20) / 20
BOTH_FORMS_FLAG = "--set knowhalu.second_opinion=always"


class ThresholdGrid(NamedTuple):
    """Average accuracy at every pair of quantiles, NaN where q2 < q1; `never` is that of replacing no base judgment."""

    base: KnowledgeForm
    delta1: Floats
    delta2: Floats
    average: Floats
    never: float

    @property
    def best(self) -> Thresholds:
        """Return the first of the best pairs, or thresholds that replace no judgment where no pair is better than that."""
        i, j = np.unravel_index(int(np.nanargmax(self.average)), self.average.shape)
        if not self.average[i, j] > self.never:
            return Thresholds(0.0, 1.0)
        return Thresholds(float(self.delta1[i]), float(self.delta2[j]))


class TunableForms(NamedTuple):
    """Judgments of segments by both forms, in arrays of shape (2, segments), the unstructured form first.

    `row` has the row of each segment, `strict` marks segments where inconclusive counts as incorrect (summaries). Rows without
    segments (off target, or a refusal) have their rank and probability in `rank_alone` and `p_alone`.
    """

    gold: Flags
    row: RowIndices
    strict: Flags
    rank: NDArray[np.int8]
    sure: Floats
    supported: Floats
    rank_alone: NDArray[np.int8]
    p_alone: Floats

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose the base form and both thresholds."""
        chosen = self.some(rows)
        grid = chosen.grid(chosen.better_form())
        delta1, delta2 = grid.best
        return {"knowhalu": {"base_form": str(grid.base), "delta1": delta1, "delta2": delta2}}

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the predictions of KnowHalu for all rows with these thresholds (Algorithm 1)."""
        options = settings["knowhalu"]
        base = FORMS.index(KnowledgeForm(options["base_form"]))
        return self.concluded(base, Thresholds(options["delta1"], options["delta2"]))

    def some(self, rows: RowIndices) -> "TunableForms":
        """Return some of the rows."""
        new = np.full(len(self.gold), -1, dtype=np.intp)
        new[rows] = np.arange(len(rows))
        segments = np.flatnonzero(new[self.row] >= 0)
        segments = segments[np.argsort(new[self.row[segments]], kind="stable")]
        parts = (self.rank[:, segments], self.sure[:, segments], self.supported[:, segments])
        return TunableForms(
            self.gold[rows], new[self.row[segments]], self.strict[segments], *parts, self.rank_alone[rows], self.p_alone[rows]
        )

    def better_form(self) -> int:
        """Return the form that is more accurate alone, the unstructured one of equals."""
        alone = [self._average(self.rank[form][None])[0] for form in range(2)]
        return int(np.argmax(alone))

    def concluded(self, base: int, thresholds: Thresholds) -> Predictions:
        """Join the judgments of every segment; the worst segment of every row decides."""
        taken = self._is_replaceable(base, thresholds.delta1) & self._is_preferred(base, thresholds)
        rank = self._settled(np.where(taken, self.rank[1 - base], self.rank[base]))
        p_segment = 1 - np.where(taken, self.supported[1 - base], self.supported[base])
        worst, p = self.rank_alone.copy(), self.p_alone.copy()
        if len(self.row):
            starts = self._starts
            worst[self.row[starts]] = np.maximum.reduceat(rank, starts)
            deciding = np.maximum.reduceat(np.where(rank == worst[self.row], p_segment, -1.0), starts)
            every = np.split(p_segment, starts[1:])
            p[self.row[starts]] = [
                soft_max_probability(float(most), part.tolist()) for most, part in zip(deciding, every, strict=True)
            ]
        return make_predictions(self.gold, worst == INCORRECT_RANK, worst == INCONCLUSIVE_RANK, p)

    def grid(self, base: int) -> ThresholdGrid:
        """Compute the average accuracy at every pair of quantiles."""
        if not len(self.row):
            raise InputError("no row has judgments of two forms, so no threshold can be chosen. Give rows that are on target.")
        delta1, delta2 = (np.quantile(self.sure[form], QUANTILES) for form in (base, 1 - base))
        average = np.full((len(QUANTILES), len(QUANTILES)), np.nan)
        for i, first in enumerate(delta1):
            replaceable, is_open = self._is_replaceable(base, first), self.rank[base] == INCONCLUSIVE_RANK
            taken = replaceable & (is_open | (self.sure[1 - base] > delta2[i:, None]))
            average[i, i:] = self._average(np.where(taken, self.rank[1 - base], self.rank[base]))
        never = self._average(np.where(self.rank[base] == INCONCLUSIVE_RANK, self.rank[1 - base], self.rank[base])[None])[0]
        return ThresholdGrid(FORMS[base], delta1, delta2, average, float(never))

    @property
    def _starts(self) -> RowIndices:
        return np.flatnonzero(np.r_[True, self.row[1:] != self.row[:-1]])

    def _is_replaceable(self, base: int, delta1: float) -> Flags:
        flags: Flags = (self.rank[base] == INCONCLUSIVE_RANK) | (self.sure[base] < delta1)
        return flags

    def _is_preferred(self, base: int, thresholds: Thresholds) -> Flags:
        flags: Flags = (self.rank[base] == INCONCLUSIVE_RANK) | (self.sure[1 - base] > thresholds.delta2)
        return flags

    def _settled(self, rank: NDArray[np.int8]) -> NDArray[np.int8]:
        return np.where(self.strict & (rank == INCONCLUSIVE_RANK), INCORRECT_RANK, rank).astype(np.int8)

    def _average(self, ranks: NDArray[np.int8]) -> Floats:
        """Return the average accuracy of each of several rankings of all segments, an array of shape (rankings, segments)."""
        worst = np.repeat(self.rank_alone[None], len(ranks), axis=0)
        if len(self.row):
            worst[:, self.row[self._starts]] = np.maximum.reduceat(self._settled(ranks), self._starts, axis=1)
        found, passed = (worst == INCORRECT_RANK)[:, self.gold], (worst == LABEL_RANKS[Label.CORRECT])[:, ~self.gold]
        if not found.shape[1] or not passed.shape[1]:
            raise InputError("thresholds need rows of both labels. Give more rows.")
        return np.asarray((found.mean(axis=1) + passed.mean(axis=1)) / 2)


def read_tunable_forms(lines: VerdictLines, gold: Flags) -> TunableForms:
    """Return the judgments of all verdicts; raises InputError where a segment was judged by one form only."""
    rank_alone = np.zeros(len(lines), dtype=np.int8)
    p_alone = np.zeros(len(lines))
    row, strict, judged = [], [], []
    for i, (_, fields) in enumerate(lines):
        if not fields["segments"]:
            rank_alone[i], p_alone[i] = LABEL_RANKS[Label(fields["label"])], fields["probability"]
        for segment in fields["segments"]:
            both = {j["form"]: j for j in (segment["base"], segment["supplement"]) if j is not None}
            if set(both) != set(FORMS):
                raise InputError(
                    f"the sample {fields['id']!r} was judged by one form of knowledge only. Run it with {BOTH_FORMS_FLAG}."
                )
            row.append(i)
            strict.append(fields["task"] == Task.SUMMARY)
            judged.append([(LABEL_RANKS[Label(both[f]["label"])], both[f]["confidence"], both[f]["p_supported"]) for f in FORMS])
    rank, sure, supported = np.array(judged, dtype=float).reshape(-1, 2, 3).transpose(2, 1, 0)
    rows, is_strict = np.array(row, dtype=np.intp), np.array(strict, dtype=np.bool_)
    return TunableForms(gold, rows, is_strict, rank.astype(np.int8), sure, supported, rank_alone, p_alone)


def make_tunable_forms(judged: Iterable[tuple[Judgment, Judgment, bool]]) -> TunableForms:
    """Make rows of one segment each from judgments by both forms and whether the text is supported."""
    rows = list(judged)
    values = [[(LABEL_RANKS[j.label], j.confidence, j.p_supported) for j in both] for *both, _ in rows]
    rank, sure, supported = np.array(values, dtype=float).reshape(-1, 2, 3).transpose(2, 1, 0)
    gold, none = np.array([not supported for *_, supported in rows], dtype=np.bool_), np.zeros(len(rows))
    return TunableForms(
        gold, np.arange(len(rows)), none.astype(np.bool_), rank.astype(np.int8), sure, supported, none.astype(np.int8), none
    )
