"""What the looks of an example tell of its label: its length, its words in common with the source, its negations."""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.metrics import roc_auc_score

from knowhalu.reasoners.features import coverage, facts
from knowhalu.training.examples import SUPPORTED, Example

CUES: dict[str, Callable[[Example], float]] = {
    "length": lambda e: len(e.claim.split()),
    "overlap": lambda e: coverage(e.claim, e.premise),
    "negation": lambda e: facts(e.claim).negations,
    "length of the source": lambda e: len(e.premise.split()),
}


def told(examples: Sequence[Example], weights: Sequence[float] | None = None) -> dict[str, float]:
    """Return for every cue its ROC-AUC of supported against the rest: .5 tells nothing, less than .5 speaks against.

    NaN where only one label is there.
    """
    supported = np.array([e.target == SUPPORTED for e in examples])
    if not 0 < supported.sum() < len(supported):
        return dict.fromkeys(CUES, float("nan"))
    return {
        name: float(roc_auc_score(supported, [cue(e) for e in examples], sample_weight=weights)) for name, cue in CUES.items()
    }
