"""Methods that programs for SINGA override, which are called as SINGA calls them."""

import copy

import numpy as np
import pytest
from singa_rs import GraphError, dist
from singa_rs.compat.singa import autograd, layer, model, opt, tensor
from singa_rs.compat.singa import singa_wrap as singa

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def training():
    autograd.training = True
    yield
    autograd.training = False


def parameter(*values):
    return tensor.Tensor(data=np.array(values, np.float32), stores_grad=True)


def given(*shape):
    return tensor.from_numpy(RNG.standard_normal(shape).astype(np.float32))


# ---- cells ---------------------------------------------------------------------------------------


class Adding(layer.RNN):
    def step_forward(self, x, h, Wx, Wh, b):
        return autograd.add(autograd.matmul(x, Wx), h)


class Clipped(layer.LSTM):
    def step_forward(self, x, h, c):
        h, c = super().step_forward(x, h, c)
        return h, autograd.clip(c, -0.01, 0.01)


class Cell(model.Model):
    def __init__(self, cell, state):
        super().__init__()
        self.cell, self.state, self.optimizer = cell, state, opt.SGD(lr=0.1)

    def forward(self, *xs):
        return self.cell(xs, self.state)

    def train_one_batch(self, *xs):
        found = self.forward(*xs)
        loss = autograd.mse_loss(found[1], tensor.zeros(found[1].shape))
        self.optimizer(loss)
        return found[-1]


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("is_given", [False, True])
def test_a_step_of_ones_own_is_called_for_each_step(graph, is_given):
    h0 = tensor.zeros((2, 4)) if is_given else None
    xs = [given(2, 3) for _ in range(3)]
    net = Cell(Adding(3, 4), h0)
    net.compile(xs, True, graph, False)
    want = sum(x.numpy() for x in xs) @ net.cell.Wx.numpy()
    np.testing.assert_allclose(net(*xs).numpy(), want, rtol=1e-5, atol=1e-6)
    assert (net(*xs).numpy() != want).any()  # it learns
    net = Cell(Clipped(3, 4), (h0, tensor.zeros((2, 1))) if is_given else None)
    net.compile(xs, True, graph, False)
    for _ in range(3):
        assert 0 < np.abs(net(*xs).numpy()).max() <= np.float32(0.01)


def test_a_step_that_one_cell_is_given():
    cell, x = layer.RNN(3, 4), given(2, 3)
    cell([x])
    cell.step_forward = lambda x, h, *weights: h + 1
    ys, h = cell([x, x])
    assert h.numpy().tolist() == np.full((2, 4), 2).tolist() and len(ys) == 2


# ---- parameters ----------------------------------------------------------------------------------


class Own(layer.Layer):
    """A layer with SINGA's own way of naming parameters."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    def initialize(self, x):
        self.W = tensor.Tensor((x.shape[1], self.units), stores_grad=True).gaussian(0, 0.5)

    def forward(self, x):
        return autograd.matmul(x, self.W)

    def get_params(self):
        return {self.W.name: self.W}

    def set_params(self, parameters):
        self.W.copy_from(parameters[self.W.name])


class Heads(model.Model):
    def __init__(self):
        super().__init__()
        self.head, self.other = Own(3), Own(2)

    def forward(self, x):
        return self.head(x)


def test_a_layer_that_was_not_called_is_left_out(tmp_path):
    net = Heads()
    net.compile([given(4, 5)], True, True, False)
    assert list(net.get_params()) == list(net.get_states()) == ["head.W"]
    net.set_params({"head.W": np.ones((5, 3), np.float32)})
    net.save_states(str(tmp_path / "states.zip"))
    assert net.head.W.numpy().sum() == 15


class Tuned(model.Model):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.out = layer.Linear(3), layer.BatchNorm2d(), layer.Linear(2)
        self.optimizer = opt.SGD(lr=0.5)

    def forward(self, x):
        return self.out(self.norm(self.linear(x)))

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        self.optimizer(loss)
        return loss


def frozen(net, flag):
    for name, one in net.get_params().items():
        if name.startswith("linear"):
            one.requires_grad = one.stores_grad = not flag


@pytest.mark.parametrize("graph", [False, True])
def test_a_frozen_parameter_stays_a_parameter(graph, tmp_path):
    net, x, y = Tuned(), given(4, 3), tensor.from_numpy(np.array([0, 1, 0, 0], np.int32))
    net.compile([x], True, graph, False)
    names = list(net.get_params())
    assert len(names) == 6 and not any("running" in name for name in names)
    frozen(net, True)
    assert list(net.get_params()) == names and len(net.get_states()) == 8
    assert list(copy.deepcopy(net).get_params()) == names
    net.set_params({"linear.W": np.full((3, 3), 0.5, np.float32)})
    moved = []
    for flag in (True, False, True):
        frozen(net, flag)
        before = {name: one.numpy() for name, one in net.get_params().items()}
        for _ in range(3):
            net(x, y)
        moved.append({n for n, one in net.get_params().items() if (one.numpy() != before[n]).any()})
    assert "linear.W" in moved[1] and "out.W" in moved[0] & moved[1] & moved[2]
    assert not any(name.startswith("linear") for name in moved[0] | moved[2])
    net.save_states(str(tmp_path / "states.zip"))
    other = Tuned()
    other.compile([x], True, graph, False)
    other.load_states(str(tmp_path / "states.zip"))
    np.testing.assert_array_equal(other.linear.W.numpy(), net.linear.W.numpy())


def test_a_parameter_that_is_frozen_from_the_beginning():
    class Scale(layer.Layer):
        def __init__(self):
            super().__init__()
            self.factor = layer.Parameter([1.0, 2.0], requires_grad=False)
            self.state = tensor.ones((2,))

    one = Scale()
    assert list(one.get_params()) == ["factor"] and list(one.get_states()) == ["factor", "state"]
    assert not one.factor.stores_grad and not one.factor.requires_grad


# ---- operators -----------------------------------------------------------------------------------


class Through(autograd.Sign):
    def backward(self, dy):
        return dy


class Both(autograd.Sign):
    def forward(self, x):
        assert callable(x.shape)
        return singa.MultFloat(singa.Sign(x), 2.0)

    def backward(self, dy):
        self.seen = dy
        return singa.MultFloat(dy, 2.0)


class Doubled(autograd.Sigmoid):
    def backward(self, dy):
        return singa.MultFloat(super().backward(dy), 2.0)


class Forward(autograd.Sigmoid):
    def forward(self, x):
        return singa.Sigmoid(x)


class Tenfold(autograd.MeanSquareError):
    def backward(self, dy=1.0):
        return singa.MultFloat(super().backward(dy), 10.0)


class Counted(autograd.Shape):
    def forward(self, x):
        return singa.MultFloat(x, 3.0)

    def backward(self, dy):
        return singa.MultFloat(dy, 5.0)


SLOPE = 1 / (1 + np.exp(-0.5)) * (1 - 1 / (1 + np.exp(-0.5)))


@pytest.mark.parametrize(
    ("op", "want"), [(Through, 1), (Both, 2), (Doubled, 2 * SLOPE), (Forward, SLOPE), (Counted, 5)]
)
def test_a_backward_of_ones_own_is_used(op, want):
    x, y = parameter(0.5, 0.5), None
    node = op()
    for _ in range(2):  # gradients that add up, in memory that the operator may hold
        made = node(x)[0]
        y = made if y is None else autograd.add(y, made)
    grad = autograd.gradients(autograd.reduce_sum(y))[x]
    np.testing.assert_allclose(grad.numpy(), 2 * want, rtol=1e-5)
    with pytest.raises(GraphError, match="again"):
        autograd.gradients(autograd.reduce_sum(op()(x)[0]), xs=[x], create_graph=True)


def test_a_loss_of_ones_own():
    x = parameter([-1, 2])
    loss = Tenfold(tensor.zeros((1, 2)))(x)[0]
    np.testing.assert_allclose(loss.creator.backward().numpy(), [[-10, 20]])
    np.testing.assert_allclose(autograd.gradients(loss)[x].numpy(), [[-10, 20]])


@pytest.mark.parametrize("graph", [False, True])
def test_a_binarised_layer_learns(graph):
    class Binary(model.Model):
        def __init__(self):
            super().__init__()
            self.l, self.optimizer = layer.Linear(2), opt.SGD(lr=0.1)

        def forward(self, x):
            return Through()(self.l(x))[0]

        def train_one_batch(self, x, t):
            loss = autograd.mse_loss(self.forward(x), t)
            self.optimizer(loss)
            return loss

    net, x, t = Binary(), tensor.ones((2, 3)), tensor.full((2, 2), 3.0)
    net.compile([x], True, graph, False)
    for _ in range(4):
        before, want = net.l.W.numpy(), np.sign((x @ net.l.W + net.l.b).numpy()) - 3
        net(x, t)
        slope = 0.1 * x.numpy().T @ (2 * want / want.size)
        np.testing.assert_allclose(net.l.W.numpy(), before - slope, rtol=1e-5)


# ---- optimizers ----------------------------------------------------------------------------------


class Limited(opt.SGD):
    def call(self, loss):
        for p, g in autograd.backward(loss):
            self.apply(p.name, p, autograd.clip(g, -0.1, 0.1))


@pytest.mark.parametrize("how", ["__call__", "backward_and_update"])
def test_a_call_of_ones_own(how):
    w, optimizer = parameter(5, -5), Limited(lr=1.0)
    getattr(optimizer, how)(autograd.mse_loss(w, tensor.zeros((2,))))
    np.testing.assert_allclose(w.numpy(), [4.9, -4.9])
    assert optimizer.step_counter.item() == 1


class Halved(opt.DistOpt):
    def update(self, param, grad):
        grad *= 0.5
        super().update(param, grad)


class Told(opt.DistOpt):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []

    def all_reduce(self, tensor):
        self.calls.append("all_reduce")
        super().all_reduce(tensor)

    def fused_all_reduce(self, tensor, send=True):
        self.calls.append(len(tensor))
        super().fused_all_reduce(tensor, send)

    def all_reduce_half(self, tensor):
        self.calls.append("half")
        super().all_reduce_half(tensor)

    def wait(self):
        self.calls.append("wait")
        super().wait()


WAYS = ["__call__", "backward_and_update", "backward_and_update_half", "backward_and_sparse_update"]


def halved(how):
    w = parameter(5, -5)
    getattr(Halved(opt.SGD(lr=1.0)), how)(autograd.mse_loss(w, tensor.zeros((2,))))
    return w.numpy()


@pytest.mark.parametrize("how", WAYS)
def test_an_update_of_ones_own(how):
    np.testing.assert_allclose(halved(how), [2.5, -2.5])


def told(kind, how):
    """What was called, and the parameters, with a loss that differs among ranks."""
    rank = dist.rank()
    autograd.training = True
    params = [parameter(1, 2), parameter(3), parameter(4, 5, 6)]
    optimizer = kind(opt.SGD(lr=0.5))
    loss = sum(autograd.reduce_sum(p * p) for p in params) * (rank + 1.0)
    getattr(optimizer, how)(loss, threshold=2)
    return getattr(optimizer, "calls", []), [p.numpy() for p in params]


@pytest.mark.usefixtures("quick_start")
@pytest.mark.parametrize("how", [*WAYS[1:3], "backward_and_partial_update"])
def test_exchanges_of_ones_own(how):
    own, plain = (dist.spawn(told, 2, args=(kind, how)) for kind in (Told, opt.DistOpt))
    for (calls, made), (_, want) in zip(own, plain, strict=True):
        assert "wait" in calls and len(calls) > 1, calls
        for one, other in zip(made, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-2 if "half" in how else 1e-6)


def test_ranks_that_divide_refuse_them():
    optimizer = Halved(opt.SGD(lr=1.0), shard=1)
    with pytest.raises(ValueError, match="shard=1 and methods"):
        optimizer(autograd.mse_loss(parameter(5, -5), tensor.zeros((2,))))
