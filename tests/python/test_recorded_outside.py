"""What steps set outside of the model is what eager steps set, and later steps find it."""

import gc
import types
import warnings
import weakref

import numpy as np
import pytest
from singa_rs import layer, module
from singa_rs.tensor import Tensor, from_numpy

OBJ = types.SimpleNamespace()
TABLE = {}
LATEST = BEFORE = STATUS = None
LINEAR = layer.Linear(2)


def _swap(model, x):
    global LATEST, BEFORE
    BEFORE, LATEST = LATEST, x * 2


def _swap_attributes(model, x):
    OBJ.before, OBJ.latest = OBJ.latest, x * 2


def _own(model, x):
    model.before, model.latest = model.latest, x * 2


def _moved(model, x):
    OBJ.before, model.latest = model.latest, x * 2


def _argument(model, x):
    TABLE["x"], OBJ.latest = x, x[0]


def _by_turns(model, x):
    OBJ.latest = x * 2 if model.n % 2 else None


def _by_kinds(model, x):
    OBJ.latest = x * 2 if model.n % 3 else LINEAR


def _status(model, x):
    global STATUS
    STATUS, OBJ.before = "trained", LINEAR


WAYS = (_swap, _swap_attributes, _own, _moved, _argument, _by_turns, _by_kinds, _status)


class Setting(module.Module):
    """Sets something outside, and reads what the step before has set there."""

    def __init__(self, way, reads):
        super().__init__()
        self.way, self.reads, self.n = way, reads, 0
        self.before = self.latest = None

    def forward(self, x):
        return x

    def train_one_batch(self, x):
        y = x + 1
        if self.reads and isinstance(OBJ.before, Tensor):
            y = y * OBJ.before.mean()
        self.way(self, x)
        self.n += 1
        return y


def _reset():
    global LATEST, BEFORE, STATUS
    LATEST = BEFORE = STATUS = OBJ.before = OBJ.latest = None
    TABLE.clear()
    TABLE["x"] = None


def _plain(value):
    return value.numpy().tolist() if isinstance(value, Tensor) else value


def _seen(model):
    held = (LATEST, BEFORE, STATUS, OBJ.before, OBJ.latest, TABLE["x"], model.before, model.latest)
    return [_plain(one) for one in held]


@pytest.mark.parametrize("rows", [(2, 2), (2, 3)])
@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_set_is_that_of_eager_steps(way, reads, rows):
    found = {}
    for use_graph in (False, True):
        _reset()
        model = Setting(way, reads)
        model.compile([from_numpy(np.zeros((2, 2), np.float32))], use_graph=use_graph)
        found[use_graph] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(14):
                if i == 5:  # the program may set it, too
                    OBJ.before = OBJ.latest = model.before = model.latest = None
                y = model(from_numpy(np.full((rows[i % 2], 2), i, np.float32)))
                found[use_graph].append((y.numpy().tolist(), _seen(model)))
    assert found[True] == found[False]


def test_after_an_error_nothing_without_a_value_is_left():
    class Failing(Setting):
        def train_one_batch(self, x):
            y = super().train_one_batch(x)
            if x.shape[0] == 3:
                raise KeyError("on purpose")
            return y

    _reset()
    model = Failing(_swap_attributes, True)
    model.compile([from_numpy(np.zeros((2, 2), np.float32))])
    give = lambda n: model(from_numpy(np.ones((n, 2), np.float32)))  # noqa: E731
    with pytest.raises(KeyError):
        give(3)
    for n in (2, 2, 2, 2):
        give(n)
    with pytest.raises(KeyError):
        give(3)
    assert OBJ.latest.numpy().tolist() == [[2, 2], [2, 2]]
    assert give(2).numpy().tolist() == [[4, 4], [4, 4]]


def test_recordings_let_go_of_their_arguments():
    model, seen = Setting(lambda model, x: None, False), []
    model.compile([from_numpy(np.zeros((2, 2), np.float32))])
    for i in range(8):
        x = from_numpy(np.zeros((2 + i % 4, 2), np.float32))
        seen.append(weakref.ref(x))
        model(x)
        del x
    gc.collect()
    assert not [ref for ref in seen if ref() is not None]


@pytest.mark.parametrize("use_graph", [True, False])
def test_a_layer_outside_keeps_the_parameters_that_compile_makes(use_graph):
    outside = layer.Linear(3)

    class Net(module.Module):
        def forward(self, x):
            return outside(x)

    model, x = Net(), from_numpy(np.ones((2, 4), np.float32))
    model.compile([x], is_train=False, use_graph=use_graph)
    outside.W.copy_from(np.ones((4, 3), np.float32))
    for _ in range(4):
        assert model(x).to_numpy().tolist() == [[4.0] * 3] * 2
        model.plan(x)


class Closed(list):
    """A list that only grows, as its program says."""

    def pop(self, *places):
        raise TypeError("nothing leaves this list")

    __delitem__ = pop


class Table(dict):
    pop = __delitem__ = Closed.pop


@pytest.mark.parametrize("kind", [Closed, Table])
def test_what_was_only_recorded_leaves_containers_without_their_methods(kind):
    held = kind()

    class Adding(module.Module):
        def forward(self, x):
            held.update({len(held): x * 2}) if kind is Table else held.append(x * 2)
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        Adding().compile([Tensor((2,))], is_train=False, use_graph=True)
    assert len(held) == 0
