"""Held-out rows that overlap with training or evaluation texts are not used in any fit."""

import gzip
import json

import pytest

from knowhalu.training.data_files import is_held_out
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import FILES, MIX_FILE, RECIPES

FEVER = next(r for r in RECIPES if r.name == "FEVER dev claims")


def text(n, tail="."):
    return f"Town{n} lies on river{n} below hill{n}, and king{n} gave it a market in year{n} after the flood{n} had gone{tail}"


HELD = [n for n in range(400) if is_held_out(text(n))]
FREE = [n for n in range(400) if not is_held_out(text(n)) and not is_held_out(text(n, " away."))]


def row(source, claim):
    return {"set": "fever_dev_claims", "source": source, "claim": claim, "label": "supported"}


@pytest.fixture()
def folder(tmp_path):
    nearly = next(n for n in HELD[2:] if not is_held_out(text(n, " away.")))
    rows = [
        row(text(HELD[0]), "A claim that nothing else of all this says."),
        row(text(HELD[1]), "The market was given by a king of old times."),
        row(text(FREE[0]), "The market was given by a king of old times."),
        row(text(nearly), "This text is about a source that was trained on."),
        row(text(nearly, " away."), "And this one is about the other that was."),
    ]
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with gzip.open(tmp_path / name, "wt") as file:
            file.writelines(json.dumps(r) + "\n" for r in (rows if name == MIX_FILE else []))
    return tmp_path


def test_a_row_whose_claim_or_nearly_whose_source_was_trained_on_is_left_out(folder):
    assert [r["source"] for r in HeldOutRows(folder).of(FEVER)] == [text(HELD[0])]


def test_a_row_that_an_evaluation_file_holds_is_left_out(folder, tmp_path):
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval/some.jsonl").write_text(json.dumps({"document": text(HELD[0])}))
    assert not list(HeldOutRows(folder, tmp_path / "eval").of(FEVER))


def test_training_sources_are_never_held_out_rows(folder):
    assert not list(HeldOutRows(folder).among([row(text(n), f"A text about {n} alone, and no other.") for n in FREE]))
