"""The grid of a calibration: what every pair of confidence quantiles got on the validation rows."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.figures import Floats


class Grid(NamedTuple):
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


def read_grid(path: Path) -> Grid:
    """Read the grid beside a profile: {"q1": [...], "q2": [...], "average": [[...]]}; raises InputError for anything else."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        q1, q2 = (np.array(fields[name], dtype=float) for name in ("q1", "q2"))
        average = np.array([[np.nan if v is None else float(v) for v in row] for row in fields["average"]], dtype=float)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the grid of a calibration ({type(error).__name__}: {error}). Calibrate again.") from error
    rising = all(q.ndim == 1 and len(q) > 1 and (np.diff(q) > 0).all() for q in (q1, q2))
    if not rising or average.shape != (len(q1), len(q2)):
        what = f"average is {' x '.join(map(str, average.shape))}, q1 has {q1.size} and q2 {q2.size} rising values"
        raise InputError(f"{path}: not the grid of a calibration ({what}). Calibrate again.")
    return Grid(q1, q2, average)
