"""The fit of the judgment: it recovers known weights, keeps signs, and finds thresholds."""

import random

import numpy as np
import pytest

from knowhalu.methods.common.judgment_model import FeatureWeights
from knowhalu.training.fitting import (
    LEAST_OPPOSITION,
    OPPOSING_FEATURES,
    SUPPORTING_FEATURES,
    average_accuracy,
    fit_balanced_threshold,
    fit_evasion_threshold,
    fit_signed_logistic,
    out_of_fold_probabilities,
)
from knowhalu.types import Label


def rows(count: int, seed: int = 0):
    """Make rows in which support speaks for, missing numbers against, and covered pairs (wrongly) against the label."""
    rng = random.Random(seed)
    features, gold = [], []
    for _ in range(count):
        truth = rng.random() < 0.4
        features.append({
            "window_supported": rng.gauss(1.5 if truth else -1.5, 1.5), "values_missing": float(not truth and rng.random() < 0.5),
            "values_equal": rng.gauss(0.4 if truth else 0.6, 0.2), "question_covered": rng.random(),
        })  # fmt: skip
        gold.append(truth)
    return features, gold


def test_the_fit_separates_the_classes_and_keeps_the_signs():
    features, gold = rows(800)
    model = fit_signed_logistic(features, gold, [1.0] * len(gold))
    weights = FeatureWeights(model["bias"], model["weights"], model["cut"])
    new, truth = rows(800, seed=1)
    right = np.mean([(weights.probability(f) >= 0.5) == t for f, t in zip(new, truth, strict=True)])
    assert right > 0.85
    assert model["weights"]["window_supported"] > 0 > model["weights"]["values_missing"]
    assert model["weights"]["values_equal"] == 0  # never against a claim, though these rows say so
    assert not SUPPORTING_FEATURES & OPPOSING_FEATURES


def test_reported_features_have_no_weight():
    features, gold = rows(100)
    told = [{**f, "on_topic": float(g)} for f, g in zip(features, gold, strict=True)]
    model = fit_signed_logistic(told, gold, [1.0] * 100)
    assert model["weights"].keys() == features[0].keys()


def test_out_of_fold_probabilities_do_not_memorise():
    rng = random.Random(0)
    noise = [{f"f{i}": rng.gauss(0, 1) for i in range(40)} for _ in range(120)]
    gold = [rng.random() < 0.5 for _ in noise]
    groups = [str(i // 2) for i in range(120)]
    said = out_of_fold_probabilities(noise, gold, [1.0] * 120, groups)
    assert 0.3 < np.mean((said >= 0.5) == np.array(gold)) < 0.7, "noise cannot be learned"
    features, truth = rows(400)
    assert (
        np.mean((out_of_fold_probabilities(features, truth, [1.0] * 400, [str(i) for i in range(400)]) >= 0.5) == np.array(truth))
        > 0.8
    )


def test_a_slope_scales_confidence_and_keeps_the_threshold():
    plain = FeatureWeights(0.5, {"window_supported": 1.0}, 0.2)
    flat = FeatureWeights(0.5, {"window_supported": 1.0}, 0.2, slope=0.5)
    for value in (-3.0, -0.3, 2.0):
        one, two = plain.probability({"window_supported": value}), flat.probability({"window_supported": value})
        assert (one >= 0.5) == (two >= 0.5) and abs(two - 0.5) < abs(one - 0.5) or value == -0.3
    assert flat.probability({"window_supported": -0.3}) == pytest.approx(0.5)


def test_the_evasion_threshold_flags_few_on_target_answers():
    answers = [(i / 100, False) for i in range(100)] + [(0.99, True)] * 10
    assert fit_evasion_threshold(answers, most=0.05) == 0.95
    assert fit_evasion_threshold([(0.1, False), (0.99, True)]) == 0.5
    assert fit_evasion_threshold([(1.0, False)] * 3) == 1.0


def test_the_balanced_threshold_separates_two_classes():
    scores = np.array([*np.linspace(-3, -1, 50), *np.linspace(1, 3, 50)])
    gold = np.array([0.0] * 50 + [1.0] * 50)
    assert -1.2 <= fit_balanced_threshold(scores, gold, np.ones(100)) <= 1.2


def test_inconclusive_counts_as_wrong_for_both_classes():
    labels = [(Label.INCONCLUSIVE, True), (Label.CORRECT, True), (Label.INCORRECT, False), (Label.INCONCLUSIVE, False)]
    assert average_accuracy(labels) == pytest.approx(0.5)


def test_a_conflict_of_values_weighs_at_least_as_much_as_a_sure_reading():
    gold = [i % 2 == 0 for i in range(200)]
    told = [{"window_supported": 2.0 if g else -2.0, "values_differ": float(i % 50 == 0)} for i, g in enumerate(gold)]
    weights = fit_signed_logistic(told, gold, [1.0] * 200)["weights"]
    assert weights["values_differ"] <= LEAST_OPPOSITION["values_differ"] + 1e-4
