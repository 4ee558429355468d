"""Values with gradients that are written into tensors which were created in the same step, as by
`out = zeros(...); out[t] = h`."""

import threading

import numpy as np
import pytest
from recorded import replays
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs._core import begin_step
from singa_rs.tensor import from_numpy


def by_time(h):
    out = tensor.zeros((3, 2))
    for t in range(3):
        out[t] = h * (t + 1)
    return out


def by_index(h):
    out = tensor.zeros((4,))
    out[[3, 0]] = h
    return out


def through_a_view(h):
    out = tensor.zeros((3, 2))
    row = out[1:][0]
    row += h
    return out


def seen_by_a_view(h):
    out = tensor.zeros((3, 2))
    view = out[:2]
    out[0] = h * 3
    return view


def through_a_transposed_view(h):
    out = tensor.zeros((2, 3))
    out.transpose()[1] = h
    return out


def through_a_part(h):
    out = tensor.zeros((4,))
    _, last = autograd.split(out, 0, [2, 2])
    last += h
    return out


def of_no_gradient(h):
    out = from_numpy(np.zeros((2, 2), np.float32))
    out.requires_grad = False
    first = out[0]
    first[:] = h
    return out


def of_constants(h):
    out = from_numpy(np.ones(2, np.float32))
    out.requires_grad = False
    out = out * 2
    out *= h
    return out


WAYS = {
    "by time": by_time,
    "by index": by_index,
    "a view": through_a_view,
    "seen by a view": seen_by_a_view,
    "a transposed view": through_a_transposed_view,
    "a part": through_a_part,
    "no gradient": of_no_gradient,
    "constants": of_constants,
    "sum": lambda h: tensor.zeros((2,)).__iadd__(h),
    "copy_": lambda h: tensor.zeros((2,)).copy_(h),
    "fill_": lambda h: tensor.zeros((2,)).fill_(h.sum()),
    "copy_from": lambda h: [out := tensor.zeros((2,)), out.copy_from(h * 2)][0],
    "index_add_": lambda h: tensor.zeros((4,)).index_add_(0, from_numpy(np.array([1, 1])), h),
    "masked": lambda h: [out := tensor.zeros((2,)), out.__setitem__(out < 1, h.sum())][0],
}


@pytest.mark.parametrize("name", WAYS)
def test_gradients_are_those_of_differences(name):
    def loss(array):
        h = from_numpy(array)
        h.requires_grad = h.stores_grad = True
        made = autograd.reduce_sum(WAYS[name](h) ** 2 * 0.5)
        return made, h

    autograd.training = True
    at = np.array([1.0, 2.0])
    made, h = loss(at)
    made.backward()
    for i, step in enumerate(np.eye(2) * 1e-4):
        slope = (float(loss(at + step)[0]) - float(loss(at - step)[0])) / 2e-4
        assert abs(float(h.grad[i]) - slope) < 1e-2 * max(1, abs(slope))


class Recurrent(module.Module):
    """Writes its states into one tensor, and keeps the last, and a sum, in attributes."""

    def __init__(self):
        super().__init__()
        self.cell, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.last, self.seen = tensor.zeros((2, 3)), tensor.zeros((2, 3))

    def forward(self, x):
        out, h = tensor.zeros((4, 2, 3)), tensor.zeros((2, 3))
        for t in range(4):
            h = autograd.tanh(self.cell(x[t] + h))
            out[t] = h
        self.last[:] = h
        self.seen += h
        return out

    def train_one_batch(self, x):
        loss = autograd.reduce_mean(self.forward(x) ** 2)
        self.optimizer(loss)
        return loss


def test_steps_that_write_their_results_in_turn():
    """What was there before the step takes values, and no gradients: the next step begins anew."""
    losses, states = [], []
    x = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    for use_graph in (False, True):
        tensor.zeros(()).device.set_seed(0)
        model = Recurrent()
        model.compile([from_numpy(x)], is_train=True, use_graph=use_graph)
        losses.append([float(model(from_numpy(x))) for _ in range(6)])
        states.append({name: one.to_numpy() for name, one in model.get_states().items()})
        assert not use_graph or replays(model) > 2
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    for name, one in states[0].items():
        np.testing.assert_array_equal(one, states[1][name])


class Running(layer.Layer):
    """Makes its state at the first call, which may be in a step, and writes values into it."""

    def initialize(self, x):
        self.mean = tensor.zeros((x.shape[1],))

    def forward(self, x):
        self.mean *= 0.9
        self.mean += 0.1 * x.mean(0)
        self.mean[0] = x.sum()
        return x - self.mean


def test_state_that_the_first_step_makes_takes_values_alone():
    x = from_numpy(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
    linear, running, optimizer = layer.Linear(3), Running(), opt.SGD(0.1)
    autograd.training = True
    for _ in range(3):
        optimizer(autograd.reduce_mean(running(linear(x)) ** 2))
    assert running.mean._creator is None


def test_steps_of_other_threads_do_not_end_this_one():
    h = from_numpy(np.array([1.0, 2.0], np.float32))
    h.requires_grad = h.stores_grad = True
    autograd.training = True
    out = tensor.zeros((2,))
    other = threading.Thread(target=begin_step)
    other.start()
    other.join()
    out[:] = h * 3
    autograd.reduce_sum(out).backward()
    assert h.grad.tolist() == [3, 3]
