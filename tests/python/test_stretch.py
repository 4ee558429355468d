"""A stretch of the tape that backward goes through by itself."""

import gc

import numpy as np
import pytest
from singa_rs import autograd, device, tensor
from singa_rs.autograd.stretch import Stretch
from singa_rs.errors import GraphError, ShapeError


@pytest.fixture(autouse=True)
def _training():
    autograd.training = True


def numbers(*shape: int, seed: int = 0) -> tensor.Tensor:
    return tensor.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def parameter(*shape: int) -> tensor.Tensor:
    made = numbers(*shape, seed=1)
    made.stores_grad = True
    return made


def test_gradients_of_inputs_and_parameters():
    x, y, w, dy = numbers(3, 4), numbers(3, 2, seed=2), parameter(4, 2), numbers(3, 2, seed=3)
    stretch = Stretch("test")
    z = stretch.leave(autograd.matmul(stretch.enter(x), w) * stretch.enter(y))
    a, b, c, d = (one.to_numpy() for one in (x, y, w, dy))
    np.testing.assert_allclose(z.to_numpy(), a @ c * b, rtol=1e-5, atol=1e-6)
    (dx, d_y), (dw, none) = stretch.backward(dy, [w, parameter(1)])
    np.testing.assert_allclose(dx.to_numpy(), (d * b) @ c.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_y.to_numpy(), d * (a @ c), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dw.to_numpy(), a.T @ (d * b), rtol=1e-5, atol=1e-6)
    assert none is None
    assert not any(one.requires_grad for one in (dx, d_y, dw))


def test_gradients_of_inputs_are_left_out_if_not_wanted():
    x, w = numbers(3, 4), parameter(4, 2)
    stretch = Stretch("test")
    stretch.leave(autograd.matmul(stretch.enter(x), w))
    (dx,), (dw,) = stretch.backward(numbers(3, 2), [w], wanted=False)
    assert dx is None and dw.shape == (4, 2)


def test_nothing_flows_past_its_ends():
    x = parameter(3)
    stretch = Stretch("test")
    y = stretch.leave(autograd.exp(stretch.enter(x * 2.0)))
    with pytest.raises(GraphError, match="was not recorded"):
        list(autograd.backward(y.sum()))
    stretch.backward(numbers(3))
    assert x.grad is None


def test_the_input_itself_may_be_the_result():
    x, dy = numbers(3), numbers(3, seed=1)
    stretch = Stretch("test")
    y = stretch.leave(stretch.enter(x))
    assert y.shares_block(x)
    (dx,), _ = stretch.backward(dy)
    np.testing.assert_array_equal(dx.to_numpy(), dy.to_numpy())


def test_integers_have_no_gradient():
    index, w = tensor.from_numpy(np.array([1, 0], np.int32)), parameter(3, 2)
    stretch = Stretch("test")
    stretch.leave(autograd.embedding(stretch.enter(index), w))
    (none,), (dw,) = stretch.backward(tensor.ones((2, 2)), [w])
    assert none is None
    np.testing.assert_array_equal(dw.to_numpy(), [[1, 1], [1, 1], [0, 0]])


def test_neither_input_nor_result_is_kept_unless_a_gradient_needs_it():
    dev, size = device.get_default_device(), 1 << 20
    stretch, x = Stretch("test"), tensor.ones((size,))
    gc.collect()
    before = dev.memory()["allocated"]
    y = stretch.leave(stretch.enter(x) * 3.0)
    del x, y
    assert dev.memory()["allocated"] <= before - 4 * size
    (dx,), _ = stretch.backward(tensor.ones((size,)))
    assert set(dx.to_numpy()) == {3.0}


def test_errors_begin_with_its_name():
    x = numbers(3)
    stretch = Stretch("name")
    stretch.leave(autograd.exp(stretch.enter(x)))
    with pytest.raises(ShapeError, match=r"^name: backward: got dy of shape \(2,\), want \(3,\)"):
        stretch.backward(numbers(2))
    stretch.backward(numbers(3))
    with pytest.raises(GraphError, match="^name: backward: nothing is recorded"):
        stretch.backward(numbers(3))
    paused = Stretch("name")
    with autograd.no_grad():
        paused.leave(autograd.exp(paused.enter(x)))
    with pytest.raises(GraphError, match="^name: backward: nothing is recorded: no_grad was"):
        paused.backward(numbers(3))


def test_what_is_needed_must_not_be_written():
    x = numbers(3)
    stretch = Stretch("name")
    stretch.leave(autograd.square(stretch.enter(x)))
    x.set_value(0)
    with pytest.raises(GraphError, match="changed in place"):
        stretch.backward(numbers(3))
