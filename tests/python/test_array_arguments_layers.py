"""Layers and models take NumPy arrays, and give the same bits as `from_numpy` of them; those that a
recorded step combines are constants of its graph only if they stay."""

import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
from array_arguments import A, array_of, bits, filled
from singa_rs import autograd, device, layer, module, opt, tensor
from singa_rs.autograd.precision import Precision, precision_scope
from singa_rs.tensor import Tensor
from valid_calls import IMAGE, INTS, LISTS, NEEDS, T
from wrong_calls import of, ones

LAYERS = [name for name in layer.__all__ if name not in ("Layer", "Parameter", "RNN_Base", *LISTS)]
INPUTS = [
    [T], [T, T], [T, T, T], [INTS], [IMAGE], [lambda: [T(), T()]], [of(2, 3, 4)], [of(2, 4, 8)],
    [of(2, 2, 2)], [of(2, 4, 4), of(2, 4, 4)], [of(2, 3, 4, 4, 4)], [T, of(2, dtype="int32")],
    [T, of(2)], [T, T, of(2)], [T, of(2, 3, dtype="int32")], [of(1, 4, 9)], [of(4, 3)],
    [of(2, 3, dtype="int32")], [of(1, 4, 4, 4, 4)],
    *[[of(1, 4, *(4,) * axes), of(1, 4, *(4,) * axes, dtype="int32")] for axes in (1, 2, 3)],
    [of(4, 2, 3), ones(2, 2), ones(2), ones(2)],
]  # fmt: skip


def layered(name, given):
    """What a new layer makes of its arguments, called and called again."""
    device.get_default_device().set_seed(4)
    one = getattr(layer, name)(*NEEDS.get(name, ()))
    return bits([one(*given), one(*given), one.forward(*given)]), one


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    found = 0
    for makes in INPUTS:
        given = [filled(make()) for make in makes]
        try:
            want, _ = layered(name, given)
        except (TypeError, ValueError, NotImplementedError):
            continue
        made, one = layered(name, array_of(given))
        assert made == want
        assert all(state.dtype == tensor.float32 for state in one.get_params().values())
        for at in range(len(given)):
            args = [array_of(x) if i == at else x for i, x in enumerate(given)]
            assert layered(name, args)[0] == want
        found += 1
    assert found, name


class Scaled(layer.Layer):
    """A layer as users write them: a parameter that is declared as an array gets one."""

    def forward(self, x, gain: Tensor | None = None, shape: "np.ndarray | tuple[int, ...]" = ()):
        self.seen = type(shape)
        made = x if gain is None else x * gain
        return made.reshape(tuple(int(n) for n in shape)) if len(shape) else made


def test_layers_of_users():
    one = Scaled()
    assert bits(one(A)) == bits(tensor.from_numpy(A))
    assert bits(one(A, gain=np.float32([2, 3, 4]))) == bits(tensor.from_numpy(A * [2, 3, 4]))
    assert one(A, shape=np.array([3, 2])).shape == (3, 2)
    assert one.seen is np.ndarray
    assert layer.Reshape()(A, np.array([3, 2])).shape == (3, 2)


def test_layers_take_arrays_in_containers():
    both = tensor.from_numpy(A)
    assert bits(layer.Cat(0)([A, A])) == bits(layer.Cat(0)([both, both]))
    assert bits(layer.Sequential(layer.ReLU(), layer.Flatten())(A)) == bits(both)


def test_arrays_of_64_bits_are_what_from_numpy_makes_to_layers():
    one, array = layer.Linear(2), A.astype("float64")
    assert bits(one(array)) == bits(one(tensor.from_numpy(array)))
    assert one.W.dtype == tensor.float32
    with pytest.raises(TypeError, match="Linear: got dtype int32, want a float dtype"):
        layer.Linear(2)(A.astype("int64"))


def test_layers_are_initialised_for_arrays():
    one = layer.Linear(2)
    one.initialize(A)
    assert one.W.shape == (3, 2) and one.W.dtype == tensor.float32


def test_gradients_flow_past_arrays():
    autograd.training = True
    one = layer.Linear(2)
    found = autograd.gradients(autograd.reduce_sum(one(A)))
    want = autograd.gradients(autograd.reduce_sum(one(tensor.from_numpy(A))))
    assert len(found) == len(want) == 2
    for parameter in (one.W, one.b):
        assert bits(found[parameter]) == bits(want[parameter])


def test_mixed_precision_sees_arrays():
    """Arrays are tensors before functions choose the type that they compute in."""
    scope = precision_scope(Precision(tensor.bfloat16))
    with scope:
        for name in ("exp", "relu", "softmax", "reduce_sum", "tanh"):
            function = getattr(autograd, name)
            x = tensor.from_numpy(A, dtype="bfloat16")
            assert bits(function(A)) == bits(function(tensor.from_numpy(A)))
            assert function(x).dtype == function(tensor.from_numpy(A, dtype="bfloat16")).dtype
        made = autograd.matmul(A, A.T)
    assert made.dtype == tensor.bfloat16


# ---- recordings ----------------------------------------------------------------------------------


class Net(module.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.loss = layer.Linear(3), layer.MSELoss()
        self.optimizer = opt.SGD(0.1)

    def forward(self, x):
        return autograd.relu(self.fc(x))

    def train_one_batch(self, x, y):
        value = self.loss(self.forward(x), y)
        self.optimizer(value)
        return value


def made(cls, use_graph, training=True, x=A):
    device.get_default_device().set_seed(2)
    one = cls()
    one.compile([tensor.from_numpy(x)], is_train=training, use_graph=use_graph)
    return one


def test_arrays_are_arguments_of_replays():
    """What an array holds is read at each call; arrays that the caller writes again, too."""
    ours, theirs = made(Net, True), made(Net, False)
    x, y = A / 10, A[::-1].copy()
    for step in range(8):
        x += 0.25
        y[:] = y[::-1] * (step + 1) / 8
        want = theirs(tensor.from_numpy(x), tensor.from_numpy(y))
        assert bits(ours(x, y)) == bits(want)
        assert bits(ours.train_one_batch(x, y)) == bits(theirs.train_one_batch(x, y))
    assert len(ours.graphs) == 1 and "replayed 14 times" in ours.explain()
    ours.eval(), theirs.eval()
    for step in range(6):
        assert bits(ours(x * step)) == bits(theirs(tensor.from_numpy(x * step)))


class Batch(NamedTuple):
    x: Any
    rest: Any = None


class Marked(OrderedDict):
    """A dictionary of the program's, with an attribute."""


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("kind", [Batch, OrderedDict, Marked, dict])
def test_containers_hold_tensors_in_both_modes(kind, use_graph):
    class Takes(module.Module):
        def forward(self, given):
            assert type(given) is kind
            x = given.x if kind is Batch else given["x"]
            rest = given.rest if kind is Batch else given["rest"]
            assert isinstance(x, Tensor) and isinstance(rest[0].x, Tensor)
            return x + rest[0].x

    one, given = Takes().eval(), kind(x=A, rest=[Batch(A, "text")])
    one.graph_mode = use_graph
    for _ in range(3):
        assert bits(one(given)) == bits(tensor.from_numpy(A + A))
    assert (given.x if kind is Batch else given["x"]) is A


@pytest.mark.parametrize("use_graph", [False, True])
def test_models_are_compiled_and_planned_for_arrays(use_graph):
    one, other = Net(), Net()
    one.compile(A.astype("float64"), use_graph=use_graph)
    other.compile([A], use_graph=use_graph)
    assert one.fc.W.shape == other.fc.W.shape == (3, 3) and one.fc.W.dtype == tensor.float32
    assert one.plan(A, A).peak_bytes == one.plan(*map(tensor.from_numpy, (A, A))).peak_bytes


PLACES = {
    "operator": lambda self, x, array: x + array,
    "function of one": lambda self, x, array: x + autograd.relu(array),
    "function of two": lambda self, x, array: autograd.matmul(x, array),
    "method": lambda self, x, array: x.dot(array),
    "layer": lambda self, x, array: x + self.fc(array),
    "operation": lambda self, x, array: x + autograd.Tanh()(array)[0],
}


class Constant(module.Module):
    """Combines its argument with an array of its own, which steps may change."""

    place = ""
    changes = False

    def __init__(self):
        super().__init__()
        self.fc, self.steps = layer.Linear(3), 0

    def forward(self, x):
        if self.changes:
            self.steps += 1
        array = np.full((3, 3), self.steps + 0.5, np.float32)
        return PLACES[self.place](self, x, array)


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_arrays_made_in_a_step(place, changes):
    """An array that stays is a constant of the graph; one that changes is not frozen: recordings
    differ, and the step runs eagerly, after a warning."""
    cls = type("Constant", (Constant,), {"place": place, "changes": changes})
    square = np.ones((3, 3), np.float32)
    ours, theirs = made(cls, True, False, square), made(cls, False, False, square)
    x = tensor.from_numpy(square)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(18):
            assert bits(ours(x)) == bits(theirs(x))
    messages = [str(one.message) for one in caught]
    assert any("runs eagerly from now on" in text for text in messages) == changes, messages
    assert len(ours.graphs) == (0 if changes else 1)


def test_arrays_held_by_the_model_are_watched():
    class Held(Constant):
        place = "function of two"

        def forward(self, x):
            return autograd.matmul(x, self.array)

    ours, theirs = (made(type("H", (Held,), {"array": A.T}), g, False) for g in (True, False))
    x = tensor.from_numpy(A)
    for step in range(9):
        for one in (ours, theirs):
            one.array = A.T * (step // 3)
        assert bits(ours(x)) == bits(theirs(x))
