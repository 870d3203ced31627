"""Thresholds of KnowHalu: the vectorised join equals Algorithm 1, and the grid finds planted thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.calibration.two_forms import QUANTILES, make_tunable_forms, read_tunable_forms
from knowhalu.errors import InputError
from knowhalu.methods.common.combine import Thresholds, aggregate_judgments
from knowhalu.methods.common.verdict import combine_segments, resolve_inconclusive, text_probability
from knowhalu.training.fitting import average_accuracy
from knowhalu.types import Judgment, Label, Sample, Task
from tests.support.stored_runs import STRUCTURED, UNSTRUCTURED, fields_of, judgment, segment

levels = st.sampled_from([0.0, 0.2, 0.5, 0.5000001, 0.7, 0.9, 1.0])
shares = st.one_of(levels, st.floats(0, 1))
judgments = st.builds(
    lambda label, sure, supported: {"label": label, "confidence": sure, "p_supported": supported, "rationale": ""},
    st.sampled_from(Label), shares, shares,
)  # fmt: skip
rows = st.lists(
    st.tuples(st.sampled_from([Task.QA, Task.SUMMARY]), st.lists(st.tuples(judgments, judgments, st.booleans()), max_size=3)),
    min_size=1, max_size=6,
)  # fmt: skip
SAMPLES = {Task.QA: Sample(id="1", response="x", question="y"), Task.SUMMARY: Sample(id="1", response="x", documents="y")}


def pair(one, two, turned):
    """Return the judgments of a segment, the structured one first where the run had it as its base."""
    made = Judgment(form=UNSTRUCTURED, **one), Judgment(form=STRUCTURED, **two)
    return made[::-1] if turned else made


@given(rows, shares, shares, st.sampled_from([0, 1]))
def test_vectorised_join_equals_the_algorithm_row_by_row(drawn, delta1, delta2, base):
    lines = [(i, fields_of([segment(*pair(*s), task) for s in parts], task)) for i, (task, parts) in enumerate(drawn)]
    gold = np.arange(len(lines)) % 2 == 0
    limits = Thresholds(delta1, delta2)
    found = read_tunable_forms(lines, gold).concluded(base, limits)
    for i, (task, parts) in enumerate(drawn):
        if not parts:  # off target, or a refusal: nothing to join
            assert (found.abstained[i], found.settled[i], found.probability[i]) == (False, False, 0.25)
            continue
        segments = []
        for one, two, _ in parts:
            both = pair(one, two, False)
            final = aggregate_judgments(both[base], both[1 - base], limits)
            made = segment(both[base], both[1 - base], task)
            segments.append(
                made.model_copy(update={"label": resolve_inconclusive(final.label, task), "probability": 1 - final.p_supported})
            )
        verdict = combine_segments(SAMPLES[task], segments, "m", probability=text_probability(segments))
        assert found.abstained[i] == (verdict.hallucinated is None)
        assert found.probability[i] == verdict.probability
        assert found.abstained[i] or found.settled[i] == verdict.hallucinated


def forms(pairs):
    """Read rows of one segment: (unstructured label, confidence), (structured label, confidence), gold."""
    lines = [(i, fields_of([segment(judgment(UNSTRUCTURED, *a), judgment(STRUCTURED, *b))])) for i, (a, b, _) in enumerate(pairs)]
    return read_tunable_forms(lines, np.array([g for *_, g in pairs], dtype=bool))


def planted():
    """Make rows where the unstructured form is right over a confidence of 0.6, and the structured over 0.8 under that."""
    rng, found = np.random.default_rng(0), []
    for _ in range(2000):
        gold, a, b = bool(rng.random() < 0.5), rng.random(), rng.random()
        right, wrong = (Label.INCORRECT, Label.CORRECT) if gold else (Label.CORRECT, Label.INCORRECT)
        first = right if a >= 0.6 else wrong if b > 0.8 else right if rng.random() < 0.5 else wrong
        found.append(((first, a), (right if a < 0.6 and b > 0.8 else wrong, b), gold))
    return found


def test_the_grid_finds_the_planted_thresholds():
    told = forms(planted())
    settings = told.fit(np.arange(2000))["knowhalu"]
    assert settings["base_form"] == "unstructured"
    assert settings["delta1"] == pytest.approx(0.6, abs=0.05) and settings["delta2"] == pytest.approx(0.8, abs=0.05)
    grid = told.grid(0)
    best = np.unravel_index(np.nanargmax(grid.average), grid.average.shape)
    assert QUANTILES[best[0]] == pytest.approx(0.6, abs=0.051) and QUANTILES[best[1]] == pytest.approx(0.8, abs=0.051)
    assert np.isnan(grid.average[10, 3]) and np.isfinite(grid.average[3, 10]) and grid.never < np.nanmax(grid.average)


def one_by_one(pairs):
    """Try every pair of quantiles by Algorithm 1."""
    deltas = (np.quantile([p[form].confidence for p in pairs], QUANTILES) for form in range(2))
    first, second = (d.tolist() for d in deltas)
    tried = [Thresholds(0.0, 1.0)] + [Thresholds(first[i], second[j]) for i in range(19) for j in range(i, 19)]
    return max(tried, key=lambda t: average_accuracy((aggregate_judgments(b, s, t).label, good) for b, s, good in pairs))


def test_grid_equals_the_algorithm_at_every_pair_of_quantiles():
    drawn = planted()[:200]
    pairs = [(judgment(UNSTRUCTURED, *a), judgment(STRUCTURED, *b), not gold) for a, b, gold in drawn]
    assert forms(drawn).grid(0).best == make_tunable_forms(pairs).grid(0).best == pytest.approx(one_by_one(pairs))


def test_confident_supplement_overrules_an_unsure_base():
    sure_right = (judgment(UNSTRUCTURED, Label.CORRECT, 0.95), judgment(STRUCTURED, Label.INCORRECT, 0.6), True)
    unsure_wrong = (judgment(UNSTRUCTURED, Label.CORRECT, 0.55), judgment(STRUCTURED, Label.INCORRECT, 0.95), False)
    pairs = [sure_right, unsure_wrong] * 20
    best = make_tunable_forms(pairs).grid(0).best
    assert best.delta1 > 0.55
    assert average_accuracy((aggregate_judgments(b, s, best).label, good) for b, s, good in pairs) == 1.0


def test_the_base_is_the_form_that_is_better_alone():
    right, wrong = (Label.INCORRECT, 0.9), (Label.CORRECT, 0.9)
    rows = [(wrong, right, True), (wrong, wrong, False)] * 5
    assert forms(rows).fit(np.arange(10)) == {"knowhalu": {"base_form": "structured", "delta1": 0.0, "delta2": 1.0}}


def test_subset_of_rows_has_those_rows_only():
    told = forms(planted()[:50])
    chosen = np.array([40, 3, 7])
    whole, part = told.concluded(0, Thresholds(0.6, 0.8)), told.some(chosen).concluded(0, Thresholds(0.6, 0.8))
    assert part.probability.tolist() == whole.probability[chosen].tolist() and part.gold.tolist() == whole.gold[chosen].tolist()


def test_single_form_is_refused_with_a_remedy():
    lines = [(0, fields_of([segment(judgment(UNSTRUCTURED, Label.CORRECT, 0.9), None)]))]
    with pytest.raises(InputError, match=r"'1' was judged by one form.*knowhalu.second_opinion=always"):
        read_tunable_forms(lines, np.array([True]))
