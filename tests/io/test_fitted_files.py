"""Fitted files: a judgment or thetas of other weights are refused."""

import json
import shutil

import pytest

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import WEIGHTS_HASH_FIELD, file_hash, weights_hash
from knowhalu.methods.common.judgment_model import JudgmentModel
from knowhalu.methods.factored.encoder import load_combination_calibration


@pytest.fixture
def folder(tmp_path):
    for name in ("judgment.json", "factored.json"):
        shutil.copy(PACKAGED_VERIFIER / name, tmp_path)
        fit = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps(fit | {WEIGHTS_HASH_FIELD: weights_hash(PACKAGED_VERIFIER)}))
    (tmp_path / "model.safetensors").symlink_to(PACKAGED_VERIFIER / "model.safetensors")
    return tmp_path


@pytest.mark.parametrize(("load", "script"), [(JudgmentModel, "fit_judgment.py"), (load_combination_calibration, "fit_theta.py")])
def test_fitted_file_is_read_with_its_own_weights_only(load, script, folder):
    load(folder)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ModelError, match=f"fitted to other weights .* Run scripts/{script}"):
        load(folder)


def test_rewritten_file_has_another_hash(tmp_path):
    path = tmp_path / "a"
    assert file_hash(path) == "missing"
    path.write_bytes(b"1")
    before = file_hash(path)
    path.write_bytes(b"12")
    assert file_hash(path) != before
