"""`verifier.toml`: presets, round trips, and which folders are external verifiers."""

import json

import pytest

from knowhalu.io.fitted_files import fitted_folder, weights_hash
from knowhalu.io.verifier_file import output_classes, presets, read_external
from tests.support.tiny_verifiers import card


@pytest.mark.parametrize("name", presets())
def test_preset_is_complete_and_is_written_as_it_was_read(tmp_path, name):
    found = read_external(card(tmp_path, preset=name)).card
    assert found.about and (found.labels or name == "nli")
    (tmp_path / "verifier.toml").write_text(found.toml(), encoding="utf-8")
    again = read_external(tmp_path).card
    assert again.reading == found.reading and again.threshold == found.threshold


def test_field_of_the_file_wins_over_its_preset(tmp_path):
    assert read_external(card(tmp_path, preset="minicheck-roberta", window=50)).card.window == 50


def test_hash_depends_on_weights_and_template_but_on_no_place(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(b"one")
    first = weights_hash(card(tmp_path, preset="nli", model="m"))
    assert weights_hash(card(tmp_path, preset="nli", model=str(tmp_path / "m"), fitted="f", threshold=0.3)) == first
    assert fitted_folder(tmp_path) == tmp_path / "f"
    assert weights_hash(card(tmp_path, preset="nli", model="m", template="{premise} {claim}")) != first
    (tmp_path / "m" / "model.safetensors").write_bytes(b"other")
    assert weights_hash(card(tmp_path, preset="nli", model="m")) != first


def test_folder_without_card_is_external_where_it_names_a_sequence_classifier(tmp_path):
    assert read_external(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    assert read_external(tmp_path) is None
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertForSequenceClassification"]}))
    assert read_external(tmp_path).card.kind == "sequence-classification"
    header = json.dumps({"head.weight": {}}).encode()  # written by the training of this package, from such a base
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert read_external(tmp_path) is None


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), ("contradicted", "neutral", "supported")),
        (("not entailment", "entailment"), ("unsupported", "supported")),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), ("supported", "contradicted", "neutral")),
        (("consistent", "hallucinated"), ("supported", "unsupported")),
    ],
)
def test_classes_follow_the_names_of_the_labels(tmp_path, names, classes):
    assert output_classes(names, tmp_path) == classes
