"""Arguments made by operations outside a recorded step, and operations on its results."""

from dataclasses import dataclass

import numpy as np
import pytest
from singa_rs import autograd, module, opt
from singa_rs.errors import GraphError
from singa_rs.tensor import Tensor, from_numpy

X = np.full((2, 3), 0.5, np.float32)


@pytest.fixture(autouse=True)
def training():
    yield
    autograd.training = False


def parameter(value=0.5):
    return Tensor(data=np.full(3, value, np.float32), stores_grad=True)


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.p = parameter()
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return x * self.p

    def train_one_batch(self, x):
        loss = autograd.reduce_mean(self.forward(x) ** 2).reshape((1,))
        self.optimizer(loss)
        return loss


class Unfinished(Net):
    """Returns a loss without running its backward pass."""

    def train_one_batch(self, x):
        return autograd.reduce_mean(self.forward(x) ** 2).reshape((1,))


class Carrying(Net):
    """Keeps a result of the step together with its history."""

    def __init__(self):
        super().__init__()
        self.h = None

    def train_one_batch(self, x):
        self.h = self.forward(x if self.h is None else x + self.h)
        loss = autograd.reduce_mean(self.h * self.h).reshape((1,))
        self.optimizer(loss)
        return loss


def compiled(kind=Net, use_graph=True):
    net = kind()
    net.compile([from_numpy(X)], use_graph=use_graph)
    return net


def test_gradients_flow_on_through_an_argument():
    made = []
    for use_graph in (True, False):
        net, outside = compiled(use_graph=use_graph), parameter(2.0)
        outside.name = "outside"
        for _ in range(4):
            net(from_numpy(X))
        for _ in range(3):
            net(from_numpy(X) * outside)
        net(from_numpy(X))
        made.append([net.p.to_numpy(), outside.to_numpy()])
    assert not np.array_equal(made[1][1], np.full(3, 2.0))
    np.testing.assert_array_equal(made[0], made[1])


def test_an_argument_made_of_no_parameters_is_replayed():
    net = compiled()
    for _ in range(4):
        net(from_numpy(X) * 2.0)
    assert len(net.graphs) == 1 and "replayed 2 times" in net.explain()


def test_a_gradient_back_through_a_replayed_step_is_an_error():
    net, weight = compiled(Unfinished), parameter()
    for _ in range(4):
        result = net(from_numpy(X))
        with pytest.raises(GraphError, match="ran as a graph"):
            list(autograd.backward(result + (weight * weight).sum()))
    loss = result.detach() + (weight * weight).sum()
    assert [p is weight for p, _ in autograd.backward(loss)] == [True]


@pytest.mark.parametrize("use_graph", [True, False])
def test_a_kept_tensor_is_detached_or_refused(use_graph):
    net = compiled(Carrying, use_graph)
    net(from_numpy(X))
    with pytest.raises(GraphError, match="backward"):
        net(from_numpy(X))


def test_what_a_plan_has_made_is_not_cut_off():
    net = compiled(Carrying)
    net.h = from_numpy(X)
    net.plan(from_numpy(X))
    assert not net.h._is_cut and net.h.to_numpy().tolist() == X.tolist()


class Resetting(Net):
    """A state that the caller resets."""

    def __init__(self):
        super().__init__()
        self.h = None

    def train_one_batch(self, x):
        self.h = x * 1.0 if self.h is None else self.h + x
        return self.h * 1.0


def test_a_state_that_was_reset_before_both_recordings():
    made = []
    for use_graph in (True, False):
        net, seen = compiled(Resetting, use_graph), []
        for reset in (True, True, False, False, False, True, False):
            if reset:
                net.h = None
            seen.append(net(from_numpy(X)).to_numpy()[0, 0])
            net.h = net.h.detach()
        made.append(seen)
    assert made[0] == made[1] == [0.5, 0.5, 1.0, 1.5, 2.0, 0.5, 1.0]


@dataclass
class Answer:
    out: Tensor


class Answering(Net):
    def train_one_batch(self, x):
        return Answer(super().train_one_batch(x))


def test_a_result_that_cannot_be_rebuilt_runs_eagerly():
    net, eager = compiled(Answering), compiled(Answering, use_graph=False)
    with pytest.warns(RuntimeWarning, match="a Answer that holds tensors"):
        for _ in range(6):
            assert net(from_numpy(X)).out.item() == eager(from_numpy(X)).out.item()
