"""What the code of a step may have read: each change between calls is noticed, wherever it is."""

import argparse
import collections
import dataclasses
import enum
import functools
import operator
import types
from typing import NamedTuple

import numpy as np
import pytest
from recorded import CPU, B, Net, evaluated, inputs, pair, replays, same, step
from singa_rs import autograd, device, layer, module
from singa_rs.tensor import Tensor, from_numpy

X = B[0]


# ---- modes and generators ------------------------------------------------------------------------


class Dropping(module.Module):
    def __init__(self):
        super().__init__()
        self.drop = layer.Dropout(0.5)

    def forward(self, x):
        return self.drop(x * 1.0)


class Around(module.Module):
    def __init__(self):
        super().__init__()
        self.part, self.deep = Dropping(), [Dropping()]

    def forward(self, x):
        return self.deep[0](self.part(x))


def drawn(call):
    CPU.set_seed(0)
    return call().to_numpy()


def both(cls, calls=4):
    """A recorded and an eager model in evaluation, called a few times."""
    models = [cls() for _ in range(2)]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([from_numpy(X)], is_train=False, use_graph=use_graph)
        for _ in range(calls):
            model(from_numpy(X)), model.forward(from_numpy(X))
    return models


def agree(models, call):
    x = from_numpy(X)
    for _ in range(3):
        recorded, eager = (drawn(lambda m=m: call(m, x)) for m in models)
        assert np.array_equal(recorded, eager)
    return recorded


def test_forward_goes_by_the_mode_that_is_assigned():
    models = both(Dropping)
    for training in (True, False, True, True, False):
        autograd.training = training
        drops = (agree(models, lambda m, x: m.forward(x)) == 0).any()
        assert drops == training
    other = Dropping()
    autograd.training = True
    other.train()
    assert not (agree(models, lambda m, x: m.forward(x)) == 0).any(), "its own mode holds again"


@pytest.mark.parametrize("which", [lambda m: m.part, lambda m: m.deep[0]])
def test_a_part_that_gets_a_mode_of_its_own(which):
    models = [Around() for _ in range(2)]
    for model, use_graph in zip(models, (True, False), strict=True):
        model.compile([from_numpy(X)], is_train=False, use_graph=use_graph)
        part = Dropping()
        if which(model) is model.part:
            model.part = part
        else:
            model.deep[0] = part
        for _ in range(4):
            model(from_numpy(X))
    for training in (True, False, True):
        for model in models:
            which(model).train(training)
            autograd.training = False
        assert (agree(models, lambda m, x: m(x)) == 0).any() == training


class Seeding(Net):
    seed = 7

    def __init__(self):
        super().__init__()
        self.drop = layer.Dropout(0.5)

    def train_one_batch(self, x, y):
        noise = self.drop(x * 1.0)
        CPU.set_seed(self.seed)
        out, loss = super().train_one_batch(self.drop(x), y)
        return out, loss, noise


def test_a_seed_that_the_step_sets():
    recorded, eager = pair(Seeding)
    for i in range(8):
        if i == 5:
            recorded.seed = eager.seed = (1 << 63) - 1
        results = []
        for model in (recorded, eager):
            CPU.set_seed(i)
            results.append((model(*B), from_numpy(X).uniform(0, 1)))
        same(*results)
    assert replays(recorded) >= 3


def test_a_seed_that_decides_initial_values():
    class Late(module.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.drop = (
                layer.Linear(5),
                layer.Linear(3),
                layer.Dropout(0.5),
            )

        def train_one_batch(self, x):
            CPU.set_seed(5)
            return self.drop(self.second(self.first(x))) + Tensor((4, 3)).gaussian(0.0, 1.0)

    got = []
    for use_graph in (True, False):
        CPU.set_seed(1)
        model = Late()
        model.train()
        model.graph(use_graph)
        got.append([model(from_numpy(X)).to_numpy() for _ in range(4)])
        got[-1].append(Tensor((4, 3)).gaussian(0.0, 1.0).to_numpy())
    for a, b in zip(*got, strict=True):
        assert np.array_equal(a, b)


def test_a_seed_in_a_recording_by_hand():
    with CPU.record() as graph:
        CPU.set_seed(11)
        made = autograd.dropout(from_numpy(X), 0.5)
    autograd.training = True
    values = []
    for _ in range(3):
        graph.run()
        values.append(made.to_numpy())
    assert all(np.array_equal(values[0], value) for value in values)


# ---- layers --------------------------------------------------------------------------------------


class Images(module.Module):
    def __init__(self):
        super().__init__()
        self.conv = layer.Conv2d(2, 3, padding=1)
        self.norm = layer.BatchNorm2d()
        self.pool = layer.MaxPool2d(2)

    def forward(self, x):
        return self.pool(self.norm(self.conv(x)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m.conv, "handle", autograd.ConvHandle(3, 1, 0)),
        lambda m: setattr(m.conv, "handle", autograd.ConvHandle(3, 2, 1)),
        lambda m: setattr(m.pool, "handle", autograd.PoolingHandle(2, is_max=False)),
        lambda m: setattr(m.norm, "handle", autograd.BatchNormHandle(eps=0.5)),
    ],
)
def test_handles_that_are_replaced(change):
    models = evaluated(Images)
    x = from_numpy(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))
    [model(x) for model in models]
    models[1].set_states(models[0].get_states())
    for i in range(6):
        if i == 3:
            [change(model) for model in models]
        same(*(model(x) for model in models))


def test_handles_stay_as_they_are():
    for handle in (autograd.ConvHandle(3), autograd.PoolingHandle(2), autograd.BatchNormHandle()):
        with pytest.raises(AttributeError, match="make another"):
            handle.stride = 2
    assert autograd.ConvHandle(3) == autograd.ConvHandle((3, 3)) != autograd.ConvHandle(3, 2)


# ---- what attributes may hold --------------------------------------------------------------------


class Point(NamedTuple):
    x: float
    y: list


@dataclasses.dataclass
class Data:
    scale: float = 2.0
    more: list = dataclasses.field(default_factory=lambda: [1.0])


class Plain:
    kind = 2.0

    def __init__(self, scale=2.0):
        self.scale = scale

    def get(self):
        return self.scale


class Slotted:
    __slots__ = ("scale", "__hidden", "__dict__")

    def __init__(self):
        self.scale, self.__hidden = 2.0, [2.0]

    def hidden(self):
        return self.__hidden[0]

    def hide(self, value):
        self.__hidden[0] = value


class Derived(list):
    scale = 2.0


class Colour(enum.Enum):
    RED, BLUE = 2.0, 3.0


class Scaling(autograd.Operator):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x * self.scale

    def backward(self, dy):
        return dy * self.scale


class Scaled(layer.Layer):
    __slots__ = ("factor",)

    def __init__(self):
        super().__init__()
        self.factor = 2.0

    def forward(self, x):
        return x * self.factor


def closed(value):
    def scale():
        return value

    def change():
        nonlocal value
        value = 3.0

    scale.change = change
    return scale


def by_default(values=None, *, more={"a": 2.0}):  # noqa: B006
    return more["a"]


def set_item(key, value):
    return lambda held: operator.setitem(held, key, value)


def set_attribute(name, value=3.0):
    return lambda held: setattr(held, name, value)


#: What an attribute holds, how a step reads a number of it, and how that is changed in place.
HELD = {
    "list": (lambda: [2.0], lambda h: h[0], set_item(0, 3.0)),
    "dictionary": (lambda: {"a": 2.0}, lambda h: h["a"], set_item("a", 3.0)),
    "nested": (
        lambda: [{"a": (1, [2.0])}],
        lambda h: h[0]["a"][1][0],
        lambda h: h[0]["a"][1].__setitem__(0, 3.0),
    ),
    "order": (
        lambda: collections.OrderedDict(a=2.0, b=3.0),
        lambda h: next(iter(h.values())),
        lambda h: h.move_to_end("a"),
    ),
    "order of the same": (
        lambda: collections.OrderedDict(a=2.0, b=2.0),
        lambda h: 2.0 if next(iter(h)) == "a" else 3.0,
        lambda h: h.move_to_end("a"),
    ),
    "order of a dictionary": (
        lambda: {"a": 2.0, "b": 3.0},
        lambda h: next(iter(h.values())),
        lambda h: h.__setitem__("a", h.pop("a")),
    ),
    "counter": (lambda: collections.Counter(a=2), lambda h: float(h["a"]), lambda h: h.update("a")),
    "deque": (lambda: collections.deque([2.0, 3.0]), lambda h: h[0], lambda h: h.rotate(1)),
    "bytes": (lambda: bytearray(b"\2"), lambda h: float(h[0]), set_item(0, 3)),
    "set": (lambda: {2.0}, lambda h: max(h), lambda h: h.add(3.0)),
    "user dictionary": (lambda: collections.UserDict(a=2.0), lambda h: h["a"], set_item("a", 3.0)),
    "user list": (lambda: collections.UserList([2.0]), lambda h: h[0], set_item(0, 3.0)),
    "default dictionary": (
        lambda: collections.defaultdict(float, a=2.0), lambda h: h["a"], set_item("a", 3.0)
    ),
    "chain": (
        lambda: collections.ChainMap({"a": 2.0}), lambda h: h["a"], set_item("a", 3.0)
    ),
    "array": (lambda: np.array([2.0]), lambda h: float(h[0]), set_item(0, 3.0)),
    "array's shape": (
        lambda: np.ones((2, 3)), lambda h: float(h.shape[0]), lambda h: setattr(h, "shape", (3, 2))
    ),
    "named tuple": (lambda: Point(1.0, [2.0]), lambda h: h.y[0], lambda h: h.y.__setitem__(0, 3.0)),
    "dataclass": (Data, lambda h: h.scale, set_attribute("scale")),
    "dataclass's list": (Data, lambda h: h.more[0] + 1, lambda h: h.more.__setitem__(0, 2.0)),
    "object": (Plain, lambda h: h.scale, set_attribute("scale")),
    "object's method": (
        lambda: Plain().get, lambda h: h(), lambda h: setattr(h.__self__, "scale", 3.0)
    ),
    "object in an object": (
        lambda: Plain(Plain()), lambda h: h.scale.scale, lambda h: setattr(h.scale, "scale", 3.0)
    ),
    "slots": (Slotted, lambda h: h.scale, set_attribute("scale")),
    "hidden slots": (Slotted, lambda h: h.hidden(), lambda h: h.hide(3.0)),
    "attribute of a list": (Derived, lambda h: h.scale, set_attribute("scale")),
    "namespace": (lambda: types.SimpleNamespace(a=2.0), lambda h: h.a, set_attribute("a")),
    "arguments": (lambda: argparse.Namespace(a=2.0), lambda h: h.a, set_attribute("a")),
    "partial": (
        lambda: functools.partial(max, key=Plain()), lambda h: h.keywords["key"].scale,
        lambda h: setattr(h.keywords["key"], "scale", 3.0),
    ),
    "closure": (lambda: closed(2.0), lambda h: h(), lambda h: h.change()),
    "closure over a list": (
        lambda: closed([2.0]), lambda h: h()[0], lambda h: h().__setitem__(0, 3.0)
    ),
    "object in a set": (
        lambda: {Plain()}, lambda h: next(iter(h)).scale,
        lambda h: setattr(next(iter(h)), "scale", 3.0),
    ),
    "operator": (
        lambda: Scaling(2.0), lambda h: h(from_numpy(np.ones(6, np.float32)))[0],
        set_attribute("scale"),
    ),
    "layer in an object": (
        lambda: Plain(Scaled()), lambda h: h.scale.factor,
        lambda h: setattr(h.scale, "factor", 3.0),
    ),
    "layer's slot": (Scaled, lambda h: h.factor, set_attribute("factor")),
    "tensor's flag": (
        lambda: Tensor((2,)), lambda h: 2.0 if h.requires_grad else 3.0,
        set_attribute("requires_grad", False),
    ),
    "tensor's own attribute": (
        lambda: from_numpy(np.ones(2, np.float32)), lambda h: getattr(h, "scale", 2.0),
        set_attribute("scale"),
    ),
}  # fmt: skip


class Reads(module.Module):
    def __init__(self, held, read):
        super().__init__()
        self.held, self.read = held, read

    def forward(self, x):
        return x * self.read(self.held)


@pytest.mark.parametrize("name", HELD)
def test_a_change_of_what_an_attribute_holds(name):
    make, read, change = HELD[name]
    model = Reads(make(), read)
    model.eval()
    model.graph(True)
    x = from_numpy(X)
    for _ in range(4):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(2))
    assert replays(model, "forward") >= 2
    change(model.held)
    for _ in range(4):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(3)), name
    assert replays(model, "forward") >= 2


@pytest.mark.parametrize("name", HELD)
def test_a_change_of_what_an_argument_holds(name):
    make, read, change = HELD[name]

    class Given(module.Module):
        def forward(self, x, held):
            return x * read(held)

    model, held, x = Given(), make(), from_numpy(X)
    if isinstance(held, Tensor | np.ndarray):
        return  # given as a tensor, of which all is noticed anyway
    model.eval()
    model.graph(True)
    for _ in range(4):
        assert np.array_equal(model(x, held).to_numpy(), X * np.float32(2))
    change(held)
    for _ in range(4):
        got = model(x, held).to_numpy()
        assert np.array_equal(got, X * np.float32(3)), name


def test_an_enumeration_and_numbers_of_numpy():
    model = Reads(Colour.RED, lambda held: getattr(held, "value", held))
    model.eval()
    model.graph(True)
    x = from_numpy(X)
    for held, want in [(Colour.RED, 2), (Colour.BLUE, 3), (np.float32(2), 2), (np.float32(3), 3)]:
        model.held = held
        for _ in range(3):
            assert np.array_equal(model(x).to_numpy(), X * np.float32(want))


# ---- what code reads besides ---------------------------------------------------------------------

FACTOR, TABLE, MASK, OPTIONS = 2.0, [2.0], from_numpy(np.full(6, 2, np.float32)), Plain()
CONFIG = types.ModuleType("config")
CONFIG.factor = 2.0


class Config:
    factor = 2.0


def helper():
    return FACTOR


class Mixed:
    mixed = 2.0


TEACHER = Scaled()


class Reading(Mixed, module.Module):
    how = None
    factor, table = 2.0, [2.0]

    def forward(self, x):
        return x * getattr(self, self.how)(self)

    def by_global(self, _):
        return FACTOR

    def by_table(self, _):
        return TABLE[0]

    def by_tensor(self, _):
        return MASK

    def by_object(self, _):
        return OPTIONS.get()

    def by_module(self, _):
        return CONFIG.factor

    def by_class(self, _):
        return Config.factor

    def by_helper(self, _):
        return helper()

    def by_inner(self, _):
        return [FACTOR for _ in range(1)][0]

    def by_own_class(self, _):
        return self.factor

    def by_own_table(self, _):
        return self.table[0]

    def by_default(self, _):
        return by_default()

    @property
    def doubled(self):
        return FACTOR

    def by_property(self, _):
        return self.doubled

    @staticmethod
    def fixed():
        return FACTOR

    def by_static(self, _):
        return self.fixed()

    def by_kind(self, _):
        return OPTIONS.kind

    def by_mixin(self, _):
        return self.mixed

    def by_layer(self, _):
        return TEACHER.factor


def set_global(name, value):
    return lambda patch: patch.setitem(globals(), name, value)


OUTSIDE = {
    "by_global": set_global("FACTOR", 3.0),
    "by_table": lambda _: TABLE.__setitem__(0, 3.0),
    "by_tensor": lambda patch: patch.setitem(
        globals(), "MASK", from_numpy(np.full(6, 3, np.float32))
    ),
    "by_object": lambda patch: patch.setattr(OPTIONS, "scale", 3.0),
    "by_module": lambda patch: patch.setattr(CONFIG, "factor", 3.0),
    "by_class": lambda patch: patch.setattr(Config, "factor", 3.0),
    "by_helper": set_global("helper", lambda: 3.0),
    "by_inner": set_global("FACTOR", 3.0),
    "by_own_class": lambda patch: patch.setattr(Reading, "factor", 3.0),
    "by_own_table": lambda patch: patch.setattr(Reading, "table", [3.0]),
    "by_default": lambda patch: patch.setitem(by_default.__kwdefaults__["more"], "a", 3.0),
    "by_property": set_global("FACTOR", 3.0),
    "by_static": set_global("FACTOR", 3.0),
    "by_kind": lambda patch: patch.setattr(Plain, "kind", 3.0),
    "by_mixin": lambda patch: patch.setattr(Mixed, "mixed", 3.0),
    "by_layer": lambda patch: patch.setattr(TEACHER, "factor", 3.0),
}


@pytest.mark.parametrize("how", OUTSIDE)
def test_a_change_of_what_code_reads_otherwise(how, monkeypatch):
    model, x = Reading(), from_numpy(X)
    model.how = how
    model.eval()
    model.graph(True)
    for _ in range(4):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(2))
    assert replays(model, "forward") >= 2
    OUTSIDE[how](monkeypatch)
    try:
        for _ in range(4):
            assert np.array_equal(model(x).to_numpy(), X * np.float32(3)), how
    finally:
        TABLE[0] = 2.0
    assert replays(model, "forward") >= 2


def test_a_method_that_is_replaced(monkeypatch):
    model, x = Reading(), from_numpy(X)
    model.how = "by_global"
    model.eval()
    model.graph(True)
    for _ in range(4):
        model(x)
    monkeypatch.setattr(Reading, "by_global", lambda self, _: 5.0)
    for _ in range(3):
        assert np.array_equal(model(x).to_numpy(), X * np.float32(5))


# ---- what does not decide anything ---------------------------------------------------------------


class Meter:
    def __init__(self):
        self.values, self.last, self.total = [], None, 0.0

    def update(self, value):
        self.values.append(value)
        self.last, self.total = value, self.total + value


def test_objects_that_change_and_decide_nothing():
    """What two recordings find different, and are the same all the same, does not matter."""
    recorded, eager = pair(Net)
    recorded.meter, eager.meter = Meter(), Meter()
    for _ in range(8):
        out, loss = step(recorded, eager, *B)
        for model in (recorded, eager):
            model.meter.update(float(loss.to_numpy().reshape(-1)[0]))
    assert replays(recorded) >= 5


class Clicks:
    def __init__(self):
        self.n, self.factor = 0, 1.0


class Clicking(Net):
    """Changes an object that it holds."""

    def __init__(self, by=1, factor=1.0):
        super().__init__()
        self.clicks, self.by, self.factor = Clicks(), by, factor

    def train_one_batch(self, x, y):
        self.clicks.n += self.by
        self.clicks.factor *= self.factor
        return super().train_one_batch(x * self.clicks.factor, y)


def test_a_number_of_an_object_that_each_step_raises():
    recorded, eager = pair(Clicking)
    for i in range(8):
        if i == 5:
            recorded.clicks.n = eager.clicks.n = 100
        step(recorded, eager, *B)
        assert recorded.clicks.n == eager.clicks.n
    assert replays(recorded) >= 4


@pytest.mark.filterwarnings("ignore:.*without a graph")
def test_a_float_of_an_object_that_each_step_changes():
    recorded, eager = pair(Clicking, 1, 0.5)
    for _ in range(8):
        step(recorded, eager, *B)
        assert recorded.clicks.factor == eager.clicks.factor


def test_a_large_container_is_known_by_its_length():
    """The page of limits says so."""
    model = Reads([2.0] * 1001, lambda held: held[0])
    model.eval()
    model.graph(True)
    x = from_numpy(X)
    for _ in range(4):
        model(x)
    model.held.append(1.0)
    model.held[0] = 3.0
    assert np.array_equal(model(x).to_numpy(), X * np.float32(3))
    assert device.get_default_device() == CPU and inputs()
