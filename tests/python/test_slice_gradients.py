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
    "columns backwards": [np.s_[:, t] for t in range(-1, -7, -1)],
    "last axis, one left out": [np.s_[:, :, 2], np.s_[:, :, 0], np.s_[:, 5:2:-1, 1]],
    "columns again": [np.s_[:, t] for t in (3, 2, 4, 1, 3, 2, 5, 0)],
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


@pytest.mark.parametrize("is_retained", [True, False])
def test_parts_of_a_part(is_retained):
    x = given(VALUES)
    part = x[1]
    part.stores_grad = is_retained
    terms = [autograd.reduce_sum(part[:, t] * part[:, t]) for t in range(3)]
    found = autograd.gradients(sum(terms[1:], terms[0]) + autograd.reduce_sum(part * 3.0))
    want = np.zeros(SHAPE)
    want[1] = 2 * VALUES[1] + 3
    np.testing.assert_allclose(found[x].to_numpy(), want, rtol=1e-14)
    assert (part in found) == is_retained
    if is_retained:
        np.testing.assert_array_equal(found[part].to_numpy(), found[x].to_numpy()[1])


@pytest.mark.parametrize("size", [8, 1 << 14])
def test_many_parts_of_any_size(size):
    x = given(np.arange(300 * size).reshape(300, size) % 7.0)
    terms = [autograd.reduce_sum(x[t] * float(t)) for t in range(300)]
    found = autograd.gradients(autograd.add_all(*terms))
    want = np.broadcast_to(np.arange(300.0)[:, None], (300, size))
    np.testing.assert_array_equal(found[x].to_numpy(), want)


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


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 4), (2, 5, 3), (4, 1, 3)])
def test_padding_adds_up_what_repeats_an_element(mode, shape):
    """Borders within the axis, of its extent, that overlap in it, and longer ones."""
    draw = np.random.default_rng(len(shape))
    for _ in range(20):
        before, after = draw.integers(0, 7, (2, len(shape)))
        x = tensor.from_numpy(draw.normal(size=shape), dtype="float64")
        x.requires_grad = True
        y = autograd.pad(x, mode, [*before, *after])
        factors = draw.integers(-9, 9, y.shape).astype(float)
        (found,) = autograd.gradients((y * tensor.from_numpy(factors, dtype="float64")).sum(), [x])
        widths = list(zip(before, after, strict=True))
        place = np.pad(np.arange(x.numel).reshape(shape), widths, mode=mode)
        want = np.bincount(place.ravel(), factors.ravel(), x.numel).reshape(shape)
        assert found.tolist() == want.tolist()


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
def test_second_derivatives_of_padding(mode):
    values = np.random.default_rng(1).normal(size=(2, 5))
    x = tensor.from_numpy(values, dtype="float64")
    x.requires_grad = True
    y = autograd.pad(x, mode, [1, 2, 0, 2])
    (slope,) = autograd.gradients((y * y).sum(), [x], create_graph=True)
    (found,) = autograd.gradients((slope * slope).sum(), [x])
    place = np.pad(np.arange(10).reshape(2, 5), ((1, 0), (2, 2)), mode=mode)
    times = np.bincount(place.ravel()).reshape(2, 5)
    np.testing.assert_allclose(found.to_numpy(), 8 * values * times**2, rtol=1e-12)
