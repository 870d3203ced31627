"""Fitted files are replaced as a whole, or not at all."""

import json

import pytest

from knowhalu.errors import InputError
from knowhalu.io.fitted_files import WEIGHTS_HASH_FIELD, weights_hash
from knowhalu.training.fitting import replace_fitted_file


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "judgment.json").write_text('{"fitted": 1}')
    return tmp_path


def test_a_fitted_file_is_replaced_as_a_whole(folder):
    with replace_fitted_file(folder, "judgment.json", {"fitted": 0}) as draft:
        assert json.loads((draft / "judgment.json").read_text()) == {"fitted": 0}
        assert (draft / "model.safetensors").read_bytes() == b"weights"
        assert json.loads((folder / "judgment.json").read_text()) == {"fitted": 1}
        (draft / "judgment.json").write_text('{"fitted": 2}')
    assert json.loads((folder / "judgment.json").read_text()) == {"fitted": 2, WEIGHTS_HASH_FIELD: weights_hash(folder)}
    assert {p.name for p in folder.iterdir()} == {"model.safetensors", "judgment.json"}


def test_an_interrupted_fit_changes_nothing(folder):
    with pytest.raises(KeyboardInterrupt), replace_fitted_file(folder, "judgment.json", {}):
        raise KeyboardInterrupt
    assert json.loads((folder / "judgment.json").read_text()) == {"fitted": 1}
    assert {p.name for p in folder.iterdir()} == {"model.safetensors", "judgment.json"}


def test_a_folder_without_weights_is_an_error(tmp_path):
    with (
        pytest.raises(InputError, match=r"no model\.safetensors; give the folder of a verifier"),
        replace_fitted_file(tmp_path, "a.json", {}),
    ):
        pass
