"""The contents of attributes and arguments: each change between calls is noticed."""

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
from readers import Plain, Scaled
from recorded import B, Net, batch, pair, replays, step
from singa_rs import autograd, module
from singa_rs.tensor import Tensor, from_numpy

X = B[0]


class Point(NamedTuple):
    x: float
    y: list


@dataclasses.dataclass
class Data:
    scale: float = 2.0
    more: list = dataclasses.field(default_factory=lambda: [1.0])


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


def closed(value):
    def scale():
        return value

    def change():
        nonlocal value
        value = 3.0

    scale.change = change
    return scale


def set_item(key, value):
    return lambda held: operator.setitem(held, key, value)


def set_attribute(name, value=3.0):
    return lambda held: setattr(held, name, value)


#: Name -> (an attribute's value, how a step reads a number of it, how it is changed in place).
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
        return  # passed as a tensor, every change of which is noticed anyway
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


def test_a_large_container_is_known_by_its_length():
    """As the page on limits documents."""
    model = Reads([2.0] * 1001, lambda held: held[0])
    model.eval()
    model.graph(True)
    x = from_numpy(X)
    for _ in range(4):
        model(x)
    model.held.append(1.0)
    model.held[0] = 3.0
    assert np.array_equal(model(x).to_numpy(), X * np.float32(3))


class Table(dict):
    __slots__ = ("n",)


class Rows(list):
    __slots__ = ("n",)


class Names(set):
    __slots__ = ("n",)


class Counting(Net):
    """Counts its steps in a slot of a container, which the loss depends on as well."""

    def __init__(self, kind):
        super().__init__()
        self.kept = kind()
        self.kept.n = 1

    def train_one_batch(self, x, y):
        loss = autograd.softmax_cross_entropy(self.forward(x), y)
        loss = loss * 2.0 if self.kept.n > 9 else loss
        self.kept.n += 1
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("kind", [Table, Rows, Names])
def test_slots_of_containers(kind):
    recorded, eager = models = pair(Counting, kind)
    for i in range(12):
        if i == 8:
            for model in models:
                model.kept.n = 20
        step(recorded, eager, *batch())
        assert recorded.kept.n == eager.kept.n and not list(recorded.kept)
    assert replays(recorded) >= 3
