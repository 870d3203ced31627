"""The loop: its loss, its budget, and a resume after which nobody can tell that it was killed."""

import math
import shutil

import pytest
import torch

from knowhalu.encoder.bert import load_bert
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.errors import ResumeError
from knowhalu.training import batches as batches_module
from knowhalu.training import loop as loop_module
from knowhalu.training.leakage import Leakage
from knowhalu.training.loop import Trainer, TrainProgress, TrainSettings, learning_rate
from knowhalu.training.recipes import MIX_FILE, RECIPES
from tests.training.test_data_files import TINY

SETTINGS = TrainSettings(tokens=40_000, seed=5, rate=1e-3)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    original = loop_module.batches
    monkeypatch.setattr(batches_module, "POOL_SIZE", 64)
    monkeypatch.setattr(loop_module, "batches", lambda *args, **kwargs: original(*args, **{**kwargs, "recipes": TINY}))


def weights(model):
    return {k: v.clone() for k, v in model.state_dict().items()}


class Killed(Exception):
    pass


def killer(at):
    def report(progress):
        if progress.step == at:
            raise Killed

    return report


def silent(progress):
    return None


def test_a_killed_run_ends_with_the_same_weights(base, data, tmp_path):
    whole = weights(Trainer(base, data, tmp_path / "whole", SETTINGS).run(silent))
    folder = tmp_path / "killed"
    for at in (4, 9):  # saved after every step, killed twice: within a pool and across its end
        with pytest.raises(Killed):
            Trainer(base, data, folder, SETTINGS).run(killer(at), every=0.0)
    resumed = Trainer(base, data, folder, SETTINGS)
    assert resumed.progress.step == 8
    found = weights(resumed.run(silent))
    assert resumed.progress.tokens >= SETTINGS.tokens
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[k], whole[k]) for k in whole)


def test_a_finished_run_does_nothing_more(base, data, tmp_path):
    done = weights(Trainer(base, data, tmp_path, SETTINGS).run(silent))
    steps = []
    again = weights(Trainer(base, data, tmp_path, SETTINGS).run(steps.append))
    assert not steps
    assert all(torch.equal(done[k], again[k]) for k in done)


def test_a_run_with_every_option_ends_the_same_when_killed(base, data, tmp_path):
    settings = TrainSettings(
        tokens=20_000, seed=5, rate=1e-3, dropout=0.1, smoothing=0.1, focus=1.0, layer_decay=0.5, layers=1, without=("BEGIN dev",)
    )
    whole = weights(Trainer(base, data, tmp_path / "whole", settings).run(silent))
    with pytest.raises(Killed):
        Trainer(base, data, tmp_path / "killed", settings).run(killer(3), every=0.0)
    found = weights(Trainer(base, data, tmp_path / "killed", settings).run(silent))
    assert all(torch.equal(found[k], whole[k]) for k in whole)


def test_other_data_another_base_and_another_leakage_check_refuse_the_checkpoint(base, data, tmp_path):
    Trainer(base, data, tmp_path / "run", SETTINGS, Leakage([{"source": "A bridge."}])).save()
    with pytest.raises(ResumeError, match="another --leave-out; give the same"):
        Trainer(base, data, tmp_path / "run", SETTINGS)
    with pytest.raises(ResumeError, match="another --data; give the same"):
        Trainer(base, tmp_path, tmp_path / "run", SETTINGS, Leakage([{"source": "A bridge."}]))
    other = shutil.copytree(base, tmp_path / "base")
    Verifier(load_bert(base)).save(other, PairTokenizer.load(base).tokenizer)
    with pytest.raises(ResumeError, match="another --base; give the same"):
        Trainer(other, data, tmp_path / "run", SETTINGS, Leakage([{"source": "A bridge."}]))


def test_a_file_of_the_same_size_and_another_mixture_refuse_the_checkpoint(base, data, tmp_path, monkeypatch):
    Trainer(base, data, tmp_path / "run", SETTINGS).save()
    with monkeypatch.context() as patch:
        patch.setattr("knowhalu.training.loop.chosen", lambda **_: RECIPES[:-1])
        with pytest.raises(ResumeError, match="another mixture of recipes"):
            Trainer(base, data, tmp_path / "run", SETTINGS)
    other = shutil.copytree(data, tmp_path / "other")
    changed = bytearray((other / MIX_FILE).read_bytes())
    changed[-1] ^= 1
    (other / MIX_FILE).write_bytes(changed)
    with pytest.raises(ResumeError, match="another --data"):
        Trainer(base, other, tmp_path / "run", SETTINGS)


def test_other_settings_refuse_the_checkpoint(base, data, tmp_path):
    Trainer(base, data, tmp_path, SETTINGS).save()
    with pytest.raises(ResumeError, match="give the same, or another --out"):
        Trainer(base, data, tmp_path, TrainSettings(tokens=40_000, seed=6, rate=1e-3))


def test_a_damaged_checkpoint_is_named(base, data, tmp_path):
    Trainer(base, data, tmp_path, SETTINGS).save()
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ResumeError, match=r"checkpoint\.safetensors"):
        Trainer(base, data, tmp_path, SETTINGS)


def test_training_moves_all_but_the_word_embeddings(base, data, tmp_path):
    trainer = Trainer(base, data, tmp_path, SETTINGS)
    before = weights(trainer.model)
    after = weights(trainer.run(silent))
    still = {k for k in before if torch.equal(before[k], after[k])}
    assert still == {"encoder.words.weight"}
    assert not trainer.model.training


def test_the_rate_warms_up_and_falls():
    rates = [learning_rate(i / 100, SETTINGS) for i in range(101)]
    assert rates[0] > 0
    assert max(rates) == pytest.approx(SETTINGS.rate, rel=0.02)
    assert rates.index(max(rates)) == 3
    assert all(a >= b for a, b in zip(rates[3:], rates[4:], strict=False))
    assert rates[-1] == pytest.approx(0.05 * SETTINGS.rate)


def test_the_share_of_the_budget():
    assert TrainProgress(tokens=10).share(TrainSettings(tokens=40)) == 0.25
    assert TrainProgress(seconds=90.0).share(TrainSettings(minutes=3.0)) == 0.5
    assert TrainProgress(tokens=100).share(TrainSettings(tokens=40)) == 1.0
    assert math.isnan(TrainProgress().loss)
