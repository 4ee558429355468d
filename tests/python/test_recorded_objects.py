"""Objects, classes and functions whose contents steps read in ways that no name in code shows."""

import abc
import builtins
import dataclasses
import functools
import types
import weakref
from collections import defaultdict, deque
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import replays
from scenarios import Fit, hold, x
from singa_rs import autograd
from test_recorded_reads import scaled

CONFIG = {"scale": 1.0}
TARGET = SimpleNamespace(mode="z")
LOWER, APPEND, SET = str.lower, list.append, object.__setattr__
Made = dataclasses.make_dataclass("Made", [("scale", float, 1.0)])
Abstract = abc.ABCMeta("Abstract", (), {"scale": 1.0})
FLAGS = bytearray(4)


def scale_of(i):
    return 1.0 if i < 6 else 3.0


def configure(_, i):
    CONFIG["scale"] = scale_of(i)


def set_scale(o, i):
    o.scale = scale_of(i)


def set_mode(o, i):
    o.mode = "abzz"[i // 3]


# ---- functions -----------------------------------------------------------------------------------


@functools.wraps(len)
def wrapping():
    return CONFIG["scale"]


def counted(function):
    @functools.wraps(function)
    def inner(*args):
        inner.calls += 1
        return function(*args)

    inner.calls = 0
    return inner


counting = counted(autograd.abs)


@functools.lru_cache(None)
def cached(n):
    return np.full(n, CONFIG["scale"], np.float32)


def _clear(_, i):
    if i in (0, 6):
        configure(_, i)
        cached.cache_clear()


def _count(_, i):
    counting.calls = counting.calls if i else 0


def _twice_in_three(o):
    counting(np.ones(1))
    return 2.0 if counting.calls % 3 == 0 else 1.0


@pytest.mark.parametrize(
    ("reads", "change"),
    [
        (lambda o: wrapping(), configure),
        (_twice_in_three, _count),
        (lambda o: cached(1), _clear),
    ],
    ids=["of a library's", "that counts", "cache"],
)
def test_wrappers_of_functions(reads, change):
    scaled(reads, change)


def _appended(o):
    APPEND(items := [], o.mode)
    return 1.0 if items[0] == "z" else 2.0


def _counted(o):
    SET(o, "n", o.n + 1)
    return 1.0 if o.n < 5 else 2.0


@pytest.mark.parametrize(
    "reads", [lambda o: 1.0 if LOWER(o.mode) == "z" else 2.0, _appended, _counted]
)
def test_methods_of_classes_in_c(reads):
    scaled(reads, set_mode, lambda: SimpleNamespace(mode="a", n=0))


def test_a_name_among_the_builtins():
    def change(_, i):
        builtins.SCALE_OF_TEST = scale_of(i)

    try:
        scaled(lambda o: SCALE_OF_TEST, change)  # noqa: F821
    finally:
        del builtins.SCALE_OF_TEST


def _factor(o, by):
    return CONFIG["scale"] * by


class Halving:
    half = functools.partialmethod(_factor, 0.5)


def test_partial_methods():
    scaled(lambda o: o.half(), configure, Halving)


GET, ATTRIBUTE = getattr, object.__getattribute__


@pytest.mark.parametrize("reads", [lambda o: GET(o, "mode"), lambda o: ATTRIBUTE(o, "mode")])
def test_other_names_of_what_reads_attributes(reads):
    class Plain:
        pass

    scaled(lambda o: 1.0 if reads(o) == "z" else 2.0, set_mode, Plain)


# ---- objects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reads",
    [
        lambda o: o == TARGET,
        lambda o: o in [TARGET],
        lambda o: f"{o}" == "namespace(mode='z')",
        lambda o: "%s" % (o,) == "namespace(mode='z')",  # noqa: UP031
    ],
    ids=["==", "in", "f-string", "%"],
)
def test_a_namespace_as_a_whole(reads):
    scaled(lambda o: 2.0 if reads(o) else 1.0, set_mode, lambda: SimpleNamespace(mode="a"))


@pytest.mark.parametrize("make", [Made, types.new_class("New"), Abstract])
def test_classes_that_python_makes_at_run_time(make):
    def change(o, i):
        o.scale = scale_of(i)

    scaled(lambda o: o.scale, change, make)


class Trainer:
    def __init__(self):
        self.scale = 1.0


class Weak:
    """A descriptor that keeps values beside the objects."""

    def __init__(self):
        self.of = weakref.WeakKeyDictionary()

    def __get__(self, one, kind):
        return self.of[one]  # fails if it is asked for the class

    def __set__(self, one, value):
        self.of[one] = value


class Described:
    scale = Weak()

    def __init__(self):
        self.scale = 1.0


REFERENCES = {
    "ref": (weakref.ref, lambda o: o().scale),
    "proxy": (weakref.proxy, lambda o: o.scale),
    "set": (lambda one: weakref.WeakSet([one]), lambda o: sum(one.scale for one in o)),
    "values": (lambda one: weakref.WeakValueDictionary(a=one), lambda o: o["a"].scale),
    "method": (lambda one: weakref.WeakMethod(one.get), lambda o: o()()),
    "descriptor": (lambda one: one, lambda o: o.scale),
}


class Getting(Trainer):
    def get(self):
        return self.scale


@pytest.mark.parametrize("kind", REFERENCES)
def test_weak_references(kind):
    refer, reads = REFERENCES[kind]
    held = []

    def make():
        held[:] = [Described() if kind == "descriptor" else Getting()]
        return refer(held[0])

    scaled(reads, lambda _, i: set_scale(held[0], i), make)


def test_a_graph_keeps_nothing_alive_that_is_weakly_referred_to():
    class Following(Fit):
        trainer = None

        def loss_of(self, x):
            trainer = self.trainer()
            return super().loss_of(x) * (5.0 if trainer is None else trainer.scale)

    def session(model):
        one = Trainer()
        model.trainer = weakref.ref(one)
        made = [model(x()) for _ in range(5)]
        assert not model.graph_mode or replays(model) == 3
        del one
        return [*made, model.trainer(), model(x())]

    hold(Following, session)


def test_a_proxy_whose_object_is_gone():
    scaled(lambda o: o.scale, set_scale, lambda: SimpleNamespace(gone=weakref.proxy(Trainer())))


def test_attributes_of_arrays():
    class Tagged(np.ndarray):
        pass

    scaled(lambda o: o.scale, set_scale, lambda: np.ones(2, np.float32).view(Tagged))


def test_the_length_that_a_deque_may_have():
    def change(o, i):
        o.rows = deque([0] * 3, maxlen=3 if i < 6 else 8)

    scaled(lambda o: 1.0 if len(o.rows) == o.rows.maxlen else 2.0, change)


def test_what_a_dictionary_makes_of_keys_that_it_lacks():
    def change(o, i):
        o.default_factory = int if i < 6 else lambda: 2

    def reads(o):
        value = 1.0 + o["a"]
        del o["a"]
        return value

    scaled(reads, change, lambda: defaultdict(int))


class Doubling:
    """A descriptor with the name under which it keeps a value."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, one, kind=None):
        return 2 * one.__dict__[self.name]

    def __set__(self, one, value):
        one.__dict__[self.name] = value


def test_what_a_descriptor_keeps_is_restored_as_it_is():
    class Doubled:
        scale = Doubling()

        def __init__(self):
            self.scale, self.calls = 1.0, 0

    def reads(o):
        o.calls += 1
        return o.scale

    scaled(reads, lambda o, i: set_scale(o, i), Doubled)


def test_objects_that_are_keys():
    def change(o, i):
        for one in o:
            one.scale = scale_of(i)

    scaled(lambda o: sum(one.scale for one in o), change, lambda: {Trainer(): 1})


# ---- containers ----------------------------------------------------------------------------------


def double(value):
    return 2.0 * value


HOOKS, FROZEN, POINTS = {double}, frozenset({double}), {TARGET.mode, Trainer()}


@pytest.mark.parametrize(
    "reads",
    [
        lambda o, hooks={double}: sum(hook(1.0) for hook in hooks),  # noqa: B006
        lambda o: sum(hook(1.0) for hook in HOOKS),
        lambda o: sum(hook(1.0) for hook in FROZEN),
        lambda o: sum(one.scale for one in POINTS if one != "z"),
    ],
    ids=["default", "functions", "frozen", "objects"],
)
def test_sets_of_functions_and_objects(reads):
    scaled(reads, lambda o, i: None)


def test_bytes_outside_of_the_model():
    def change(_, i):
        FLAGS[0] = i // 4

    scaled(lambda o: 1.0 + FLAGS[0], change)


def test_bytes_whose_memory_is_lent():
    def make():
        raw = bytearray(np.ones(1, np.float32).tobytes())
        return SimpleNamespace(raw=raw, w=np.frombuffer(raw, np.float32))

    def change(o, i):
        o.raw[:] = np.full(1, scale_of(i), np.float32).tobytes()

    scaled(lambda o: o.w, change, make)
