"""Modules: names of parameters and states."""

import copy
from collections import OrderedDict

import pytest
from chains import IMAGE, ROW, Block, chain, names
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor


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


class Halves(module.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.late = layer.Linear(3), layer.Linear(2)
        self.decoder = layer.Sequential(layer.BatchNorm1d(), layer.ReLU(), layer.Linear(2))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def test_parameters_below_a_path():
    model = Halves()
    model.compile([tensor.ones((4, 5))])
    norm = ["decoder.0.scale", "decoder.0.bias"]
    assert list(model.get_params("decoder")) == [*norm, "decoder.2.W", "decoder.2.b"]
    assert model.get_params(prefix="decoder.0").keys() == model.decoder.get_params("0").keys()
    assert list(model.decoder.get_params("decoder.0")) == norm
    assert len(model.get_states("decoder.0")) > 2 and model.get_params("decoder.1") == {}
    assert model.get_params("encoder.W")["encoder.W"] is model.encoder.W
    assert model.get_params("") == model.get_params()
    model.optimizer = opt.SGD(0.1, params=model.get_params("decoder"))


@pytest.mark.parametrize(
    ("prefix", "error", "message"),
    [
        ("dec", ValueError, "got 'dec', want one of decoder, decoder.0, .*, encoder, late"),
        ("late", ValueError, "got 'late', which has nothing yet; Linear: parameters are created"),
        (3, TypeError, "got 3 for prefix, want a str"),
    ],
)
@pytest.mark.parametrize("method", ["get_params", "get_states"])
def test_a_path_that_has_no_parameters(method, prefix, error, message):
    model = Halves()
    model.compile([tensor.ones((4, 5))])
    with pytest.raises(error, match=f"{method}: {message}"):
        getattr(model, method)(prefix)


@pytest.mark.parametrize("held", [lambda a, b: {0: a, "0": b}, lambda a, b: {(0, 1): a, 0: b}])
def test_tensors_of_one_name_are_refused(held):
    class Held(module.Module):
        def __init__(self):
            super().__init__()
            self.d = held(*(Tensor(data=[1.0], stores_grad=True) for _ in "ab"))

    for method in ("get_params", "get_states"):
        with pytest.raises(ValueError, match=rf"{method}: two tensors have the name 'd\."):
            getattr(Held(), method)()
