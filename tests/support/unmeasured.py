"""Verdicts as a model gives them whose server has no log-probabilities."""

from knowhalu.results import Verdict

PROBABILITIES = {"probability", "confidence", "p_supported", "supported", "contradicted"}


def without_probabilities(verdict):
    """Return a verdict in which every probability is null."""
    return Verdict.model_validate(_emptied(verdict.model_dump(mode="json")))


def _emptied(value):
    if isinstance(value, dict):
        emptied = {name: None if name in PROBABILITIES else _emptied(item) for name, item in value.items()}
        return {**emptied, "confidence_source": "none"} if "confidence_source" in emptied else emptied
    return [_emptied(item) for item in value] if isinstance(value, list) else value
