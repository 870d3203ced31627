"""The data of the charts: curves and times of each run, and the grids of a calibration."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.curves import (
    Curve,
    ReliabilityBins,
    histogram,
    log_bin_edges,
    make_risk_coverage_curve,
    make_roc_curve,
    reliability_bins,
    thin_curve,
)
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Floats
from knowhalu.evaluation.runs import table_predictions
from knowhalu.io.outcomes import OutcomeTable


class SecondsHistogram(NamedTuple):
    """Seconds from the start of a check to its verdict: the share of rows in each bin, and two quantiles."""

    edges: Floats
    share: Floats
    median: float
    slow: float


class ChartData(NamedTuple):
    """Curves by method; a method without the data for a curve is left out."""

    roc: dict[str, Curve]
    risk: dict[str, Curve]
    reliability: dict[str, ReliabilityBins]
    seconds: dict[str, SecondsHistogram]


def make_chart_data(
    outcomes: Mapping[str, OutcomeTable], main: Mapping[str, OutcomeTable], texts: LabelledRows | None
) -> ChartData:
    """Compute the data of all charts, of rows with a probability; without gold labels, only times.

    Reliability and times are those of the `main` methods: trivial rules only rank texts, and take no time.
    """
    if texts is None:
        return ChartData({}, {}, {}, _times(main))
    rocs: dict[str, Curve] = {}
    risks: dict[str, Curve] = {}
    bins: dict[str, ReliabilityBins] = {}
    for name, table in outcomes.items():
        entries, predictions = table_predictions(table, texts)
        entries, predictions = entries[predictions.measured], predictions.rows(predictions.measured)
        if not len(entries):
            continue
        if (roc := make_roc_curve(predictions.gold, predictions.probability)) is not None:
            rocs[name] = thin_curve(roc)
        if (risk := make_risk_coverage_curve(predictions.right, predictions.abstained, table.confidence[entries])) is not None:
            risks[name] = thin_curve(risk)
        if name in main:
            bins[name] = reliability_bins(predictions.gold, predictions.probability)
    return ChartData(rocs, risks, bins, _times(main))


def _times(outcomes: Mapping[str, OutcomeTable]) -> dict[str, SecondsHistogram]:
    timed = {name: table.seconds[table.seconds > 0] for name, table in outcomes.items()}
    known = {name: seconds for name, seconds in timed.items() if len(seconds)}
    if not known:
        return {}
    edges = log_bin_edges(np.concatenate(list(known.values())))
    return {
        name: SecondsHistogram(edges, histogram(seconds, edges), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))
        for name, seconds in known.items()
    }


ALL_ROWS = "all rows"


class AccuracyGrid(NamedTuple):
    """`average[i, j]` is the average accuracy with delta1 at quantile `q1[i]` and delta2 at `q2[j]`; NaN where not tried."""

    q1: Floats
    q2: Floats
    average: Floats

    @property
    def best(self) -> tuple[int, int] | None:
        """Return the place of the best pair, the first of equals; None where nothing was tried."""
        if np.isnan(self.average).all():
            return None
        i, j = np.unravel_index(int(np.nanargmax(self.average)), self.average.shape)
        return int(i), int(j)

    @property
    def equals(self) -> int:
        """Return the number of pairs that are as good as the best."""
        return int((self.average == np.nanmax(self.average)).sum()) if self.best is not None else 0


def read_grids(path: Path) -> dict[str, AccuracyGrid]:
    """Read the grids in the JSON file of a profile, of all rows and of single sets.

    A grid is {"q1": [...], "q2": [...], "average": [[...]]}; the file has one as "grid" and more as "grids", by set, or is one.
    Raises InputError for anything else.
    """
    file = path.with_suffix(".json") if path.suffix == ".toml" else path
    try:
        fields: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        whole = fields.get("grid") or (fields if "q1" in fields else None)
        grids = {**({ALL_ROWS: whole} if whole is not None else {}), **fields.get("grids", {})}
        read = {str(name): _read(grid) for name, grid in grids.items()}
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}). Calibrate again, or leave --profile out.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"not the figures of a calibration ({type(error).__name__}: {error})"
        raise InputError(f"{file}: {problem}. Calibrate again, or leave --profile out.") from error
    if not read:
        raise InputError(f"{file}: holds no grid of thresholds, so there is none to draw. Leave --profile out.")
    return read


def _read(fields: Mapping[str, Any]) -> AccuracyGrid:
    q1, q2 = (np.array(fields[name], dtype=float) for name in ("q1", "q2"))
    average = np.array([[np.nan if v is None else float(v) for v in row] for row in fields["average"]], dtype=float)
    rising = all(q.ndim == 1 and len(q) > 1 and (np.diff(q) > 0).all() for q in (q1, q2))
    if not rising or average.shape != (len(q1), len(q2)):
        shape = " x ".join(map(str, average.shape))
        raise ValueError(f"average is {shape}, q1 has {q1.size} and q2 {q2.size} values, which must rise")
    return AccuracyGrid(q1, q2, average)
