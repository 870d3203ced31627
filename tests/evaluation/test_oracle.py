"""Oracle thresholds: the best macro F1 on the rows themselves, of one set or shared by several, by exhaustive search."""

import numpy as np
import pytest

from knowhalu.evaluation.compare import compare
from knowhalu.evaluation.metrics import Predictions, metrics_from_counts, row_counts
from knowhalu.evaluation.oracle import ALL_FLAGGED, oracle_threshold
from knowhalu.evaluation.result_tables import ORACLE_TITLE, as_json, as_markdown
from knowhalu.evaluation.runs import parse_specs
from tests.support.scripted_checks import write


def predictions(gold, probability):
    gold, p = np.array(gold, dtype=bool), np.array(probability, dtype=float)
    return Predictions(gold, p > 0.5, np.zeros(len(gold), dtype=bool), p)


def macro_f1(one, cut):
    settled = one._replace(settled=one.probability > cut)
    return float(metrics_from_counts(row_counts(settled).sum(axis=0))["macro_f1"])


def test_the_threshold_is_the_best_of_all_on_random_rows():
    rng = np.random.default_rng(1)
    for _ in range(20):
        sets = [predictions(np.r_[rng.random(9) > 0.6, True, False], rng.integers(0, 6, 11) / 5) for _ in range(2)]
        for chosen in (sets[:1], sets):
            found = oracle_threshold(chosen)
            tried = [np.mean([macro_f1(one, cut) for one in chosen]) for cut in (ALL_FLAGGED, *np.arange(0, 1.01, 0.1))]
            assert found.mean == pytest.approx(max(tried))
            assert found.macro_f1 == pytest.approx([macro_f1(one, found.at) for one in chosen])


def test_of_equally_good_thresholds_the_nearest_to_one_half_counts():
    assert oracle_threshold([predictions([0, 0, 1], [0.1, 0.2, 0.9])]).at == pytest.approx(0.55)
    assert oracle_threshold([predictions([1, 1, 0], [0.1, 0.2, 0.9])]).at == ALL_FLAGGED


def test_rows_without_a_probability_or_a_label_give_no_threshold():
    nan = float("nan")
    assert oracle_threshold([predictions([1, 0, 1], [nan, 0.2, 0.9])]).macro_f1 == (1.0,)
    assert oracle_threshold([predictions([1, 0], [nan, 0.2])]) is None
    assert oracle_threshold([predictions([1, 1], [0.3, 0.2])]) is None and oracle_threshold([]) is None


def test_a_comparison_labels_its_oracle_threshold_as_an_upper_bound(tmp_path):
    labels = ["faithful", "faithful", "hallucinated", "hallucinated", "hallucinated"] * 4
    rows = [{"claim": "word " * (2 + i % 5), "knowledge": f"s {i}", "label": label} for i, label in enumerate(labels)]
    write(tmp_path / "in.jsonl", rows)
    found = compare(tmp_path / "in.jsonl", parse_specs(["far=trivial-length[threshold=5]"]), tmp_path / "out")
    far = as_json(found)["results"][0]
    assert far["oracle"]["macro_f1"] == [1.0] and far["figures"]["macro_f1"]["value"] < 1
    assert ORACLE_TITLE in as_markdown(found) and "upper bound and no result" in ORACLE_TITLE
