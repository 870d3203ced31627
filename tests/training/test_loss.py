"""Losses against worked values, and the rates of the layers."""

from dataclasses import replace

import pytest
import torch

from knowhalu.encoder.bert import Bert
from knowhalu.encoder.verifier import Verifier
from knowhalu.errors import KnowHaluError
from knowhalu.training.checkpoint import optimizer_step
from knowhalu.training.examples import UNSUPPORTED
from knowhalu.training.loop import class_loss, parameter_groups
from tests.training.conftest import SHAPE


def test_the_loss_of_a_known_target_is_cross_entropy():
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(20) % 3
    assert torch.allclose(class_loss(logits, targets), torch.nn.functional.cross_entropy(logits, targets))


def test_the_loss_of_unsupported_sums_the_other_classes():
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    expected = -torch.log(1 - logits.softmax(-1)[:, 0]).mean()
    assert torch.allclose(class_loss(logits, torch.full((20,), UNSUPPORTED)), expected, atol=1e-6)


def test_the_loss_stays_finite_at_the_ends():
    logits = torch.tensor([[90.0, -90.0, -90.0], [-90.0, 90.0, 90.0]], requires_grad=True)
    loss = class_loss(logits, torch.tensor([UNSUPPORTED, 0]))
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all()


def test_smoothing_agrees_with_torch():
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(2))
    targets = torch.arange(20) % 3
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.2)
    assert torch.allclose(class_loss(logits, targets, smoothing=0.2), expected)


def test_focus_lowers_the_loss_of_certain_examples():
    sure, unsure = torch.tensor([[4.0, 0.0, 0.0]]), torch.tensor([[0.1, 0.0, 0.0]])
    target = torch.tensor([0])
    kept = [float(class_loss(x, target, focus=2.0) / class_loss(x, target)) for x in (sure, unsure)]
    assert kept == pytest.approx([float(1 - x.softmax(-1)[0, 0]) ** 2 for x in (sure, unsure)], rel=1e-4)


def test_soft_targets_are_half_of_the_loss():
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(3))
    targets, soft = torch.tensor([0, 2]), torch.tensor([[0.5, 0.25, 0.25], [torch.nan] * 3])
    logp = logits.log_softmax(-1)
    first = 0.5 * (-logp[0, 0] - (soft[0] * logp[0]).sum())
    assert torch.allclose(class_loss(logits, targets, soft), (first - logp[1, 2]) / 2)


def test_a_row_without_soft_target_has_finite_gradients():
    logits = torch.zeros(1, 3, requires_grad=True)
    class_loss(logits, torch.tensor([1]), torch.full((1, 3), torch.nan)).backward()
    assert torch.isfinite(logits.grad).all()


def test_lower_layers_have_smaller_rates_and_every_weight_one_group():
    model = Verifier(Bert(replace(SHAPE, num_hidden_layers=3)))
    found = parameter_groups(model, rate=1.0, weight_decay=0.1, layer_decay=0.5)
    rates = {id(p): g["lr"] for g in found for p in g["params"]}
    assert len(rates) == sum(len(g["params"]) for g in found) == len(list(model.parameters()))
    top = len(model.encoder.layers) - 1
    assert rates[id(model.head.weight)] == 1.0
    assert rates[id(model.encoder.layers[top].up.weight)] == 0.5
    assert rates[id(model.encoder.words.weight)] == 0.5 ** (top + 2)
    assert all(g["weight_decay"] == 0.0 for g in found if all(p.ndim == 1 for p in g["params"]))


@pytest.mark.parametrize("focus", [0.25, 0.5, 1.0, 2.0])
def test_the_focal_loss_has_a_finite_gradient_at_certainty(focus):
    logits = torch.tensor([[200.0, -200.0, -200.0]], requires_grad=True)
    class_loss(logits, torch.tensor([0]), focus=focus).backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", [lambda w: w.sum() * float("nan"), lambda w: (w * 0).sqrt().sum()])
def test_a_step_without_a_finite_gradient_changes_no_weight(loss):
    model = torch.nn.Linear(2, 1)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(KnowHaluError, match="diverged"):
        optimizer_step(loss(model.weight), model, torch.optim.AdamW(model.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
