"""Fit the scaling that calibrates the P(hallucinated) of a method."""

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Flags, Floats
from knowhalu.methods.common.calibrated import ProbabilityScaling, ScalingKind, log_odds

MAX_NEWTON_STEPS, NEWTON_TOLERANCE = 100, 1e-10
DIGITS = 6


def fit_scaling(kind: ScalingKind, probability: Floats, gold: Flags) -> ProbabilityScaling:
    """Fit a scaling of one kind to probabilities; `gold` is true for hallucinated.

    Raises InputError where a label is missing, or where higher probabilities do not go with more hallucinations.
    """
    if kind == "none":
        return ProbabilityScaling()
    if gold.all() or not gold.any():
        raise InputError(f"{kind} scaling needs rows of both labels. Give more rows, or --scaling none.")
    if kind == "isotonic":
        x, y = fit_isotonic(probability, gold.astype(float))
        return ProbabilityScaling(kind=kind, x=tuple(x.tolist()), y=tuple(y.round(DIGITS).tolist()))
    slope, shift = fit_logistic(log_odds(probability), gold, shifts=kind == "platt")
    if round(slope, DIGITS) <= 0:
        raise InputError("P(hallucinated) is no higher where rows are hallucinated, so no scaling helps. Give --scaling none.")
    return ProbabilityScaling(kind=kind, slope=round(slope, DIGITS), shift=round(shift, DIGITS))


def fit_logistic(z: Floats, gold: Flags, *, shifts: bool) -> tuple[float, float]:
    """Return slope and shift of the maximum-likelihood sigmoid(slope x z + shift), by Newton's method.

    The targets are slightly inside 0 and 1, so that separable classes have a solution (Platt 1999, section 2.2).
    """
    positives, negatives = gold.sum(), (~gold).sum()
    target = np.where(gold, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    x = np.stack([z, np.ones_like(z)], axis=1)[:, : 1 + shifts]
    w = np.zeros(1 + shifts)
    for _ in range(MAX_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-(x @ w)))
        gradient, bend = x.T @ (p - target), (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.lstsq(bend + NEWTON_TOLERANCE * np.eye(len(w)), gradient, rcond=None)[0]
        w = w - step
        if np.abs(step).max() < NEWTON_TOLERANCE:
            break
    return float(w[0]), float(w[1]) if shifts else 0.0


def fit_isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the constant pieces of the isotonic regression (pool adjacent violators)."""
    from scipy.optimize import isotonic_regression

    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    fit = isotonic_regression(np.bincount(inverse, weights=y) / counts, weights=counts)
    ends = np.unique(np.r_[fit.blocks[:-1], fit.blocks[1:] - 1])
    return values[ends], fit.x[ends]
