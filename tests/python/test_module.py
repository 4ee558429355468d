"""Modules: names of parameters, modes, calls, summary."""

import copy
import threading
import time
import warnings
from collections import OrderedDict

import numpy as np
import pytest
from singa_rs import autograd, device, layer, model, module, opt, tensor
from singa_rs.tensor import Tensor

IMAGE = np.ones((2, 3, 6, 6), np.float32)
ROW = np.ones((2, 3), np.float32)


def names(one):
    return list(one.get_params())


class Block(layer.Layer):
    def __init__(self, width=3):
        super().__init__()
        self.conv = layer.Conv2d(width, 3, padding=1, bias=False)
        self.norm = layer.BatchNorm2d()

    def forward(self, x):
        return self.norm(self.conv(x))


def chain(build, x=IMAGE):
    """A module that `build(self)` gives a way of computing; called once."""

    class Chain(module.Module):
        def __init__(self):
            super().__init__()
            self.compute = build(self)

        def forward(self, x):
            return self.compute(x)

    made = Chain()
    made.eval()
    made(x)
    return made


# ---- names -------------------------------------------------------------------------------------


def test_nested_attributes():
    def build(self):
        self.blk1, self.blk2 = Block(), Block()
        self.fc = layer.Linear(2)
        flat = layer.Flatten()
        return lambda x: self.fc(flat(self.blk2(self.blk1(x))))

    made = chain(build)
    want = [f"{b}.{t}" for b in ("blk1", "blk2") for t in ("conv.W", "norm.scale", "norm.bias")]
    assert names(made) == [*want, "fc.W", "fc.b"]
    assert [p.name for p in made.get_params().values()] == names(made)
    assert "blk1.norm.running_mean" in made.get_states()
    assert names(made.blk1) == want[:3]


def test_lone_layer_has_bare_names():
    block = Block()
    block(Tensor(data=IMAGE))
    assert names(block) == ["conv.W", "norm.scale", "norm.bias"]


def test_lists_tuples_and_dictionaries():
    def build(self):
        self.blocks = [Block(), Block()]
        self.pair = (layer.Conv2d(3, 1, bias=False), layer.ReLU())
        self.heads = {"left": layer.Conv2d(2, 1, bias=False), "deep": [layer.Conv2d(1, 1)]}
        self.later = []
        self.later.append(layer.Conv2d(3, 1, bias=False))

        def compute(x):
            for one in (*self.blocks, *self.pair, *self.later):
                x = one(x)
            return self.heads["left"](x), self.heads["deep"][0](x)

        return compute

    assert names(chain(build)) == [
        *(f"blocks.{i}.{t}" for i in (0, 1) for t in ("conv.W", "norm.scale", "norm.bias")),
        "pair.0.W",
        "heads.left.W",
        "heads.deep.0.W",
        "heads.deep.0.b",
        "later.0.W",
    ]


def test_closures():
    def build(self):
        first, second, relu = layer.Conv2d(3, 1), layer.Conv2d(3, 1), layer.ReLU()
        norm = layer.BatchNorm2d()
        return lambda x: norm(second(relu(first(x))))

    want = ["Conv2d_0.W", "Conv2d_0.b", "Conv2d_1.W", "Conv2d_1.b"]
    assert names(chain(build)) == [*want, "BatchNorm2d_0.scale", "BatchNorm2d_0.bias"]


def test_closures_made_by_a_function():
    def block():
        conv = layer.Conv2d(3, 1, bias=False)
        return lambda x: conv(x)

    def build(self):
        self.steps = [block(), block()]
        return lambda x: self.steps[1](self.steps[0](x))

    assert names(chain(build)) == ["Conv2d_0.W", "Conv2d_1.W"]


def test_layers_from_outside_belong_to_who_calls_them():
    conv, used = layer.Conv2d(3, 1, bias=False), layer.Conv2d(3, 1, bias=False)
    used(Tensor(data=IMAGE))
    made = chain(lambda self: lambda x: used(conv(x)))
    assert sorted(names(made)) == ["Conv2d_0.W", "Conv2d_1.W"]
    assert {id(p) for p in made.get_params().values()} == {id(conv.W), id(used.W)}


def test_layers_in_a_helper_object():
    class Helper:
        def __init__(self):
            self.conv = layer.Conv2d(3, 1, bias=False)

    def build(self):
        self.helper = Helper()
        return lambda x: self.helper.conv(x)

    assert names(chain(build)) == ["Conv2d_0.W"]


def test_register_layers():
    def build(self):
        blocks = [Block(), Block()]
        self.register_layers(*blocks)
        self.register_layers(OrderedDict(stem=layer.Conv2d(3, 1, bias=False)))
        return lambda x: blocks[1](blocks[0](self.stem(x)))

    made = chain(build)
    assert names(made)[0] == "Block_0.conv.W" and names(made)[-1] == "stem.W"
    assert made.Block_1 is made.compute.__closure__[0].cell_contents[1]
    with pytest.raises(ValueError, match="Block_0"):
        made.register_layers(Block())


def test_registered_name_wins_over_a_list():
    def build(self):
        self.blocks = [layer.Conv2d(3, 1, bias=False)]
        self.register_layers(*self.blocks)
        return lambda x: self.blocks[0](x)

    assert names(chain(build)) == ["Conv2d_0.W"]


def test_sequential():
    def build(self):
        self.seq = layer.Sequential(layer.Conv2d(3, 1), autograd.relu, layer.BatchNorm2d())
        return self.seq

    made = chain(build)
    want = ["compute.0.W", "compute.0.b", "compute.2.scale", "compute.2.bias"]
    assert sorted(names(made)) == sorted(w.replace("compute", "seq") for w in want)
    assert len(made.seq) == 3 and made.seq[2] is list(made.seq)[2]
    named = layer.Sequential({"a": layer.Linear(2), "b": layer.Linear(1)})
    named(Tensor(data=ROW))
    assert names(named) == ["a.W", "a.b", "b.W", "b.b"]


def test_attribute_is_replaced():
    def build(self):
        self.fc = layer.Linear(2)
        return lambda x: self.fc(x)

    made = chain(build, ROW)
    old = made.fc
    made.fc = layer.Linear(5)
    assert made(ROW).shape == (2, 5)
    assert made.get_params()["fc.W"].shape == (3, 5) and len(names(made)) == 2
    made.register_layers({"extra": old})
    assert "extra.W" in names(made)
    made.extra = layer.Linear(1)
    assert "extra.W" not in names(made) and made.extra.out_features == 1
    del made.extra
    assert not hasattr(made, "extra")


def test_shared_layers_and_tensors_appear_once():
    def build(self):
        self.a = layer.Linear(3)
        self.b = self.a
        self.c = layer.Linear(3, bias=False)
        return lambda x: self.c(self.b(self.a(x)))

    made = chain(build, ROW)
    made.c.W = made.a.W
    assert names(made) == ["a.W", "a.b"]
    assert names(made.c) == ["a.W"]


def test_layer_shared_by_two_models_has_a_name_in_each():
    shared = layer.Linear(3)

    def build(name):
        def inner(self):
            setattr(self, name, shared)
            return lambda x: shared(x)

        return inner

    first, second = chain(build("left"), ROW), chain(build("right"), ROW)
    assert names(first) == ["left.W", "left.b"]
    assert names(second) == ["right.W", "right.b"]


def test_module_in_module():
    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.inner = chain(lambda self: layer.Linear(4), ROW)
            self.fc = layer.Linear(2)

        def forward(self, x):
            return self.fc(self.inner(x))

    outer = Outer()
    outer(ROW)
    assert names(outer) == ["inner.compute.W", "inner.compute.b", "fc.W", "fc.b"]


def test_references_to_the_parent_and_recursive_lists():
    def build(self):
        self.fc = layer.Linear(2)
        self.fc.parent = self
        self.loop = [self.fc]
        self.loop.append(self.loop)
        return lambda x: self.fc(x)

    assert names(chain(build, ROW)) == ["fc.W", "fc.b"]


def test_copies_are_independent():
    made = chain(lambda self: layer.Linear(2), ROW)
    other = copy.deepcopy(made)
    assert names(other) == names(made)
    other.compute.W.set_value(7)
    assert (made.compute.W.to_numpy() != 7).all()


def test_copies_of_helper_objects():
    def build(self):
        self.helper = type("Helper", (), {"fc": None})()
        self.helper.fc = layer.Linear(2)
        return layer.ReLU()

    class Net(type(chain(lambda self: layer.ReLU()))):
        def forward(self, x):
            return self.helper.fc(x)

    made = chain(build, ROW)
    made.__class__ = Net
    made(ROW)
    other = copy.deepcopy(made)
    assert names(other) == names(made) == ["Linear_0.W", "Linear_0.b"]
    assert other.helper.fc.W is other.get_params()["Linear_0.W"] is not made.helper.fc.W


def test_functions_that_hold_layers_are_not_copied():
    def build(self):
        fc = layer.Linear(2)
        return lambda x: fc(x)

    with pytest.raises(TypeError, match="compute is a function"):
        copy.deepcopy(chain(build, ROW))


# ---- user layers -------------------------------------------------------------------------------


class Scale(layer.Layer):
    def __init__(self):
        self.early = 3  # before super().__init__()
        super().__init__()
        self.calls = 0

    def initialize(self, x):
        self.calls += 1
        self.factor = Tensor((1,), x.device, x.dtype, stores_grad=True)
        self.factor.set_value(2)
        self.seen = Tensor((1,), x.device, x.dtype)
        self.product = self.factor * x  # would be recorded outside

    def forward(self, x):
        self.result = autograd.mul(x, self.factor)
        return self.result


def test_user_layer():
    one = Scale()
    assert not one._initialized and one.early == 3
    with autograd._training_scope(True):
        one(Tensor(data=ROW))
        one(Tensor(data=ROW))
    assert one._initialized and one.calls == 1
    assert names(one) == ["factor"] and one.factor.name == "factor"
    assert one.product.is_dummy() and not one.result.is_dummy()
    assert one.product.name == "product" and one.result.name.startswith("Mul#")
    assert list(one.get_states()) == ["factor", "seen", "product"]  # `result` is made in forward
    one.initialize(Tensor(data=ROW))
    assert one.calls == 2


def test_initialize_by_hand_comes_once():
    one = Scale()
    one.initialize(Tensor(data=ROW))
    one(Tensor(data=ROW))
    assert one.calls == 1


def test_failed_initialisation_is_tried_again():
    dense = layer.Linear(2)
    with pytest.raises(TypeError):
        dense("x")
    assert not dense._initialized
    assert dense(Tensor(data=ROW)).shape == (2, 2)


def test_threads_share_one_initialisation():
    class Slow(Scale):
        def initialize(self, x):
            time.sleep(0.02)
            super().initialize(x)

    one, seen = Slow(), []
    threads = [
        threading.Thread(target=lambda: seen.append((one(Tensor(data=ROW)), one.factor)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.calls == 1 and all(factor is one.factor for _, factor in seen) and len(seen) == 4


def test_inputs_in_a_list():
    class Pair(layer.Layer):
        def initialize(self, xs):
            self.W = Tensor(xs[0].shape, xs[0].device, stores_grad=True)

        def forward(self, xs):
            return xs[0] + xs[1] + self.W

    pair = Pair()
    assert pair([Tensor((2, 3)), Tensor((2, 3))]).shape == (2, 3)


def test_methods_of_a_class_that_is_no_layer():
    class Mixin:
        def initialize(self, x):
            self.W = Tensor((3,), stores_grad=True)

        def forward(self, x):
            return x + self.W

    class Mixed(Mixin, module.Module):
        pass

    class Again(Mixed):
        def forward(self, x):
            return super().forward(x)

    for cls in (Mixed, Again):
        mixed = cls()
        assert mixed(ROW).shape == (2, 3) and names(mixed) == ["W"]


def test_given_name_of_a_tensor_is_kept():
    class Named(layer.Layer):
        def __init__(self):
            super().__init__()
            self.hx = Tensor((1,), name="memory", stores_grad=True)

        def forward(self, x):
            return x

    assert Named().hx.name == "memory" and names(Named()) == ["hx"]


def test_user_get_and_set_states():
    class Recurrent(layer.Layer):
        def __init__(self):
            super().__init__()
            self.fc = layer.Linear(2)
            self.hold = lambda: self.hx
            object.__setattr__(self, "hx", Tensor((2,), name="hx"))

        def forward(self, x):
            return self.fc(x)

        def get_states(self):
            states = super().get_states()
            states["my." + self.hx.name] = self.hx
            return states

        def set_states(self, states):
            self.hx.copy_from(states["my." + self.hx.name])
            super().set_states(states)

    made = chain(lambda self: Recurrent(), ROW)
    states = {name: np.full(t.shape, 5.0) for name, t in made.get_states().items()}
    assert "my.hx" in states
    made.set_states(states)
    assert all((t.to_numpy() == 5).all() for t in made.get_states().values())


def test_device_and_dtype_checks():
    one = layer.ReLU()
    a, b = Tensor((2,), dtype=tensor.float64), Tensor((2,))
    one.device_check(a, b)
    one.dtype_check(a, b)
    assert b.dtype == tensor.float64
    with pytest.raises(TypeError, match="ReLU"):
        one.dtype_check(Tensor((2,), dtype=tensor.int32), b)


def test_layer_without_forward():
    with pytest.raises(NotImplementedError, match="Layer"):
        layer.Layer()(1)


# ---- modes and calls ---------------------------------------------------------------------------


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


@pytest.fixture(autouse=True)
def _training_is_off_afterwards():
    yield
    autograd.training = False
    module.Module._told = None


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


def test_plain_forward_goes_by_autograd_training_until_told():
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


def test_inner_module_follows_the_outer_one_unless_told():
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


def test_loss_attribute_is_no_old_method():
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
