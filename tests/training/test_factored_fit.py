"""Texts to fit Factored Verification on: both classes, equal length, held-out sources; and the fit of its thetas."""

import gzip
import json

import pytest

from knowhalu.training.data_files import is_held_out
from knowhalu.training.fit_rows import MAX_SUMMARY_PAIRS, TEXTS_PER_CLASS, draw_texts
from knowhalu.training.fitting import ScoredText, fit_thetas
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import CLAIMS_FILE, FILES, SYNTHETIC_PAIRS_FILE

NAMES = ["bridge", "tower", "mill", "harbour", "school", "market"]


@pytest.fixture()
def folder(tmp_path):
    def claim(name, label, i):
        return {"text": f"The {name}{i} {label} was opened{i} by the mayor{i} of {name}ville{i}.", "label": label}

    def claims(i):
        return [claim(n, label, i) for n in NAMES for label in ("supported", "contradicted")]

    documents = [f"Document {i} tells of many things." for i in range(200)]
    found = dict.fromkeys(FILES, []) | {
        CLAIMS_FILE: [{"document": d, "claims": claims(i)} for i, d in enumerate(documents)],
        SYNTHETIC_PAIRS_FILE: [{"document": d, "right_summary": "Right.", "hallucinated_summary": "Wrong."} for d in documents]
        * 2,
    }
    for name, rows in found.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with gzip.open(tmp_path / name, "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_theta_texts_are_held_out_balanced_and_have_one_wrong_claim(folder):
    found = list(draw_texts(HeldOutRows(folder)))
    assert found and all(is_held_out(t.sample.documents[0].text) for t in found)
    assert sum(t.faithful for t in found) == len(found) / 2
    composed = [t for t in found if t.origin.startswith("written")]
    assert len(composed) % (2 * TEXTS_PER_CLASS) == 0
    for text in composed:
        assert text.sample.response.count("contradicted") == (0 if text.faithful else 1)
    mean = [sum(t.sample.response.count(".") for t in composed if t.faithful is f) for f in (True, False)]
    assert abs(mean[0] - mean[1]) <= 0.2 * mean[0]  # length tells nothing
    pairs = [t for t in found if t.origin.startswith("FIB")]
    assert len({t.sample.documents for t in pairs}) == len(pairs) / 2 <= MAX_SUMMARY_PAIRS


def test_the_fit_gives_a_theta_for_every_rule_and_the_support_of_a_typical_claim():
    rows = [ScoredText((0.9, 0.8), True, "a"), ScoredText((0.9, 0.1, 0.9), False, "a"), ScoredText((0.8,), True, "a")]
    found = fit_thetas(rows)
    assert found["typical"] == 0.8 and found["reference"] == 2.0 and found["rows"] == 3
    assert found["thetas"]["product"] == pytest.approx((0.76 + 0.081) / 2, abs=1e-4)
    assert found["thetas"]["minimum"] == pytest.approx((0.8 + 0.1) / 2)
    assert set(found["average_accuracy"].values()) == {1.0}
