"""What a step does that no recording shows: numbers of other generators, the clock, globals."""

import datetime
import functools
import gc
import itertools
import os
import random
import secrets
import sys
import time
import uuid
import warnings
import weakref
from time import perf_counter

import numpy as np
import pytest
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.record import entry

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
Y = np.zeros((8, 4), np.float32)
GENERATOR = np.random.default_rng(7)
LOG, STATE = [], {"calls": 0}
total = 0


class Net(module.Module):
    def __init__(self, also):
        super().__init__()
        self.linear, self.optimizer, self.also = layer.Linear(4), opt.SGD(0.1), also
        self.own = random.Random(5)

    def forward(self, x):
        self.also(self)
        return self.linear(x)

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def trained(also, steps=6, use_graph=True):
    """A model after some steps, and the warnings about it."""
    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net = Net(also)
    net.compile([x], is_train=True, use_graph=use_graph)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for _ in range(steps):
            net.train_one_batch(x, y)
    return net, [str(one.message) for one in shown], shown


def line_of(function):
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + 1}"


def with_python(net):
    random.random()


def with_python_inside(net):
    random.shuffle([1, 2, 3])


def with_numpy(net):
    np.random.rand()


def with_global(net):
    GENERATOR.normal()


def with_own(net):
    net.own.randint(0, 9)


@functools.lru_cache
def cached():
    return np.random.default_rng(3)


def with_cached(net):
    cached().normal()


def with_bits(net, held=np.random.PCG64(3)):  # noqa: B008
    held.random_raw()


def with_spawned(net, held=np.random.SeedSequence(3)):  # noqa: B008
    np.random.default_rng(held.spawn(1)[0]).normal()


def with_system(net, held=random.SystemRandom()):  # noqa: B008
    held.random()


def with_secrets(net):
    secrets.randbelow(3)


def with_unseeded(net):
    np.random.default_rng().normal()


def with_unseeded_python(net):
    random.Random().random()


DRAWS = {
    with_cached: "cached() (Generator)",
    with_bits: "also.__defaults__.0 (PCG64)",
    with_spawned: "also.__defaults__.0 (SeedSequence)",
    with_system: "the system's generator",
    with_secrets: "the system's generator",
    with_unseeded: "the system's generator",
    with_unseeded_python: "the system's generator",
    with_python: "Python's random",
    with_python_inside: "Python's random",
    with_numpy: "NumPy's numpy.random",
    with_global: "global GENERATOR (Generator)",
    with_own: "own (Random)",
}


@pytest.mark.parametrize("also", DRAWS, ids=lambda also: also.__name__)
def test_draws_keep_a_step_eager(also):
    """Although all recordings are the same operations."""
    net, messages, shown = trained(also)
    place = f" at {line_of(also)}" if sys.gettrace() is None else ""
    (message,) = messages
    assert f"the numbers that it draws from {DRAWS[also]}{place}, which a replay" in message
    assert message.startswith(
        "Net.train_one_batch: runs eagerly from now on: 4 recordings in a row"
    )
    assert shown[0].filename == __file__
    assert not net.graphs


def test_draws_are_those_of_eager_execution():
    after = []
    for use_graph in (True, False):
        random.seed(3)
        trained(with_python, use_graph=use_graph)
        after.append(random.random())
    assert after[0] == after[1]


def test_draws_of_the_first_recording_alone_do_not_count():
    def once(net):
        if "drawn" not in vars(net):
            net.drawn = float(np.random.rand())

    net, messages, _ = trained(once)
    assert not messages and len(net.graphs) == 1


def with_time(net):
    time.time()


def with_perf_counter(net):
    perf_counter()


def with_date(net):
    datetime.datetime.now()


def with_entropy(net):
    os.urandom(4)


def with_uuid(net):
    uuid.uuid4()


CALLS = {
    with_time: "time.time",
    with_perf_counter: "time.perf_counter",
    with_date: "datetime.now",
    with_entropy: "os.urandom",
    with_uuid: "os.urandom",
}


@pytest.mark.skipif(sys.getprofile() is not None, reason="another profiler is active")
@pytest.mark.parametrize("also", CALLS, ids=lambda also: also.__name__)
def test_clocks_are_named(also):
    net, messages, shown = trained(also)
    (message,) = messages
    assert f"replays do not call {CALLS[also]} at {line_of(also)}, as the step does" in message
    assert shown[0].filename == __file__
    assert len(net.graphs) == 1


def test_clocks_outside_of_the_step_are_not():
    class Timed(Net):
        def elapsed(self):
            return time.time()

    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net = Timed(lambda net: None)
    net.compile([x], is_train=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            net.train_one_batch(x, y)


def with_counter(net):
    global total
    total += 1


def with_dictionary(net):
    STATE["calls"] += 1


def with_list(net):
    LOG.append(1)


def test_lists_outside_of_the_model_are_named():
    net, messages, _ = trained(with_list)
    (message,) = messages
    assert "replays do not set global LOG, as the step does" in message
    assert len(net.graphs) == 1


@pytest.mark.parametrize("also", [with_counter, with_dictionary])
def test_counters_outside_of_the_model_go_on_without_a_warning(also):
    before = total, STATE["calls"]
    net, messages, _ = trained(also, steps=7)
    assert not messages and len(net.graphs) == 1
    assert total + STATE["calls"] == sum(before) + 7


def test_counters_of_the_model_go_on_without_a_warning():
    def count(net):
        net.count = vars(net).get("count", 0) + 1

    net, messages, _ = trained(count, steps=7)
    assert not messages and net.count == 7


def test_a_warning_as_an_error_leaves_the_step_undone():
    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net = Net(with_list)
    net.compile([x], is_train=True)
    net.train_one_batch(x, y)
    before = {name: tensor.to_numpy(t).tobytes() for name, t in net.get_params().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="replays do not set global LOG"):
            net.train_one_batch(x, y)
    assert before == {name: tensor.to_numpy(t).tobytes() for name, t in net.get_params().items()}
    net.train_one_batch(x, y)


class Rare(Net):
    """Does something else in every fifth step, by what recordings do not see."""

    def __init__(self):
        super().__init__(lambda net: None)
        self.count = itertools.count(1)

    def forward(self, x):
        y = self.linear(x)
        return y * 2 if next(self.count) % 5 == 0 else y


def timed(monkeypatch, seconds):
    """Has graphs be compared with new recordings after so many seconds."""
    monkeypatch.setattr(entry, "_LEAST", seconds)
    monkeypatch.setattr(entry, "_PART", 1e9)


def test_what_shows_late_is_found_by_the_seldom_check(monkeypatch):
    timed(monkeypatch, 0.0)
    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net = Rare()
    net.compile([x], is_train=True)
    with pytest.warns(RuntimeWarning, match="was recorded again after [0-9]+ replays") as shown:
        for _ in range(12):
            net.train_one_batch(x, y)
    late = str(shown[0].message)
    assert "the recordings differ: operation" in late and f"at {__file__}:" in late
    assert "replays since the last recording may have left that out" in late


def test_it_is_seldom_and_can_be_switched_off(monkeypatch):
    for seconds, every, wants in ((1e6, None, False), (0.0, None, True), (0.0, False, False)):
        timed(monkeypatch, seconds)
        x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
        net = Net(lambda net: None)
        net.compile([x], is_train=True, check_every=every)
        for _ in range(200):
            net.train_one_batch(x, y)
        assert ("check_every=seldom" in net.explain()) is wants
        assert len(net.graphs) == 1


def test_the_fast_path_ends_when_a_check_is_due(monkeypatch):
    timed(monkeypatch, 0.2)
    x = tensor.from_numpy(X)
    net = Net(lambda net: None)
    net.compile([x], is_train=False)
    until = time.perf_counter() + 20
    while "check_every=seldom" not in net.explain() and time.perf_counter() < until:
        net(x)
    assert "check_every=seldom" in net.explain()
    assert len(net.graphs) == 1


def test_what_is_kept_for_the_check_keeps_no_tensors():
    class Keeping(Net):
        def train_one_batch(self, x, y):
            loss = super().train_one_batch(x, y)
            self.held = x + 1
            return loss

    x, y = tensor.from_numpy(X), tensor.from_numpy(Y)
    net = Keeping(lambda net: None)
    net.held = None
    net.compile([x], is_train=True)
    net.train_one_batch(x, y)
    first = weakref.ref(net.held)
    for _ in range(3):
        net.train_one_batch(x, y)
    net.held = None
    gc.collect()
    net.train_one_batch(x, y)
    gc.collect()
    assert first() is None or first() is net.held


def test_a_debugger_stays():
    def trace(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        _, messages, _ = trained(with_python)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert "draws from Python's random, which a replay" in messages[0]
