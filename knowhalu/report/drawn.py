"""What is drawn of a run, as numbers: curves for each method, and how long its checks took."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from knowhalu.evaluation.curves import Curve, Reliability, histogram, log_edges, reliability, risk_coverage, roc, thinned
from knowhalu.evaluation.figures import Floats
from knowhalu.report.outcomes import Outcomes
from knowhalu.report.rows import Texts


class Times(NamedTuple):
    """Seconds from the start of a check to its verdict: the share of rows in each bin of common limits, and two quantiles."""

    edges: Floats
    share: Floats
    median: float
    slow: float


class Drawn(NamedTuple):
    """Curves by method; a method of which one cannot be given is left out of it."""

    roc: dict[str, Curve]
    risk: dict[str, Curve]
    reliability: dict[str, Reliability]
    seconds: dict[str, Times]


def drawn_of(outcomes: Mapping[str, Outcomes], main: Mapping[str, Outcomes], texts: Texts | None) -> Drawn:
    """Compute what is drawn; without gold labels, only times.

    Probabilities and times are those of the `main` methods: trivial rules only put texts in order, and take no time.
    """
    rocs: dict[str, Curve] = {}
    risks: dict[str, Curve] = {}
    bins: dict[str, Reliability] = {}
    for name, found in outcomes.items():
        if texts is None:
            break
        entries, said = found.against(texts.gold)
        if not len(entries):
            continue
        curve = roc(said.gold, said.probability)
        risk = risk_coverage(said.right, said.abstained, found.sureness[entries])
        rocs |= {name: thinned(curve)} if curve is not None else {}
        risks |= {name: thinned(risk)} if risk is not None else {}
        bins |= {name: reliability(said.gold, said.probability)} if name in main else {}
    return Drawn(rocs, risks, bins, _times(main))


def _times(outcomes: Mapping[str, Outcomes]) -> dict[str, Times]:
    timed = {name: found.seconds[found.seconds > 0] for name, found in outcomes.items()}
    known = {name: seconds for name, seconds in timed.items() if len(seconds)}
    if not known:
        return {}
    edges = log_edges(np.concatenate(list(known.values())))
    return {
        name: Times(edges, histogram(seconds, edges), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))
        for name, seconds in known.items()
    }
