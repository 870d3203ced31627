"""Fit the judgment over evidence features, and the thresholds of aggregation, Factored Verification and highlighted words.

The judgment has one logistic regression for each task and form. The signs of its weights are constrained (support never counts
against a claim, a missing number never for it), so that the fit cannot learn a quirk of one data set.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from knowhalu.encoder.verifier import DEFAULT_THRESHOLD
from knowhalu.errors import InputError
from knowhalu.io.fitted_files import (
    FITTED_FILES,
    HASHED_FILES,
    WEIGHTS_FILE,
    WEIGHTS_HASH_FIELD,
    fitted_folder,
    weights_hash,
)
from knowhalu.io.verifier_file import VERIFIER_FILE, read_external
from knowhalu.methods.common.combine import COMBINATION_RULES, combine_probabilities, fit_theta
from knowhalu.methods.common.judgment_model import OPPOSING, REPORTED, SUPPORTING, FeatureWeights
from knowhalu.text.sentences import words
from knowhalu.training.examples import CharSpan
from knowhalu.types import KnowledgeForm, Label

FORMS = (KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED)
SUPPORTING_FEATURES = frozenset((*SUPPORTING, "covered", "supported"))
OPPOSING_FEATURES = frozenset((*OPPOSING, "absent", "count_absent", "apart", "contradicted", "other_count"))
LEAST_OPPOSITION = {"values_differ": -2.0}
"""The weight that a feature has at least: a sure conflict of values outweighs the support of a verifier that overlooks it.

Few training rows have one, most of them written to look like one, so that the fit alone takes it for half as much.
"""
THRESHOLD_GRID = tuple(float(b) for b in np.round(np.arange(0.05, 0.96, 0.05), 2))


def fit_signed_logistic(
    features: Sequence[dict[str, float]], gold: Sequence[bool], weights: Sequence[float], ridge: float = 0.5
) -> dict[str, Any]:
    """Fit a logistic regression with sign constraints; returns bias, raw weights and the decision threshold.

    Raises InputError where a class is missing.
    """
    if len(set(gold)) < 2:
        raise InputError("a judgment is fitted on supported and unsupported rows, and one kind is missing; check --data")
    names = [n for n in features[0] if n not in REPORTED]
    x = np.array([[f[n] for n in names] for f in features])
    y, w = np.array(gold, float), np.array(weights)
    w = w * np.where(y == 1, 0.5 / (w * y).sum(), 0.5 / (w * (1 - y)).sum()) * len(y)
    mean, scale = x.mean(0), x.std(0) + 1e-6
    z = (x - mean) / scale
    most = {n: LEAST_OPPOSITION.get(n, 0.0) * s for n, s in zip(names, scale, strict=True)}
    bounds = [
        (0, None) if n in SUPPORTING_FEATURES else (None, most[n]) if n in OPPOSING_FEATURES else (None, None) for n in names
    ]

    def loss(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = z @ p[1:] + p[0]
        error = w * (1 / (1 + np.exp(-score)) - y)
        value = (w * np.logaddexp(0, np.where(y == 1, -score, score))).sum() + ridge * (p[1:] ** 2).sum()
        return float(value), np.concatenate([[error.sum()], z.T @ error + 2 * ridge * p[1:]])

    start = np.array([0.0, *(min(0.0, upper) if upper is not None else 0.0 for _, upper in bounds)])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, None), *bounds]).x
    raw = best[1:] / scale
    scores = x @ raw + (bias := float(best[0] - mean @ raw))
    named = {n: round(float(v), 5) for n, v in zip(names, raw, strict=True)}
    return {"bias": round(bias, 5), "cut": round(fit_balanced_threshold(scores, y, w), 5), "weights": named}


def out_of_fold_probabilities(
    features: Sequence[dict[str, float]], gold: Sequence[bool], weights: Sequence[float], groups: Sequence[str], folds: int = 5
) -> NDArray[np.float64]:
    """Return P(supported) of every row by weights fitted on the other folds; rows of one group share a fold."""
    place = np.array([int(hashlib.sha256(g.encode()).hexdigest(), 16) % folds for g in groups])
    probabilities = np.full(len(gold), 0.5)
    for fold in range(folds):
        learn, ask = np.flatnonzero(place != fold).tolist(), np.flatnonzero(place == fold).tolist()
        model = fit_signed_logistic([features[i] for i in learn], [gold[i] for i in learn], [weights[i] for i in learn])
        fitted = FeatureWeights(model["bias"], model["weights"], model["cut"])
        probabilities[ask] = [fitted.probability(features[i]) for i in ask]
    return probabilities


def fit_balanced_threshold(scores: NDArray[np.float64], gold: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the threshold with the best weighted balanced accuracy, smoothed over its neighbours."""
    grid = np.quantile(scores, np.linspace(0.05, 0.95, 91))
    hit = np.array([(weights * gold * (scores >= g)).sum() + (weights * (1 - gold) * (scores < g)).sum() for g in grid])
    smooth = np.convolve(np.pad(hit, 4, mode="edge"), np.ones(9) / 9, "valid")
    return float(grid[int(smooth.argmax())])


def fit_evasion_threshold(answers: Sequence[tuple[float, bool]], most: float = 0.01) -> float:
    """Choose the lowest threshold that flags at most a share `most` of the on-target answers as off target.

    `answers` are probabilities of being off target and gold. A flagged answer counts as hallucinated, so the threshold is strict.
    """
    delivering = np.array([p for p, evades in answers if not evades])
    grid = np.arange(50, 100) / 100
    fitting = [g for g in grid if (delivering >= g).mean() <= most]
    return round(float(fitting[0] if fitting else 1.0), 2)


def average_accuracy(labels: Iterable[tuple[Label, bool]]) -> float:
    """Return the mean of the recalls of supported and unsupported rows; INCONCLUSIVE counts as wrong."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for label, gold in labels:
        hits[gold].append(label is (Label.CORRECT if gold else Label.INCORRECT))
    return sum(sum(h) / len(h) for h in hits.values() if h) / 2


class ScoredText(NamedTuple):
    """P(supported) of every claim of a text, whether the whole text is supported, and its set."""

    claims: tuple[float, ...]
    faithful: bool
    origin: str


def fit_thetas(rows: Sequence[ScoredText]) -> dict[str, Any]:
    """Return the content of `factored.json`: thetas, typical support, usual number of claims, and average accuracy.

    The typical support is the median over the claims of faithful texts, the number of claims the mean over all texts.
    """
    typical = round(median(p for r in rows if r.faithful for p in r.claims), 4)
    reference = round(fmean(len(r.claims) for r in rows), 2)
    values = [(combine_probabilities(r.claims, typical, reference), r.faithful) for r in rows]
    thetas = {rule: round(fit_theta((v[rule], f) for v, f in values), 4) for rule in COMBINATION_RULES}
    accuracy = {
        rule: round(average_accuracy((Label.INCORRECT if v[rule] < theta else Label.CORRECT, f) for v, f in values), 4)
        for rule, theta in thetas.items()
    }
    return {"thetas": thetas, "typical": typical, "reference": reference, "rows": len(rows), "average_accuracy": accuracy}


class ClaimWords(NamedTuple):
    """The words of a wrong claim: which are wrong, and the probability that each is unsupported."""

    wrong: Sequence[bool]
    unsupported: Sequence[float]


def wrong_word_flags(claim: str, spans: Sequence[CharSpan]) -> list[bool]:
    """Return for every word of a claim whether a wrong span overlaps it."""
    return [any(a < w.end and w.start < b for a, b in spans) for w in words(claim)]


def word_f1(claims: Sequence[ClaimWords], threshold: float) -> float:
    """Return F1 over the words of wrong claims, with words highlighted from `threshold` on."""
    hits = predicted = actual = 0
    for wrong, unsupported in claims:
        marked = [p >= threshold for p in unsupported]
        hits += sum(a and b for a, b in zip(wrong, marked, strict=True))
        predicted, actual = predicted + sum(marked), actual + sum(wrong)
    return 2 * hits / max(1, predicted + actual)


def fit_span_threshold(parts: Mapping[str, Sequence[ClaimWords]]) -> dict[str, Any]:
    """Return the content of `marks.json`: the threshold with the best mean F1 over the recipes, and the F1 of each."""
    best = max(
        THRESHOLD_GRID, key=lambda b: (np.mean([word_f1(claims, b) for claims in parts.values()]), -abs(b - DEFAULT_THRESHOLD))
    )
    measured = {
        name: {"claims": len(claims)} | {f"f1_at_{b}": round(word_f1(claims, b), 4) for b in (DEFAULT_THRESHOLD, best)}
        for name, claims in parts.items()
    }
    return {"border": best, "fitted_on": measured}


@contextmanager
def replace_fitted_file(folder: Path, name: str, start: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a copy of a verifier's folder whose file `name` holds `start`; on success, that file replaces the one in the folder.

    With an external verifier, the copy is a `verifier.toml` that names its model, and the file replaces the one in the folder of
    its fitted files. The file then records the weights that it was fitted to. Raises InputError where the folder has no weights.
    """
    external, home = read_external(folder), fitted_folder(folder)
    if external is None and not (folder / WEIGHTS_FILE).is_file():
        raise InputError(f"{folder}: there is no {WEIGHTS_FILE}; give the folder of a verifier")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fit-", dir=home) as temporary:
        draft = Path(temporary)
        if external is not None:
            card = external.card.model_copy(update={"model": external.model.resolve(), "fitted": None})
            (draft / VERIFIER_FILE).write_text(card.toml(), encoding="utf-8")
        for part in HASHED_FILES if external is None else FITTED_FILES:
            if part != name and (home / part).exists():
                (draft / part).symlink_to((home / part).resolve())
        (draft / name).write_text(json.dumps(start), encoding="utf-8")
        yield draft
        fit = json.loads((draft / name).read_text(encoding="utf-8"))
        (draft / name).write_text(json.dumps(fit | {WEIGHTS_HASH_FIELD: weights_hash(folder)}, indent=1) + "\n", encoding="utf-8")
        (draft / name).replace(home / name)
