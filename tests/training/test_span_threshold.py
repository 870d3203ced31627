"""The threshold of highlighted words: word F1, the best mean over recipes, and the claims it is fitted on."""

import pytest

from knowhalu.training.examples import CONTRADICTED, SUPPORTED, TrainingExample
from knowhalu.training.fit_rows import draw_wrong_claims
from knowhalu.training.fitting import THRESHOLD_GRID, ClaimWords, fit_span_threshold, word_f1, wrong_word_flags

CLAIM = "It was built in 1887, in Rome."
READ = ClaimWords((False, True, True, False), (0.1, 0.3, 0.8, 0.6))


def test_a_word_is_wrong_where_a_wrong_span_overlaps_it():
    at = CLAIM.index("1887")
    wrong = wrong_word_flags(CLAIM, ((at, at + 4), (24, 26)))
    assert [w for w, bad in zip(CLAIM.split(), wrong, strict=True) if bad] == ["1887,", "Rome."]


@pytest.mark.parametrize(("border", "f1"), [(0.05, 4 / 6), (0.2, 4 / 5), (0.5, 2 / 4), (0.7, 2 / 3), (0.9, 0.0)])
def test_f1_over_the_words_of_wrong_claims(border, f1):
    assert word_f1([READ], border) == pytest.approx(f1)


def test_the_span_threshold_maximises_the_mean_f1_over_recipes():
    high = ClaimWords((False, True), (0.4, 0.9))
    low = ClaimWords((True, False), (0.2, 0.01))
    found = fit_span_threshold({"many": [high] * 50, "few": [low]})
    assert word_f1([high] * 50, found["border"]) == pytest.approx(2 / 3), "one false mark in every claim of the many"
    assert found["border"] == pytest.approx(0.2)
    assert found["fitted_on"]["few"] == {"claims": 1, "f1_at_0.5": 0.0, "f1_at_0.2": 1.0}


def test_equal_span_thresholds_resolve_to_the_one_nearest_to_the_default():
    assert fit_span_threshold({"plain": [ClaimWords((True, False), (0.99, 0.01))]})["border"] == 0.5
    assert 0.5 in THRESHOLD_GRID


def test_only_wrong_claims_without_a_question_whose_wrong_words_are_known_are_used(monkeypatch):
    kinds = [
        TrainingExample("s", "", "wrong", CONTRADICTED, ((0, 2),)),
        TrainingExample("s", "", "right", SUPPORTED, ()),
        TrainingExample("s", "", "unknown", CONTRADICTED),
        TrainingExample("s", "asked?", "answer", CONTRADICTED, ((0, 2),)),
    ]
    monkeypatch.setattr("knowhalu.training.fit_rows.draw_examples", lambda recipe, rows: iter(kinds * 40))
    found = dict(draw_wrong_claims(lambda recipe: [], limit=35))
    assert found and "WiCE, unsupported tokens" not in found
    assert all([e.claim for e in part] == ["wrong"] * 35 for part in found.values())
    monkeypatch.setattr("knowhalu.training.fit_rows.draw_examples", lambda recipe, rows: iter(kinds * 29))
    assert not dict(draw_wrong_claims(lambda recipe: [], limit=100)), "too few"
