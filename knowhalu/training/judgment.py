"""Fit the judgment over evidence features: one logistic regression for each task and form, and the thresholds of aggregation.

All rows come from held-out sources that overlap with nothing the verifier has seen. The signs of weights are constrained (support
never counts against a claim, a missing number never for it), so that the fit cannot learn a quirk of one data set.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from knowhalu.errors import InputError
from knowhalu.methods.common.judgment_model import MAX_FITTED_SEGMENTS, FeatureWeights
from knowhalu.methods.knowhalu.encoder import RULE_CHECKED_TYPES
from knowhalu.requests import EntailmentPair
from knowhalu.text.overlap import coverage
from knowhalu.text.questions import expected_answer_type
from knowhalu.training.data_files import read_training_rows, text_of
from knowhalu.training.edits import detokenize
from knowhalu.training.examples import NEUTRAL, SUPPORTED
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import ANSWERS_FILE, CLAIMS_FILE, INFERENCE_FILE, MIX_FILE, RECIPES, locate_file
from knowhalu.types import KnowledgeForm, Label, Sample

SUPPORTING_FEATURES = frozenset(
    """
    joint_supported weakest_supported nearest_supported coverage_open coverage_best pairs asked_supported asked_best fresh_covered
    entity_verbatim question_near_answer covered supported
    """.split()
)
OPPOSING_FEATURES = frozenset(
    """
    joint_contradicted sure_contradicted negated nearest_contradicted best_contradicted numbers_missing numbers_elsewhere
    dates_missing counts_missing names_missing negation_differs asked_contradicted absent count_absent
    apart contradicted other_count
    """.split()
)
UNWEIGHTED_FEATURES = frozenset({"on_topic", "coverage"})
"""Features that a verdict reports and that have no weight."""
MAX_CLAIM_WORDS = 30
"""Most words of a claim that is judged in one piece."""
MAX_WRITTEN = 700
"""Most written claims, and most written answers, to sample."""
SET_SAMPLING = {
    "fever_dev_claims": (400, 1.0), "fm2": (150, 1.0), "wice_claim_oracle": (130, 0.3), "scifact": (90, 1.0),
    "begin": (100, 0.3), "nli_mnli10k_taxinli": (150, 0.6), "nli_cad_snli": (150, 0.6),
}  # fmt: skip
"""Most rows of each set and its weight in the fit, which is lower where copied wording reveals the label."""


@dataclass(frozen=True)
class FitRow:
    """A sample with its gold label, the set it comes from and that set's weight."""

    sample: Sample
    supported: bool
    origin: str
    weight: float


def _sample(source: str, claim: str, question: str | None = None) -> Sample:
    long = len(source.split()) > 120
    where = {"documents": [source]} if long and question is None else {"knowledge": [source]}
    return Sample.model_validate({"id": "-", "response": claim, "question": question, **where})


def claim_rows(held: HeldOutRows, seed: int = 0) -> Iterator[FitRow]:
    """Yield held-out claims: labelled ones, summaries, own sentences of documents and the written claims."""
    labelled = list(_labelled(held))
    yield from labelled
    yield from _swap_evidence(labelled)
    for name in ("FIB summaries, edited", "FIB summaries, by models", "FIB documents, own sentences", "Wikipedia, own sentences"):
        yield from _recipe_rows(name, held, seed)
    yield from _sample_rows(_written_claims(held, CLAIMS_FILE, "written claims", 1.0), MAX_WRITTEN, seed)
    yield from _sample_rows(_written_claims(held, INFERENCE_FILE, "written inference", 0.6), MAX_WRITTEN // 2, seed)
    yield from _sample_rows(_on_passages("written claims on real passages", held), MAX_WRITTEN, seed)


def _written_claims(held: HeldOutRows, file: str, origin: str, weight: float) -> Iterator[FitRow]:
    for row in held.among(read_training_rows(locate_file(file, held.data))):
        for claim in row["claims"]:
            if len(claim["text"].split()) <= MAX_CLAIM_WORDS:
                yield FitRow(_sample(row["document"], claim["text"]), claim["label"] == "supported", origin, weight)


def _on_passages(name: str, held: HeldOutRows) -> Iterator[FitRow]:
    """Yield the claims, or answers with their questions, written on held-out passages."""
    for row in held.of(next(r for r in RECIPES if r.name == name)):
        for item in row.get("claims") or row["answers"]:
            if len(item["text"].split()) <= MAX_CLAIM_WORDS:
                yield FitRow(_sample(row["document"], item["text"], row.get("question")), item["label"] == "supported", name, 1.0)


def _sample_rows(rows: Iterable[FitRow], most: int, seed: int) -> list[FitRow]:
    found = list(rows)
    return random.Random(seed).sample(found, min(most, len(found)))


def _labelled(held: HeldOutRows) -> Iterator[FitRow]:
    """Yield labelled claims by `SET_SAMPLING`."""
    taken: Counter[str] = Counter()
    for row in held.among(r for r in read_training_rows(held.data / MIX_FILE) if r["set"] in SET_SAMPLING):
        name = row["set"]
        if taken[name] < SET_SAMPLING[name][0] and len(row["claim"].split()) <= MAX_CLAIM_WORDS:
            taken[name] += 1
            yield FitRow(_sample(row["source"], row["claim"]), row["label"] == "supported", name, SET_SAMPLING[name][1])


def _swap_evidence(rows: list[FitRow]) -> Iterator[FitRow]:
    """Yield encyclopedic claims with the evidence of another claim that shares words, as a search without a hit returns."""
    known = [r for r in rows if r.origin in ("fever_dev_claims", "fm2") and r.sample.knowledge]
    for i, row in enumerate(known[::2]):
        others = [known[(2 * i + d) % len(known)].sample.knowledge[0] for d in range(1, 60)]
        best = max(others, key=lambda text: coverage(row.sample.response, text))
        if coverage(row.sample.response, best) <= 0.6:
            yield FitRow(_sample(best, row.sample.response), False, "other evidence", 0.6)


def _recipe_rows(name: str, held: HeldOutRows, seed: int, weight: float = 1.0, limit: int = 250) -> Iterator[FitRow]:
    """Yield rows of held-out documents as the training makes them, with the whole document where it is unchanged."""
    recipe, rng = next(r for r in RECIPES if r.name == name), random.Random(f"{seed}:{name}")
    rows = list(held.of(recipe))
    rng.shuffle(rows)
    for row, other in islice(pairwise(rows), limit):
        example = recipe.make(row, other, rng)
        whole = detokenize(text_of(row))
        source = example.premise if example.target == NEUTRAL or example.premise not in whole else whole
        if len(example.claim.split()) <= MAX_CLAIM_WORDS:
            yield FitRow(
                _sample(source, example.claim, example.question or None), example.target == SUPPORTED, recipe.name, weight
            )


def answer_rows(held: HeldOutRows, validation: Path | None = None, seed: int = 0) -> Iterator[FitRow]:
    """Yield held-out answers, written and made, and the validation split (never the test split) of the paper's answers."""
    yield from (r for r in _recipe_rows("Wikipedia, questions on details", held, seed, 0.3) if r.sample.question)
    yield from _sample_rows(_written_answers(held), MAX_WRITTEN, seed)
    yield from _sample_rows(_on_passages("written answers on real passages", held), MAX_WRITTEN, seed)
    if validation is not None:
        for row in islice((r for r in read_training_rows(validation) if r["split"] == "val"), 100):
            for key, supported in (("right_answer", True), ("hallucinated_answer", False)):
                yield FitRow(_sample(row["knowledge"], row[key], row["question"]), supported, "KnowHalu QA, validation", 1.0)


def _written_answers(held: HeldOutRows) -> Iterator[FitRow]:
    for row in held.among(read_training_rows(locate_file(ANSWERS_FILE, held.data))):
        for a in row["answers"]:
            if a["label"] != "refusal":
                sample = _sample(row["knowledge"], a["text"], row["question"])
                yield FitRow(sample, a["label"] == "correct", "written answers", 1.0)


def off_target_pairs(held: HeldOutRows, seed: int = 0) -> Iterator[tuple[EntailmentPair, bool]]:
    """Yield held-out answers as the off-target check reads them, without a source, and whether each is off target."""
    for name in ("Wikipedia, questions answered or evaded", "written answers, delivered or evaded"):
        recipe = next(r for r in RECIPES if r.name == name)
        for row in held.of(recipe):
            for draw in range(6):
                example = recipe.make(row, row, random.Random(f"{seed}:{text_of(row)}:{draw}"))
                if not example.premise and expected_answer_type(example.question) not in RULE_CHECKED_TYPES:
                    yield EntailmentPair("", example.claim, example.question), example.target != SUPPORTED


def fit_signed_logistic(
    features: Sequence[dict[str, float]], gold: Sequence[bool], weights: Sequence[float], ridge: float = 0.5
) -> dict[str, Any]:
    """Fit a logistic regression with sign constraints; returns bias, raw weights and the decision threshold.

    Raises InputError where a class is missing.
    """
    if len(set(gold)) < 2:
        raise InputError("a judgment is fitted on supported and unsupported rows, and one kind is missing; check --data")
    names = [n for n in features[0] if n not in UNWEIGHTED_FEATURES]
    x = np.array([[f[n] for n in names] for f in features])
    y, w = np.array(gold, float), np.array(weights)
    w = w * np.where(y == 1, 0.5 / (w * y).sum(), 0.5 / (w * (1 - y)).sum()) * len(y)
    mean, scale = x.mean(0), x.std(0) + 1e-6
    z = (x - mean) / scale
    bounds = [(0, None) if n in SUPPORTING_FEATURES else (None, 0) if n in OPPOSING_FEATURES else (None, None) for n in names]

    def loss(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = z @ p[1:] + p[0]
        error = w * (1 / (1 + np.exp(-score)) - y)
        value = (w * np.logaddexp(0, np.where(y == 1, -score, score))).sum() + ridge * (p[1:] ** 2).sum()
        return float(value), np.concatenate([[error.sum()], z.T @ error + 2 * ridge * p[1:]])

    best = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B", bounds=[(None, None), *bounds]).x
    raw = best[1:] / scale
    scores = x @ raw + (bias := float(best[0] - mean @ raw))
    named = {n: round(float(v), 5) for n, v in zip(names, raw, strict=True)}
    return {"bias": round(bias, 5), "cut": round(fit_balanced_threshold(scores, y, w), 5), "slack": 0.0, "weights": named}


def out_of_fold_probabilities(
    features: Sequence[dict[str, float]], gold: Sequence[bool], weights: Sequence[float], groups: Sequence[str], folds: int = 5
) -> NDArray[np.float64]:
    """Return P(supported) of every row by weights fitted on the other folds; rows of one group share a fold."""
    place = np.array([int(hashlib.sha256(g.encode()).hexdigest(), 16) % folds for g in groups])
    found = np.full(len(gold), 0.5)
    for fold in range(folds):
        learn, ask = np.flatnonzero(place != fold).tolist(), np.flatnonzero(place == fold).tolist()
        model = fit_signed_logistic([features[i] for i in learn], [gold[i] for i in learn], [weights[i] for i in learn])
        fitted = FeatureWeights(model["bias"], model["weights"], model["cut"])
        found[ask] = [fitted.probability(features[i]) for i in ask]
    return found


def fit_balanced_threshold(scores: NDArray[np.float64], gold: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the threshold with the best weighted balanced accuracy, smoothed over its neighbours."""
    grid = np.quantile(scores, np.linspace(0.05, 0.95, 91))
    hit = np.array([(weights * gold * (scores >= g)).sum() + (weights * (1 - gold) * (scores < g)).sum() for g in grid])
    smooth = np.convolve(np.pad(hit, 4, mode="edge"), np.ones(9) / 9, "valid")
    return float(grid[int(smooth.argmax())])


def summary_rows(validation: Path) -> Iterator[FitRow]:
    """Yield the validation split (never the test split) of the paper's summaries: texts of several segments."""
    for row in (r for r in read_training_rows(validation) if r["split"] == "val"):
        for key, supported in (("right_summary", True), ("hallucinated_summary", False)):
            sample = Sample.model_validate({"id": "-", "response": row[key], "documents": [row["document"]]})
            yield FitRow(sample, supported, "KnowHalu summaries, validation", 1.0)


def fit_slack(texts: Sequence[tuple[Sequence[float], bool]]) -> float:
    """Choose the factor of ln(segments) that relaxes the threshold of segments; `texts` are log-odds of support and gold.

    Chosen by average accuracy, smoothed over its neighbours: the smallest within one standard error of the best, so that a few
    texts do not move all thresholds (Breiman et al., Classification and Regression Trees, 1984, section 3.4.3).
    """
    grid = np.arange(0.0, 3.01, 0.1)
    gold = np.array([g for _, g in texts])
    worst = np.array([[min(s) + g * np.log(min(len(s), MAX_FITTED_SEGMENTS)) for s, _ in texts] for g in grid])
    shares = np.array([((worst >= 0) & gold).sum(1) / gold.sum(), ((worst < 0) & ~gold).sum(1) / (~gold).sum()])
    smooth = np.convolve(np.pad(shares.mean(0), 2, mode="edge"), np.ones(5) / 5, "valid")
    best = int(smooth.argmax())
    error = np.sqrt((shares[:, best] * (1 - shares[:, best]) / [gold.sum(), (~gold).sum()]).sum()) / 2
    return round(float(grid[int((smooth >= smooth[best] - error).argmax())]), 2)


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


FORMS = (KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED)
