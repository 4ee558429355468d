"""Gradients that travel as products of two thin matrices."""

import dist_models
import numpy as np
import pytest
from singa_rs import autograd, dist, layer, opt, tensor
from singa_rs.module import Module
from sklearn.datasets import load_digits
from test_dist_opt import SMALL, TIMEOUT, alone, assert_equal, train

pytestmark = pytest.mark.usefixtures("quick_start")


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("given", [{}, {"threshold": SMALL}, {"rank": 1}], ids=str)
def test_it_learns_as_dense_does(n, given):
    want, _ = alone(name="Adam")
    eager, _ = train(n, graph=False, train="low_rank", name="Adam", **given)
    losses, ranks = train(n, train="low_rank", name="Adam", **given)
    np.testing.assert_array_equal(losses, eager)
    assert np.mean(losses[-10:]) < 1.5 * np.mean(want[-10:])
    assert_equal(ranks)


def test_what_does_not_become_smaller_is_dense():
    want, _ = train(2)
    losses, _ = train(2, train="low_rank", rank=16)
    np.testing.assert_array_equal(losses, want)


# ---- one step against its formula ----------------------------------------------------------------


def gradients(rank, steps, shape=(8, 3, 4)):
    """A rank's gradients of a tensor and of a vector."""
    draw = np.random.default_rng(rank)
    for _ in range(steps):
        yield draw.normal(size=shape).astype(np.float32), draw.normal(size=5).astype(np.float32)


def leaf(shape, name):
    return tensor.Tensor(
        data=np.zeros(shape, np.float32), requires_grad=True, stores_grad=True, name=name
    )


def _stepped(steps, restored_at=None):
    """The parameters and the residual after steps of SGD with learning rate 1."""
    w, b = leaf((8, 3, 4), "w"), leaf((5,), "b")
    one = opt.DistOpt(opt.SGD(1.0))
    for step, (dw, db) in enumerate(gradients(dist.rank(), steps)):
        if step == restored_at:
            states, one = one.get_states(), opt.DistOpt(opt.SGD(1.0))
            one.set_states(states)
        with autograd._training_scope(True):
            given = [tensor.from_numpy(x) for x in (dw, db)]
            loss = autograd.reduce_sum(w * given[0]) + autograd.reduce_sum(b * given[1])
            one.backward_and_low_rank_update(loss, rank=2)
    rest = one.get_states()["exchange_residual"]["w"].to_numpy()
    rest = rest if dist.size() == 1 else rest[dist.rank()]
    return w.to_numpy(), b.to_numpy(), rest


def by_hand(n, steps):
    """The parameters, and each rank's residual, in float64."""
    right = np.random.default_rng((12, 2)).normal(size=(12, 2))
    rests = [np.zeros((8, 12)) for _ in range(n)]
    w, b = np.zeros((8, 12)), np.zeros(5)
    for grads in zip(*(gradients(rank, steps) for rank in range(n)), strict=True):
        wholes = [rest + dw.reshape(8, 12) for rest, (dw, _) in zip(rests, grads, strict=True)]
        base = np.linalg.qr(sum(whole @ right for whole in wholes) / n)[0]
        right = sum(whole.T @ base for whole in wholes) / n
        rests = [whole - base @ right.T for whole in wholes]
        w, b = w - base @ right.T, b - sum(db for _, db in grads) / n
    return w.reshape(8, 3, 4), b, rests


@pytest.mark.parametrize("n", [1, 2, 3])
def test_steps_are_those_of_the_paper(n):
    found = [_stepped(4)] if n == 1 else dist.spawn(_stepped, n, (4,), timeout=TIMEOUT)
    w, b, rests = by_hand(n, 4)
    for (made, vector, rest), want in zip(found, rests, strict=True):
        np.testing.assert_allclose(made, w, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(vector, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(rest.reshape(8, 12), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_gradients_without_two_independent_columns(value):
    """Of zeros nothing comes, and what is not finite is not lost."""
    w, one = leaf((8, 12), "w"), opt.DistOpt(opt.SGD(1.0))
    given = np.zeros((8, 12), np.float32)
    given[3, 4] = value
    with autograd._training_scope(True):
        for _ in range(2):
            one.backward_and_low_rank_update(autograd.reduce_sum(w * tensor.from_numpy(given)))
    made = w.to_numpy()
    assert (made == 0).all() if value == 0 else not np.isfinite(made[3, 4])


def test_states_continue():
    want = dist.spawn(_stepped, 2, (5,), timeout=TIMEOUT)
    made = dist.spawn(_stepped, 2, (5, 3), timeout=TIMEOUT)
    for ones, others in zip(want, made, strict=True):
        for one, other in zip(ones, others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_factors_and_residuals_start_afresh():
    one, w = opt.DistOpt(opt.SGD(1.0)), leaf((8, 3, 4), "w")
    states, runs = one.get_states(), []
    for _ in range(2):
        for given, _ in gradients(0, 3):
            with autograd._training_scope(True):
                loss = autograd.reduce_sum(w * tensor.from_numpy(given))
                one.backward_and_low_rank_update(loss, rank=2)
        runs.append(w.to_numpy())
        w.set_value(0)
        one.set_states(states)
    np.testing.assert_array_equal(*runs)
    assert runs[0].any()


def test_wrong_arguments():
    one, w = opt.DistOpt(opt.SGD(1.0)), leaf((8, 12), "w")
    with pytest.raises(ValueError, match="backward_and_low_rank_update: rank: got 0, want at lea"):
        one.backward_and_low_rank_update(None, rank=0)
    with autograd._training_scope(True):
        one.backward_and_low_rank_update(autograd.reduce_sum(w * w), rank=2)
        with pytest.raises(ValueError, match="got rank 3 for 'w', want 2 as in earlier steps"):
            one.backward_and_low_rank_update(autograd.reduce_sum(w * w), rank=3)


@pytest.mark.parametrize("name", ["low_rank", "sparse"])
def test_what_is_kept_for_later_steps_has_one_scale(name):
    """The loss scale of float16 changes, and steps in which gradients overflow are skipped."""
    x, y = (tensor.from_numpy(one) for one in next(dist_models.batches()))
    for amp in ("bfloat16", "float16"):
        model = dist_models.MLP(name)
        model.optimizer = opt.DistOpt(opt.SGD(0.1))
        model.compile([x], is_train=True, use_graph=False, amp=amp)
        if amp == "bfloat16":
            assert np.isfinite(model(x, y).as_type("float32").to_numpy()).all()
            continue
        with pytest.raises(ValueError, match="got mixed precision in float16 with .*, want bfloat"):
            model(x, y)


# ---- digits --------------------------------------------------------------------------------------


class Digits(Module):
    def __init__(self, is_dense):
        self.first, self.second, self.relu = layer.Linear(64), layer.Linear(10), layer.ReLU()
        self.is_dense = is_dense

    def forward(self, x):
        return self.second(self.relu(self.first(x)))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        if self.is_dense:
            self.optimizer(loss)
        else:
            self.optimizer.backward_and_low_rank_update(loss, rank=2)
        return loss


def _accuracy(is_dense):
    """Of rows that were held out, in percent."""
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int32)
    order = np.random.default_rng(0).permutation(len(x))
    held, rest = order[:360], order[360:]
    dist.set_seed(0)
    model = Digits(is_dense)
    model.optimizer = opt.DistOpt(opt.SGD(0.1, momentum=0.9))
    model.compile([tensor.from_numpy(x[:16])], is_train=True, use_graph=True)
    draw = np.random.default_rng(1)
    for _ in range(20):
        for rows in np.split(draw.permutation(rest)[:1408], 44):
            own = np.array_split(rows, dist.size())[dist.rank()]
            model(tensor.from_numpy(x[own]), tensor.from_numpy(y[own]))
    model.eval()
    found = model(tensor.from_numpy(x[held])).to_numpy().argmax(1)
    return 100 * (found == y[held]).mean()


def test_digits_are_learnt_as_well_as_by_dense_gradients():
    dense, low_rank = (
        dist.spawn(_accuracy, 2, (one,), timeout=TIMEOUT)[0] for one in (True, False)
    )
    assert dense > 95
    assert low_rank > dense - 0.5
