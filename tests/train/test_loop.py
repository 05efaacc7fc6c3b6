"""The loop: what an update is, accumulated, clipped or refused."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.train.config import TrainConfig
from dragoman.train.loop import Update, updates
from dragoman.train.optim import make_optimizer

SHORT, LONG = reversed_pairs(3, seed=1, longest=2), reversed_pairs(5, seed=2, longest=9)


def descend(model: nn.Module, batches: list[Batch], lr: float = 0.1, **settings: object) -> list[Update]:
    """Plain gradient descent, in which an update shows the gradient itself."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return list(updates(model, batches, optimizer, lambda _: lr, TrainConfig(**settings), pad_id=PAD))


def weights_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).clone()


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_two_accumulated_batches_are_one_batch_of_both(label_smoothing: float) -> None:
    """The sum is divided by the target tokens of the whole update. A mean of means would favour short sentences."""
    together, apart = make_model().double(), make_model().double()
    (one,) = descend(together, [batch_of(SHORT + LONG)], label_smoothing=label_smoothing)
    (two,) = descend(apart, [batch_of(SHORT), batch_of(LONG)], accumulate=2, label_smoothing=label_smoothing)
    assert one.n_tgt_tokens == two.n_tgt_tokens == sum(len(tgt) + 1 for _, tgt in SHORT + LONG)
    assert two.loss == pytest.approx(one.loss, rel=1e-12)
    assert two.grad_norm == pytest.approx(one.grad_norm, rel=1e-12)
    torch.testing.assert_close(weights_of(apart), weights_of(together), rtol=0, atol=1e-12)

    means = [descend(make_model().double(), [batch_of(part)])[0].loss for part in (SHORT, LONG)]
    assert abs(sum(means) / 2 - one.loss) > 1e-3  # the test would notice a mean of means


@pytest.mark.parametrize("tie_embeddings", [True, False])
def test_an_update_is_the_loss_per_token_and_its_gradient(tie_embeddings: bool) -> None:
    """Padding has no part in it."""
    model, batch = make_model(tie_embeddings=tie_embeddings).double(), batch_of(LONG)
    assert (batch.tgt_out_BT == PAD).any()
    before = weights_of(model)
    loss = F.cross_entropy(
        model(batch.src_BS, batch.tgt_in_BT).flatten(0, 1), batch.tgt_out_BT.flatten(),
        ignore_index=PAD, label_smoothing=0.1,
    )  # fmt: skip
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
    (update,) = descend(model, [batch])
    assert update.loss == pytest.approx(loss.item(), rel=1e-13)
    assert update.grad_norm == pytest.approx(gradient.norm().item(), rel=1e-12)
    assert (update.step, update.lr) == (1, 0.1)
    torch.testing.assert_close(weights_of(model), before - 0.1 * gradient, rtol=0, atol=1e-13)


def test_r_drop_without_dropout_changes_nothing() -> None:
    """Both readings of a sentence are then the same: they agree, and their mean is the loss of one."""
    plain, twice = make_model().double(), make_model().double()
    (one,), (two,) = descend(plain, [batch_of(LONG)]), descend(twice, [batch_of(LONG)], r_drop=5.0)
    assert two.loss == pytest.approx(one.loss, rel=1e-13)
    assert two.n_tgt_tokens == one.n_tgt_tokens
    torch.testing.assert_close(weights_of(twice), weights_of(plain), rtol=0, atol=1e-13)


def test_r_drop_brings_two_readings_together() -> None:
    """After the same updates, predictions depend less on what is dropped. Two models, one with a bound on it."""
    apart = []
    for r_drop in (0.0, 20.0):
        model = make_model(dropout=0.3)
        optimizer = make_optimizer(model, TrainConfig())
        settings = TrainConfig(r_drop=r_drop)
        list(updates(model, [batch_of(LONG)] * 30, optimizer, lambda _: 3e-3, settings, pad_id=PAD))
        with torch.no_grad():
            one, two = (model(batch_of(LONG).src_BS, batch_of(LONG).tgt_in_BT).log_softmax(-1) for _ in range(2))
        apart.append(F.kl_div(one, two, log_target=True, reduction="sum").item())
    assert apart[1] < apart[0] / 2


def test_gradients_do_not_leak_into_the_next_update() -> None:
    batches = [batch_of(SHORT), batch_of(LONG)]
    model, fresh = make_model().double(), make_model().double()
    descend(model, batches)
    for batch in batches:
        descend(fresh, [batch])
    assert torch.equal(weights_of(model), weights_of(fresh))


def test_clipping_bounds_the_update_and_reports_the_norm_before_it() -> None:
    free, clipped, roomy = make_model().double(), make_model().double(), make_model().double()
    before = weights_of(free)
    (unclipped,) = descend(free, [batch_of(LONG)])
    bound = unclipped.grad_norm / 4
    (update,) = descend(clipped, [batch_of(LONG)], clip_norm=bound)
    assert update.grad_norm == pytest.approx(unclipped.grad_norm, rel=1e-14)
    step, free_step = weights_of(clipped) - before, weights_of(free) - before
    # PyTorch divides by the norm plus 1e-6, which is the difference here.
    assert step.norm().item() == pytest.approx(0.1 * bound, rel=1e-5)
    torch.testing.assert_close(step, free_step / 4, rtol=1e-5, atol=1e-12)
    descend(roomy, [batch_of(LONG)], clip_norm=100 * unclipped.grad_norm)
    assert torch.equal(weights_of(roomy), weights_of(free))


def test_steps_rates_and_the_rest_of_the_batches() -> None:
    """Counted on from `done`; each update asks for its own rate; a last, smaller group is used too."""
    model = make_model()
    optimizer = make_optimizer(model, TrainConfig())
    batches = [batch_of(reversed_pairs(2, seed)) for seed in range(5)]
    found = list(
        updates(model, batches, optimizer, lambda step: step / 1e4, TrainConfig(accumulate=2), pad_id=PAD, done=7)
    )
    assert [update.step for update in found] == [8, 9, 10]
    assert [update.lr for update in found] == [8e-4, 9e-4, 1e-3]
    assert [update.n_tgt_tokens for update in found] == [
        batches[0].n_tgt_tokens + batches[1].n_tgt_tokens,
        batches[2].n_tgt_tokens + batches[3].n_tgt_tokens,
        batches[4].n_tgt_tokens,
    ]


def test_it_takes_no_batch_before_it_needs_it() -> None:
    """The place in the text that a checkpoint stores is that of the last batch used."""
    taken = []

    def stream():
        for seed in range(4):
            taken.append(seed)
            yield batch_of(reversed_pairs(2, seed))

    model = make_model()
    found = updates(model, stream(), make_optimizer(model, TrainConfig()), lambda _: 0.0, TrainConfig(), pad_id=PAD)
    next(found)
    assert taken == [0]
    next(found)
    assert taken == [0, 1]


def test_the_model_trains_even_if_someone_evaluated_it_in_between() -> None:
    model = make_model(dropout=0.5)
    found = updates(
        model, [batch_of(SHORT)] * 2, make_optimizer(model, TrainConfig()), lambda _: 0.0, TrainConfig(), pad_id=PAD
    )
    first = next(found)
    model.eval()
    second = next(found)
    assert model.training
    assert first.loss != second.loss  # dropout is on


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_before_the_update(bad: float) -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainConfig())
    good, ill = batch_of([([6, 7], [7, 6])]), batch_of([([5], [5]), ([5, 6], [6])], first_index=40)
    stream = updates(model, [good, ill], optimizer, lambda _: 0.01, TrainConfig(), pad_id=PAD, done=11)
    next(stream)
    with torch.no_grad():
        model.embedding.weight[5, 0] = bad
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = optimizer.state_dict()["state"]
    moments = {key: value["exp_avg"].clone() for key, value in state.items()}
    with pytest.raises(TrainingError) as caught:
        next(stream)
    assert "the loss is nan at step 13" in str(caught.value)
    assert "the 2 pairs 40, 41 (" in str(caught.value)
    assert "not updated" in str(caught.value)
    assert "train.lr" in (caught.value.hint or "")
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
    for key, value in optimizer.state_dict()["state"].items():
        assert torch.equal(value["exp_avg"], moments[key])
        assert value["step"] == 1


@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_a_gradient_that_is_not_finite_stops_too(clip_norm: float | None) -> None:
    """The loss may still be finite when its gradient has overflowed; clipping must not turn that into an update."""
    model = make_model()
    model.embedding.weight.register_hook(lambda gradient: gradient * math.inf)
    before = weights_of(model)
    pairs = reversed_pairs(12, 0)
    with pytest.raises(TrainingError, match="the gradient is not finite at step 1, in the batch of the 12 pairs") as e:
        descend(model, [batch_of(pairs)], clip_norm=clip_norm)
    assert "0, 1, 2, 3, 4, 5, 6, 7, …" in str(e.value)
    assert torch.equal(weights_of(model), before)
