"""Modules: modes, calls, summary."""

import copy
import gc
import warnings
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from chains import ROW, chain, names
from singa_rs import autograd, device, layer, model, module, opt
from singa_rs.layer.collect import states_of
from singa_rs.tensor import Tensor


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = layer.Linear(8, activation="RELU")
        self.drop = layer.Dropout(0.5)
        self.fc2 = layer.Linear(3)
        self.loss = layer.SoftMaxCrossEntropy()
        self.optimizer = opt.SGD(0.1, momentum=0.9)
        self.modes = []

    def forward(self, x):
        self.modes.append(autograd.training)
        return self.fc2(self.drop(self.fc1(x)))

    def train_one_batch(self, x, y, scale=1.0):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


X = np.random.default_rng(0).standard_normal((16, 5))
Y = np.arange(16) % 3


def test_training_call_with_arrays():
    net = Net()
    losses = [net(X, Y)[1] for _ in range(60)]
    assert losses[0].shape == (1,)
    assert losses[-1].to_numpy()[0] < 0.7 * losses[0].to_numpy()[0]
    assert net.modes == [True] * 60 and autograd.training is False
    assert sorted(net.optimizer.get_states()["moments"]) == sorted(names(net))


def test_parameters_are_the_same_objects():
    net = Net()
    net(X, Y)
    weight, before = net.get_params()["fc1.W"], net.fc1.W.to_numpy()
    net(X, Y)
    assert net.get_params()["fc1.W"] is weight is net.fc1.W
    assert (weight.to_numpy() != before).any()


def test_evaluation_call():
    net = Net()
    net(X, Y)
    net.eval()
    assert net.training is False and autograd.training is False
    assert net(X).shape == (16, 3)
    np.testing.assert_array_equal(net(X).to_numpy(), net(X).to_numpy())
    assert net.modes[1:] == [False] * 3
    net.train()
    assert net.training is True and autograd.training is True


def test_train_one_batch_by_name():
    net = Net()
    autograd.training = False
    _, loss = net.train_one_batch(X, Y, scale=2.0)
    assert loss.shape == (1,) and net.modes == [True]


class CallsForward(Net):
    def forward(self, x):
        return self.fc2(self.drop(self.fc1(x)))

    def logits(self, x):
        return self.forward(x)

    def train_one_batch(self, x, y):
        loss = self.loss(self.logits(x), y)
        self.optimizer(loss)
        return loss


class CallsItself(CallsForward):
    def logits(self, x):
        return self(x)


@pytest.mark.parametrize("use_graph", [False, True])
def test_a_step_may_call_the_module_itself(use_graph):
    """As PyTorch's programs do: within the step that is `forward`."""

    def losses(cls):
        device.get_default_device().set_seed(1)
        net = cls()
        net.compile([Tensor((16, 5))], use_graph=use_graph)
        made = [net(X.astype(np.float32), Y).item() for _ in range(5)]
        assert len(net.graphs) == use_graph
        return made

    assert losses(CallsItself) == losses(CallsForward)


def test_plain_forward_follows_autograd_training_until_train_or_eval():
    net = Net()
    net.forward(X)
    autograd.training = True
    net.forward(X)
    net.eval()
    net.forward(X)
    autograd.training = True
    net.forward(X)
    assert net.modes == [False, True, False, True]


def test_modes_of_two_models_live_side_by_side():
    teacher, student = Net(), Net()
    teacher.eval()
    student.train()
    for call in (teacher.__call__, teacher.forward):
        call(X)
    student.forward(X)
    assert teacher.modes == [False, False] and student.modes == [True]


def test_inner_module_follows_the_outer_one_by_default():
    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.inner = chain(lambda self: Mode(), ROW)
            self.fc = layer.Linear(2)

        def forward(self, x):
            return self.inner(self.fc(x))

    class Mode(layer.Layer):
        def forward(self, x):
            seen.append(autograd.training)
            return x

    seen = []
    outer = Outer()
    outer.eval()
    outer(ROW)
    outer.train()
    outer(ROW)
    outer.inner.eval()
    with pytest.warns(UserWarning, match="no gradient"):
        outer(ROW)
    assert seen[1:] == [False, True, False]


def test_arguments_pass_through():
    class Odd(module.Module):
        def forward(self, xs, flag, named=None):
            return xs, flag, named

    net = Odd()
    xs, flag, named = net([X, (X, "a")], "text", named={"k": X})
    assert isinstance(xs[0], Tensor) and isinstance(xs[1][0], Tensor) and xs[1][1] == "a"
    assert flag == "text" and isinstance(named["k"], Tensor)
    one = Tensor((1,))
    assert net(one, None)[0] is one


def test_old_loss_and_optim_methods():
    class Old(module.Module):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(3)
            self.sgd = opt.SGD(0.1)

        def forward(self, x):
            return self.fc(x)

        def loss(self, out, y):
            return autograd.softmax_cross_entropy(out, y)

        def optim(self, loss):
            self.sgd(loss)

    net = Old()
    net.train()
    out = net(X)
    with pytest.warns(DeprecationWarning, match="Old.loss"):
        loss = net.loss(out, Y)
    before = net.fc.W.to_numpy()
    with pytest.warns(DeprecationWarning, match="Old.optim"):
        net.optim(loss)
    assert (net.fc.W.to_numpy() != before).any()


def test_a_loss_beside_a_training_step_is_an_ordinary_method():
    class New(module.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)

        def forward(self, x):
            return self.fc(x)

        def loss(self, x, y):
            return autograd.softmax_cross_entropy(self.forward(x), y)

        def train_one_batch(self, x, y):
            self.optimizer(self.loss(x, y))

    net = New()
    net.compile([X], use_graph=True)
    before = net.fc.W.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.optimizer(net.loss(X, Y))
        net(X, Y)
    assert (net.fc.W.to_numpy() != before).any()


def test_loss_attribute_is_not_a_deprecated_method():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Net()(X, Y)


def test_device():
    net = Net()
    assert net.device == device.get_default_device()
    net(X, Y)
    net.to_device(net.device)
    assert net.device.id() == -1


def test_model_is_module():
    assert model.Model is module.Module


def test_summary():
    net = Net()
    assert "-" in net.summary()
    net(X, Y)
    table = net.summary().splitlines()
    row = next(line for line in table if line.startswith("fc1"))
    assert row.split() == ["fc1", "Linear", "(16,", "8)", "48"]
    assert table[-1] == f"{48 + 27} parameters"


def test_parameters_and_states_are_accounted():
    class Big(module.Module):
        def __init__(self):
            super().__init__()
            self.conv = layer.Conv2d(64, 3)
            self.norm = layer.BatchNorm2d()

        def forward(self, x):
            return self.norm(self.conv(x))

    before = device.get_default_device().memory()
    net = Big()
    net(Tensor((1, 64, 4, 4)))
    after = device.get_default_device().memory()
    want = sum(t.nbytes for t in net.get_params().values())
    assert after["parameters"] - before["parameters"] >= want
    assert after["states"] - before["states"] >= 2 * 4 * 64


# ---- models that compare by value ----------------------------------------------------------------


@dataclass
class Valued(module.Module):
    """Equal to every other one of its class, and without a hash."""

    width: int = 3

    def __post_init__(self):
        self.body, self.optimizer = layer.Linear(self.width), opt.SGD(0.1)

    def forward(self, x):
        return self.body(x)

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def test_models_that_compare_by_value(tmp_path):
    x, y = X.astype("float32"), np.ones((16, 3), np.float32)
    nets = [Valued(), Valued()]
    assert nets[0] == nets[1] and Valued.__hash__ is None
    nets[1].body = layer.Sequential(layer.Linear(9), layer.Linear(3))
    sizes = [net.plan(x, y).nodes for net in nets for _ in range(2)]
    assert sizes[0] == sizes[1] < sizes[2] == sizes[3]
    for net in nets:
        net.compile([x])
        with net.tap("body") as tap:
            net.fit((x, y), 2, validation=(x, y), loss=layer.MSELoss(), progress=False)
        assert net.summary() and net.explain() and net.graphs and tap is not None
        net.save(tmp_path / "net.onnx", {"sgd": net.optimizer})
        net.load(tmp_path / "net.onnx", state={"sgd": net.optimizer})
        copied = copy.deepcopy(net)
        assert all((a.to_numpy() == b.to_numpy()).all() for a, b in zip(
            copied.get_params().values(), net.get_params().values(), strict=True))  # fmt: skip


def test_the_device_is_that_of_the_first_state():
    def sine(inner):
        return lambda x: inner(x)

    class Odd(module.Module):
        def __init__(self):
            super().__init__()
            self.register_layers(layer.BatchNorm2d())
            self.parts = {"a": [layer.Linear(2)], "b": self}
            self.hidden, self.extra = sine(layer.Linear(3)), Tensor((2,))

        def forward(self, x):
            return self.hidden(self.parts["a"][0](x)) + 0 * self.BatchNorm2d_0(self.image).sum()

    net = Odd().eval()
    assert net.device is device.get_default_device()
    net.image = Tensor((1, 2, 3, 3))
    net(Tensor((2, 4)))
    want = [id(t) for t in net.get_states().values()]
    assert len(want) == 10 and [id(t) for t in states_of(net, set())] == want


def test_classes_that_were_warned_of_are_not_kept():
    class Plain(module.Module):
        def forward(self, x):
            return x

    with pytest.warns(UserWarning, match="Plain: called in training without a train_one_batch"):
        Plain()(Tensor((2,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Plain()(Tensor((2,)))
    gone = weakref.ref(Plain)
    del Plain
    gc.collect()
    assert gone() is None
