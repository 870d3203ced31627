"""Probabilities that may not have been measured: None, where a language model's server gives no log-probabilities."""

from collections.abc import Iterable

NOT_MEASURED = "not measured"


def describe_probability(probability: float | None, name: str = "P(hallucinated)", digits: int = 2, sign: str = " ") -> str:
    """Return a probability with its name, as in "P(hallucinated) 0.50" or "P(hallucinated) not measured"."""
    return f"{name} {NOT_MEASURED}" if probability is None else f"{name}{sign}{probability:.{digits}f}"


def format_probability(probability: float | None, digits: int = 2) -> str:
    """Return a probability as a number, or that it was not measured."""
    return NOT_MEASURED if probability is None else f"{probability:.{digits}f}"


def complement(probability: float | None) -> float | None:
    """Return 1 - p; None where p was not measured."""
    return None if probability is None else 1 - probability


def all_measured(probabilities: Iterable[float | None]) -> list[float] | None:
    """Return the probabilities; None where one was not measured."""
    measured: list[float] = []
    for p in probabilities:
        if p is None:
            return None
        measured.append(p)
    return measured


def require_measured(probability: float | None) -> float:
    """Return a probability that a caller has measured; raises ValueError where it is None."""
    if probability is None:
        raise ValueError("a probability is needed that was not measured")
    return probability
