"""Which tensors optimizers train, and the names of moments: parameters that are replaced, tied or
copied, and inputs whose gradients are asked for."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from singa_rs import autograd, layer, module, notices, opt, tensor
from singa_rs.tensor import Tensor

MODES = pytest.mark.parametrize("use_graph", [False, True])
X, Y = np.ones((4, 2), np.float32), np.full((4, 1), 5, np.float32)


def parameter(value, shape=(2, 1)):
    return layer.Parameter(tensor.from_numpy(np.full(shape, value, np.float32)))


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def compiled(cls, use_graph, *args):
    net = cls(*args)
    net.compile([X], use_graph=use_graph)
    return net


# ---- parameters that are replaced ----------------------------------------------------------------


class Headed(module.Module):
    def __init__(self):
        super().__init__()
        self.head, self.optimizer = parameter(0.5), opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return x @ self.head

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


@MODES
def test_a_new_parameter_takes_the_name_of_the_one_that_is_gone(use_graph, tmp_path):
    net = compiled(Headed, use_graph)
    for _ in range(5):
        net(X, Y)
    net.head = parameter(-1.0)
    for _ in range(2):
        net(X, Y)
    net.save(tmp_path / "n", state={"o": net.optimizer})
    other = compiled(Headed, use_graph)
    other.load(tmp_path / "n", state={"o": other.optimizer})
    assert list(net.optimizer.moments) == list(other.optimizer.get_states()["moments"]) == ["head"]
    for _ in range(2):
        net(X, Y), other(X, Y)
    assert net.head.to_numpy().tobytes() == other.head.to_numpy().tobytes()


def test_moments_of_replaced_parameters_are_dropped():
    net = compiled(Headed, False)
    for _ in range(8):
        net.head = parameter(0.1)
        net(X, Y)
    assert len(net.optimizer._moments._slots) == 1
    kept, net.head = net.head, parameter(0.2)  # which the program still has
    net(X, Y)
    assert list(net.optimizer.moments) == ["head", "head#2"]
    del kept
    assert list(net.optimizer.moments) == ["head"]


def test_moments_stay_with_tensors_that_are_made_anew_for_each_step():
    """Other objects on the same memory, which nothing but the optimizer keeps."""
    blocks, optimizer = [Tensor(data=[1.0]), Tensor(data=[1.0])], opt.SGD(0.1, momentum=0.5)
    for _ in range(3):
        for name, block in zip(("a", "a"), blocks, strict=True):
            optimizer.apply(name, block.alias(), Tensor(data=[1.0]))
    np.testing.assert_allclose(optimizer.moments["a"].to_numpy(), [1.75])
    np.testing.assert_allclose(optimizer.moments["a#2"].to_numpy(), [1.75])


# ---- tied parameters -----------------------------------------------------------------------------


class Tied(module.Module):
    def __init__(self, optimizer):
        super().__init__()
        self.body, self.head, self.optimizer = layer.Linear(2), layer.Linear(2), optimizer

    def forward(self, x):
        return self.head(autograd.tanh(self.body(x)))

    def train_one_batch(self, x):
        loss = self.forward(x).square().mean()
        self.optimizer(loss)
        return loss


def tied(optimizer, use_graph):
    net = compiled(Tied, use_graph, optimizer)
    net.set_params({name: np.full(p.shape, 0.3, "f4") for name, p in net.get_params().items()})
    net.head.W = net.body.W
    return net


@MODES
def test_moments_of_tied_parameters_continue(use_graph, tmp_path):
    net = tied(opt.SGD(0.1, momentum=0.9), use_graph)
    for _ in range(4):
        net(X)
    net.save(tmp_path / "n", state={"o": net.optimizer})
    other = tied(opt.SGD(0.1, momentum=0.9), use_graph)
    other.load(tmp_path / "n", state={"o": other.optimizer})
    for _ in range(3):
        net(X), other(X)
    assert net.body.W.to_numpy().tobytes() == other.body.W.to_numpy().tobytes()
    names = {"body.W", "body.b", "head.b"}
    assert {*net.optimizer.moments} == {*other.optimizer.moments} == names == {*net.get_params()}


@MODES
def test_groups_of_tied_parameters_do_not_change(use_graph):
    found = []
    for look in (False, True):
        optimizer = opt.SGD(0.1)
        optimizer.group("head", lr=0.0)
        net = tied(optimizer, use_graph)
        for i in range(4):
            if look and i == 2:
                net.get_params()
            net(X)
        found.append(net.body.W.to_numpy().tobytes())
    assert found[0] == found[1]


def test_the_name_of_a_tie_is_that_of_the_first_path():
    net = compiled(Tied, False, opt.SGD(0.1, momentum=0.9))
    net.body.W = net.head.W
    assert net.head.W.name == "body.W"
    net(X)
    net.body.W = parameter(0.0, (2, 2))  # no tie any longer
    assert (net.body.W.name, net.head.W.name) == ("body.W", "head.W")
    net(X)
    assert set(net.optimizer.moments) == set(net.get_params())


# ---- gradients that a program asks for -----------------------------------------------------------


class Penalised(module.Module):
    """A gradient penalty, as in PyTorch."""

    def __init__(self, how):
        super().__init__()
        self.w, self.optimizer, self.how = parameter(1.0), opt.Adam(0.1), how

    def forward(self, x):
        return autograd.tanh(x @ self.w)

    def train_one_batch(self, x):
        x = self.how(x)
        out = self.forward(x)
        (slope,) = autograd.gradients(out.sum(), [x], create_graph=True)
        loss = out.square().mean() + slope.square().sum() * 0.1
        self.optimizer(loss)
        return loss


def required(x):
    x = x.detach()
    x.requires_grad = True
    return x


@MODES
@pytest.mark.parametrize("how", [lambda x: x.detach().requires_grad_(), Tensor.requires_grad_])
def test_inputs_whose_gradients_are_asked_for_are_not_trained(how, use_graph):
    nets = [compiled(Penalised, use_graph, one) for one in (how, required)]
    given = [tensor.from_numpy(X) for _ in range(6)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in given:
            for net in nets:
                net(x)
    assert all((x.to_numpy() == X).all() for x in given)
    assert list(nets[0].optimizer.m) == ["w"]
    assert nets[0].w.to_numpy().tobytes() == nets[1].w.to_numpy().tobytes()


def test_what_a_layer_has_is_trained():
    net = compiled(Headed, False)
    net.head = Tensor(data=[[1.0], [1.0]]).requires_grad_()
    net(X, Y)
    assert "head" in net.optimizer.moments
    net.head.requires_grad_(False)
    net.head.requires_grad_()
    before = net.head.to_numpy()
    net(X, Y)
    assert (net.head.to_numpy() != before).all()


def test_a_tensor_with_a_name_of_its_own_is_trained():
    class Scaled(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(1)
            self.scale = Tensor(data=np.ones(1, np.float32), name="scale").requires_grad_()
            self.optimizer = opt.SGD(0.1)

        def forward(self, x):
            return self.fc(x) * self.scale

        def train_one_batch(self, x, y):
            self.optimizer(autograd.mse_loss(self.forward(x), y))

    net = compiled(Scaled, False)
    net(X, Y)
    assert net.scale.item() != 1 and "scale" in net.get_params()


@pytest.fixture
def training(monkeypatch):
    monkeypatch.setattr(autograd, "training", True)


def test_scripts_say_what_is_trained(training, monkeypatch):
    monkeypatch.setattr(notices, "_shown", set())
    asked, stored = Tensor(data=[1.0]).requires_grad_(), Tensor(data=[1.0], stores_grad=True)
    with pytest.raises(ValueError, match=r"requires_grad_\(\) was called.*stores_grad.*params="):
        opt.SGD(0.1)(asked.square())
    optimizer = opt.SGD(0.1)
    with pytest.warns(UserWarning, match=r"leaves out a tensor of shape \(1,\)"):
        optimizer((asked * stored).sum())  # that it has left out before
    assert asked.item() == 1.0 and stored.item() < 1.0
    stored.requires_grad_(False)
    stored.requires_grad_()
    before = stored.item()
    optimizer((asked * stored).sum())
    assert asked.item() == 1.0 and stored.item() < before
    opt.SGD(0.1, params=asked)((asked * stored).sum())
    assert asked.item() < 1.0
    before, asked.stores_grad = asked.item(), True
    optimizer((asked * stored).sum())
    assert asked.item() < before


# ---- names, values, identity ---------------------------------------------------------------------


def test_moments_of_namesakes_that_are_made_anew(training):
    found = []
    for make in (copy.copy, lambda x: x):
        a, b = (Tensor(data=np.ones(1, np.float32), name="w") for _ in range(2))
        optimizer, gradient = opt.SGD(0.1, momentum=0.9), Tensor(data=np.ones(1, np.float32))
        for _ in range(3):
            optimizer.apply("w", make(a), gradient)
            optimizer.apply("w", make(b), gradient)
        found.append((a.item(), b.item()))
    assert found[0] == found[1] and found[0][0] == found[0][1]


def test_optimizers_may_compare_by_value(training):
    class Valued(opt.SGD):
        def __eq__(self, other):
            return isinstance(other, Valued)

    optimizer = Valued(0.1)
    optimizer.lr.init_value = 0.5
    assert optimizer.lr_value.item() == 0.5


@MODES
def test_subclasses_of_constants_are_told_apart(use_graph):
    class Scaled(opt.Constant):
        def __init__(self, value, factor):
            super().__init__(value)
            self.factor = factor

        def call(self, step):
            return super().call(step) * self.factor

    net, stopped = compiled(Headed, use_graph), Scaled(0.1, 0.0)
    net.optimizer = opt.SGD(Scaled(0.1, 1.0))
    for _ in range(5):
        net(X, Y)
    net.optimizer.lr = stopped
    net(X, Y)
    before = net.head.to_numpy()
    net(X, Y)
    np.testing.assert_array_equal(net.head.to_numpy(), before)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, pickled])
def test_tensors_are_selected_by_identity_first(made, monkeypatch):
    params = [Tensor((1,), name=f"p{i}") for i in range(8)]
    optimizer = opt.SGD(0.1, params=params)
    optimizer.group(params[::2], lr=0.5)
    params, optimizer = made((params, optimizer))
    asked = []
    monkeypatch.setattr("singa_rs.opt.selection.is_same", lambda a, b: asked.append(b))
    for place, param in enumerate(params):
        assert optimizer.owns(param.name, param)
        owner = optimizer if place % 2 else optimizer._groups[0]
        assert optimizer.member(param.name, param) is owner
    assert {id(one) for one in asked} == set(map(id, params[1::2]))


@pytest.mark.parametrize("make", [dict.values, iter, set, lambda made: (one for one in made)])
def test_any_iterable_selects(make):
    w, given = parameter(1.0), {"a": 1, "b": 1}
    chosen = make({"w": w}) if make is dict.values else make(given)
    made = opt.SGD(0.1, params=chosen)
    assert made.owns("a", parameter(1.0)) == (make is not dict.values)
    assert made.owns("w", w) == (make is dict.values)


@pytest.mark.parametrize("wrong", [{"w": 1}, ["w"], {"w": 1}.values(), iter("w")])
def test_parameters_in_the_place_of_a_learning_rate(wrong):
    with pytest.raises(TypeError, match=r"Adam: lr: got .*, want a number; .*params="):
        opt.Adam(wrong)
