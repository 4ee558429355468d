"""Gradients of parts of a tensor: each is accumulated in its own place, whatever the others."""

import json

import numpy as np
import pytest
from singa_rs import autograd, module, opt, tensor

SHAPE = (4, 6, 3)
VALUES = np.random.default_rng(0).standard_normal(SHAPE)

#: Which parts of a tensor are read, in every form of index that NumPy understands.
PARTS = {
    "rows": [np.s_[t] for t in range(4)],
    "columns": [np.s_[:, t] for t in range(6)],
    "some twice": [np.s_[:, 1:4], np.s_[:, 2:5], np.s_[1]],
    "with steps": [np.s_[::2], np.s_[:, ::-1], np.s_[1::2, -1:0:-2]],
    "single numbers": [np.s_[0, 0, 0], np.s_[-1, -1, -1], np.s_[0, 0, 0]],
    "new axes": [np.s_[:, None, 2], np.s_[..., None]],
    "nothing": [np.s_[4:], np.s_[:, 2:2], np.s_[:1]],
    "all": [np.s_[...], np.s_[:], np.s_[1]],
}


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True
    yield
    autograd.training = False


def given(values, dtype="float64"):
    x = tensor.from_numpy(np.array(values), dtype=dtype)
    x.requires_grad = x.stores_grad = True
    return x


def loss_of_parts(x, parts):
    """The sum of the squares of all parts, each weighted by its number."""
    terms = [autograd.reduce_sum(x[part] * x[part]) * (n + 1.0) for n, part in enumerate(parts)]
    return sum(terms[1:], terms[0])


def expected(parts):
    want = np.zeros(SHAPE)
    for n, part in enumerate(parts):
        want[part] += 2 * (n + 1) * VALUES[part]
    return want


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("is_leaf", [True, False])
def test_all_parts_are_added(parts, is_leaf):
    x = given(VALUES)
    found = autograd.gradients(loss_of_parts(x if is_leaf else x * 1.0, parts))
    np.testing.assert_allclose(found[x].to_numpy(), expected(parts), rtol=1e-14)


@pytest.mark.parametrize("is_first", [True, False])
def test_parts_and_the_whole_are_added_in_any_order(is_first):
    x = given(VALUES)
    h = x * 1.0
    whole = autograd.reduce_sum(h * h)
    part = autograd.reduce_sum(h[1] * h[1])
    found = autograd.gradients(whole + part if is_first else part + whole)
    want = 2 * VALUES
    want[1] *= 2
    np.testing.assert_allclose(found[x].to_numpy(), want, rtol=1e-14)


def test_a_shared_gradient_is_not_accumulated_into():
    x, y = given(VALUES), given(VALUES)
    parts = autograd.reduce_sum(x[2] * 3.0)
    found = autograd.gradients(autograd.reduce_sum(x + y) + parts)
    want = np.ones(SHAPE)
    np.testing.assert_array_equal(found[y].to_numpy(), want)
    want[2] += 3
    np.testing.assert_array_equal(found[x].to_numpy(), want)


def test_gradients_taken_again_do_not_share_memory():
    x = given(VALUES)
    first, second = (autograd.gradients(autograd.reduce_sum(x[1]))[x] for _ in range(2))
    first += 1.0
    assert float(second.to_numpy().sum()) == 18.0


def test_a_rule_gives_the_whole_gradient_by_hand():
    x = given(VALUES)
    y = x[1]
    dx = y.creator.backward(tensor.ones(y.shape, dtype="float64"))
    want = np.zeros(SHAPE)
    want[1] = 1
    np.testing.assert_array_equal(dx.to_numpy(), want)


class Twice(autograd.Slice):
    """Has twice the gradient of a slice."""

    def gradients(self, dys, wanted):
        (dx,) = super().gradients(dys, wanted)
        return (dx * 2.0,)


def test_a_derived_slice_gets_the_whole_gradient_of_its_base():
    x = given(VALUES)
    (y,) = Twice([1], [3])(x)
    want = np.zeros(SHAPE)
    want[1:3] = 2
    found = autograd.gradients(autograd.reduce_sum(y))
    np.testing.assert_array_equal(found[x].to_numpy(), want)


class Net(module.Module):
    """Reads its input step by step, as a recurrent net does."""

    def __init__(self):
        super().__init__()
        self.w, self.optimizer = given(VALUES[0], "float32"), opt.SGD(0.1)

    def forward(self, x):
        h = x * self.w
        terms = [autograd.reduce_sum(autograd.tanh(h[:, t])) for t in range(h.shape[1])]
        return sum(terms[1:], terms[0])

    def train_one_batch(self, x):
        loss = self.forward(x)
        self.optimizer(loss)
        return loss


def test_a_loop_fills_one_buffer_and_replays_as_it_ran():
    x = tensor.from_numpy(VALUES, dtype="float32")
    losses = []
    for use_graph in (False, True):
        net = Net()
        net.compile([x], is_train=True, use_graph=use_graph)
        losses.append([net(x).to_numpy().tolist() for _ in range(5)])
    assert losses[0] == losses[1]
    nodes = json.loads(net.graphs[0].to_json())["nodes"]
    assert sum(node["name"] == "fill" for node in nodes) < 6, "not one for each step"
