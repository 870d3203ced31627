"""The table of data sets."""

from collections.abc import Mapping
from difflib import get_close_matches

from knowhalu.datasets import catalog_answers, catalog_claims, catalog_own, catalog_summaries
from knowhalu.datasets.card import DatasetCard
from knowhalu.errors import SettingsError

DATASETS: Mapping[str, DatasetCard] = {
    **catalog_answers.CARDS,
    **catalog_summaries.CARDS,
    **catalog_claims.CARDS,
    **catalog_own.CARDS,
}


def dataset_card(name: str) -> DatasetCard:
    """Return the card of a data set; raises SettingsError with the nearest known name."""
    if name not in DATASETS:
        near = get_close_matches(name, DATASETS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"unknown data set {name!r}.{hint} Known: {', '.join(DATASETS)}")
    return DATASETS[name]
