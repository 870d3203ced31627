"""Scores on held-out rows, and the model card that shows them."""

import json
from functools import partial

import pytest

from knowhalu.encoder.bert import load_bert
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.training.card import write_card
from knowhalu.training.data_files import is_held_out, text_of
from knowhalu.training.holdout import HeldOutRows, score_recipes, scores_as_markdown
from knowhalu.training.loop import TrainProgress, TrainSettings
from knowhalu.training.recipes import RECIPES, read_recipe_rows


@pytest.fixture(scope="module")
def parts(base, data):
    return list(score_recipes(Verifier(load_bert(base)), PairTokenizer.load(base), HeldOutRows(data).of, limit=20))


def test_only_held_out_rows_are_scored(parts, data):
    unseen = HeldOutRows(data)
    rows = {r.name: list(unseen.of(r)) for r in RECIPES}
    assert {p.name: p.examples for p in parts} == {n: min(20, len(some)) for n, some in rows.items() if some}
    assert all(is_held_out(text_of(row)) for some in rows.values() for row in some)


def test_seen_rows_can_be_scored(base, data):
    seen = score_recipes(
        Verifier(load_bert(base)), PairTokenizer.load(base), partial(read_recipe_rows, folder=data, held=False), limit=10_000
    )
    sizes = {r.name: sum(1 for _ in read_recipe_rows(r, data, held=False)) for r in RECIPES}
    assert {p.name: p.examples for p in seen} == {n: size for n, size in sizes.items() if size}


def test_recipe_scores_are_shares(parts):
    assert all(0 <= p.accuracy <= 1 for p in parts)
    assert all(0 <= p.auc <= 1 for p in parts if p.auc == p.auc)
    assert scores_as_markdown(parts).count("\n") == len(parts) + 2


def test_the_card_names_every_part_with_its_licence_and_the_weights(parts, base, tmp_path):
    Verifier(load_bert(base)).save(tmp_path, PairTokenizer.load(base).tokenizer)
    weights = {"bias": 0.25, "cut": 0.5, "weights": {"coverage": 1.5}}
    (tmp_path / "judgment.json").write_text(
        json.dumps({"weights": {"claim.structured": weights}, "thresholds": {"claim": [0.6, 0.9]}})
    )
    progress = TrainProgress(step=7, tokens=21_000_000, seconds=3600, loss=0.4)
    write_card(tmp_path, TrainSettings(minutes=60), progress, scores_as_markdown(parts), note="A note.")
    card = (tmp_path / "README.md").read_text()
    assert all(f"| {r.name} |" in card and r.licence in card for r in RECIPES)
    size = sum(p.numel() for p in Verifier(load_bert(base)).parameters()) / 1e6
    assert f"{size:.1f} million parameters (1 layers, hidden size 8)" in card
    assert "21.0 million tokens" in card and "A note." in card
    assert "| coverage | +1.50 |" in card and "| decision threshold | +0.25 |" in card and "delta1 0.6" in card
    assert "A word is highlighted from 0.5 on" in card and "in bins" not in card


def test_the_card_shows_thresholds_and_reliability(base, tmp_path):
    Verifier(load_bert(base)).save(tmp_path, PairTokenizer.load(base).tokenizer)
    weights = {"bias": 0.25, "cut": 0.5, "weights": {"coverage": 1.5}}
    names = [f"{task}.{form}" for task in ("claim", "answer") for form in ("unstructured", "structured")]
    bins = {"claim": [[30, 0.1, 0.2], [10, 0.9, 0.8]], "answer": [[7, 0.5, 0.4]]}
    known = {name: {"ece": 0.1, "ece_unscaled": 0.2, "bins": bins[name.split(".")[0]]} for name in names}
    judgment = {"weights": dict.fromkeys(names, weights), "thresholds": {}, "reliability": known}
    (tmp_path / "judgment.json").write_text(json.dumps(judgment))
    fitted_on = {"written claims": {"claims": 97}, "WiCE": {"claims": 31}}
    (tmp_path / "marks.json").write_text(json.dumps({"border": 0.15, "fitted_on": fitted_on, "split": "held-out sources"}))
    write_card(tmp_path, TrainSettings(minutes=60), TrainProgress(), "")
    card = (tmp_path / "README.md").read_text()
    assert "| claims | predicted | observed | answers | predicted | observed |" in card
    assert "| 30 | 0.100 | 0.200 | 7 | 0.500 | 0.400 |\n| 10 | 0.900 | 0.800 |  |  |  |" in card
    assert "highlighted from 0.15 on" in card and "held-out sources: written claims (97), WiCE (31)." in card
