"""The mean of the weights of several verifiers."""

from dataclasses import replace

import pytest
import torch

from knowhalu.encoder.bert import Bert
from knowhalu.encoder.verifier import PairTokenizer, Verifier
from knowhalu.errors import InputError
from knowhalu.training.checkpoint import average_weights
from tests.support.tiny import write_tokenizer
from tests.training.conftest import SHAPE


@pytest.fixture
def folders(tmp_path):
    found = []
    for seed in range(2):
        torch.manual_seed(seed)
        write_tokenizer(tmp_path)
        model = Verifier(Bert(SHAPE))
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(float(1 + 2 * seed))
        model.save(tmp_path / str(seed), PairTokenizer.load(tmp_path).tokenizer)
        found.append(tmp_path / str(seed))
    return found


def test_averaged_weights_are_the_mean(folders):
    assert all((p == 2.0).all() for p in average_weights(folders).state_dict().values())


def test_shares_need_not_add_up_to_one(folders):
    assert all((p == 1.5).all() for p in average_weights(folders, [6.0, 2.0]).state_dict().values())


@pytest.mark.parametrize("shares", [[1.0], [1.0, -1.0], [0.0, 0.0]])
def test_shares_that_do_not_fit_are_refused(folders, shares):
    with pytest.raises(InputError, match="shares"):
        average_weights(folders, shares)


def test_averaging_one_verifier_is_refused(folders):
    with pytest.raises(InputError, match="at least two"):
        average_weights(folders[:1])


def test_verifiers_of_another_shape_are_refused(folders, tmp_path):
    Verifier(Bert(replace(SHAPE, num_hidden_layers=2))).save(tmp_path / "other", PairTokenizer.load(tmp_path).tokenizer)
    with pytest.raises(InputError, match="its shape differs"):
        average_weights([folders[0], tmp_path / "other"])
