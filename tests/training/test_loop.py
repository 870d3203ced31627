"""The training loop: loss, budget, and resumption with the same weights."""

import math
import shutil
from dataclasses import replace

import pytest
import torch

from knowhalu.encoder.bert import load_bert
from knowhalu.encoder.change import read_change, write_change
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.errors import ResumeError
from knowhalu.training import batches as batches_module
from knowhalu.training import loop as loop_module
from knowhalu.training.data_files import Leakage
from knowhalu.training.loop import Trainer, TrainProgress, TrainSettings, learning_rate
from knowhalu.training.recipes import MIX_FILE, RECIPES
from tests.support.tiny import write_library_base
from tests.training.test_data_files import TINY

SETTINGS = TrainSettings(tokens=40_000, seed=5, rate=1e-3)
LONG = replace(SETTINGS, long=0.1, floor=0.0, rewarm=0.3)


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    return write_library_base(tmp_path_factory.mktemp("bases") / "mpnet")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    original = loop_module.training_batches
    monkeypatch.setattr(batches_module, "POOL_SIZE", 64)
    monkeypatch.setattr(loop_module, "training_batches", lambda *args, **kwargs: original(*args, **{**kwargs, "recipes": TINY}))


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


def test_a_killed_run_of_another_encoder_ends_with_the_same_weights(mpnet, data, tmp_path):
    whole = weights(Trainer(mpnet, data, tmp_path / "whole", LONG).run(silent))
    with pytest.raises(Killed):
        Trainer(mpnet, data, tmp_path / "killed", LONG).run(killer(5), every=0.0)
    resumed = Trainer(mpnet, data, tmp_path / "killed", LONG)
    assert resumed.progress.step == 4
    found = weights(resumed.run(silent))
    assert all(torch.equal(found[k], whole[k]) for k in whole)
    assert "encoder.model.encoder.relative_attention_bias.weight" in found


class Recorded(Trainer):
    """A run that notes its batches and rates."""

    def _step(self, batch):
        loss = super()._step(batch)
        self.__dict__.setdefault("batches", []).append((batch.pool, batch.number, batch.ids))
        self.__dict__.setdefault("rates", []).append(self.optimizer.param_groups[0]["lr"])
        return loss


@pytest.fixture
def stopped(mpnet, data, tmp_path):
    """The change that a run left after its fifth step, and the run without a stop."""
    whole = Recorded(mpnet, data, tmp_path / "whole", LONG)
    whole.run(silent)
    first = Trainer(mpnet, data, tmp_path / "first", LONG, rank=64)
    with pytest.raises(Killed):
        first.run(killer(6), every=0.0, changes=0.0)
    return tmp_path / "first" / "change.safetensors", whole


def test_another_machine_continues_with_the_weights_and_the_data_of_a_change(mpnet, data, tmp_path, stopped):
    change, whole = stopped
    other = Recorded(mpnet, data, tmp_path / "other", LONG, rank=64, continue_from=change)
    assert other.progress.step == 5 and other.progress.fresh == other.progress.share(LONG) > 0
    with pytest.raises(Killed):
        Trainer(mpnet, data, tmp_path / "same", LONG).run(killer(6), every=0.0)
    same = Trainer(mpnet, data, tmp_path / "same", LONG)  # the whole state after as many steps
    assert all(torch.allclose(v, same.model.state_dict()[k], atol=2e-3) for k, v in other.model.state_dict().items())
    other.run(silent)
    assert len(other.batches) == len(whole.batches) - 5
    for (pool, number, ids), expected in zip(other.batches, whole.batches[5:], strict=True):
        assert (pool, number) == expected[:2] and torch.equal(ids, expected[2])
    assert other.rates[0] < 0.2 * whole.rates[5] and other.rates[-1] == pytest.approx(whole.rates[-1])
    assert (tmp_path / "other" / "change.safetensors").exists()


def test_a_continued_run_that_is_killed_ends_with_the_same_weights(mpnet, data, tmp_path, stopped):
    change, _ = stopped
    whole = weights(Trainer(mpnet, data, tmp_path / "one", LONG, continue_from=change).run(silent))
    with pytest.raises(Killed):
        Trainer(mpnet, data, tmp_path / "two", LONG, continue_from=change).run(killer(8), every=0.0)
    found = weights(Trainer(mpnet, data, tmp_path / "two", LONG, continue_from=change).run(silent))
    assert all(torch.equal(found[k], whole[k]) for k in whole)


def test_a_new_run_begins_with_the_weights_of_a_change_and_with_its_own_data(mpnet, data, tmp_path, stopped):
    change, _ = stopped
    other = Trainer(mpnet, data, tmp_path / "new", replace(LONG, seed=6, tokens=80_000), weights_from=change)
    continued = Trainer(mpnet, data, tmp_path / "old", LONG, continue_from=change)
    assert (other.progress.step, other.progress.tokens) == (0, 0)
    assert all(torch.equal(v, continued.model.state_dict()[k]) for k, v in other.model.state_dict().items())


def test_a_change_of_another_run_or_without_its_record_is_refused(mpnet, data, tmp_path, stopped):
    change, whole = stopped
    with pytest.raises(ResumeError, match="with settings"):
        Trainer(mpnet, data, tmp_path / "other", replace(LONG, seed=6), continue_from=change)
    with pytest.raises(ResumeError, match="another --data"):
        Trainer(mpnet, tmp_path, tmp_path / "other", LONG, continue_from=change)
    longer = Trainer(mpnet, data, tmp_path / "longer", replace(LONG, tokens=10 * LONG.tokens), continue_from=change)
    assert longer.progress.share(longer.settings) == pytest.approx(read_change(change).about["progress"]["tokens"] / 400_000)
    write_change(tmp_path / "bare.safetensors", whole.model, mpnet)
    with pytest.raises(ResumeError, match="has no record of its run"):
        Trainer(mpnet, data, tmp_path / "other", LONG, continue_from=tmp_path / "bare.safetensors")


def test_a_finished_run_takes_no_further_step(base, data, tmp_path):
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
        fewer = tuple(r for r in RECIPES if r.name != "written answers, delivered or evaded")  # another recipe has the file
        patch.setattr("knowhalu.training.loop.choose_recipes", lambda **_: fewer)
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


def test_a_damaged_checkpoint_is_reported(base, data, tmp_path):
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


def test_the_rate_rises_again_after_a_change_and_may_fall_to_nothing():
    settings = replace(SETTINGS, floor=0.0, rewarm=0.1)
    plain, again = ([learning_rate(i / 100, settings, fresh) for i in range(40, 101)] for fresh in (0.0, 0.4))
    assert again[0] < 0.01 * plain[0] and again[5] == pytest.approx(0.5 * settings.rate, rel=0.01)
    assert again[10:] == plain[10:] and plain[-1] == 0.0


def test_the_share_of_the_budget_is_that_of_tokens_or_minutes():
    assert TrainProgress(tokens=10).share(TrainSettings(tokens=40)) == 0.25
    assert TrainProgress(seconds=90.0).share(TrainSettings(minutes=3.0)) == 0.5
    assert TrainProgress(tokens=100).share(TrainSettings(tokens=40)) == 1.0
    assert math.isnan(TrainProgress().loss)
