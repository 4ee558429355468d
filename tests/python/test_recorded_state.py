"""State in attributes of a recorded model: it is carried on, or its change is noticed."""

import itertools
import warnings

import numpy as np
import pytest
from recorded import (
    CPU,
    RNG,
    B,
    Counting,
    Net,
    batch,
    evaluated,
    pair,
    replays,
    same,
    same_states,
    step,
    tensor,
)
from singa_rs import autograd, layer, module
from singa_rs.tensor import Tensor, from_numpy


def test_hidden_state_in_an_attribute():
    class Recurrent(Net):
        def __init__(self):
            super().__init__()
            self.h = None

        def train_one_batch(self, x, y):
            if self.h is None:
                self.h = Tensor((4, 6)).set_value(0.5)
            self.h = autograd.tanh(self.h + x).detach()
            return super().train_one_batch(self.h, y)

    recorded, eager = pair(Recurrent)
    for _ in range(8):
        step(recorded, eager, *batch())
        same(recorded.h, eager.h)
    assert replays(recorded) == 4


def test_hidden_state_written_in_place():
    class Recurrent(Net):
        def __init__(self):
            super().__init__()
            self.h = Tensor((4, 6))

        def train_one_batch(self, x, y):
            self.h.copy_data(autograd.tanh(self.h + x))
            return super().train_one_batch(self.h, y)

    recorded, eager = pair(Recurrent)
    for i in range(8):
        step(recorded, eager, *batch())
        same(recorded.h, eager.h)
        if i == 4:
            recorded.h.set_value(0), eager.h.set_value(0)
    assert replays(recorded) == 6


def counts(model):
    return model.n, model.stats


def test_counters_continue():
    recorded, eager = pair(Counting)
    for i in range(8):
        step(recorded, eager, *batch())
        assert counts(recorded) == counts(eager) == (i + 1, counts(eager)[1])
    assert replays(recorded) == 6
    recorded.n = eager.n = 100
    for _ in range(3):
        step(recorded, eager, *batch())
    assert counts(recorded) == counts(eager) and recorded.n == 103


def test_flag_between_steps():
    recorded, eager = pair(Counting)
    for i in range(16):
        recorded.flag = eager.flag = i // 4 % 2 == 1
        step(recorded, eager, *batch())
    assert len(recorded.graphs) == 2 and replays(recorded) == 12


@pytest.mark.parametrize("phases", [(False, True), (False, True, 0, None)])
def test_flags_that_are_others_in_each_step(phases):
    recorded, eager = pair(Counting)
    for i in range(8 * len(phases)):
        recorded.flag = eager.flag = phases[i % len(phases)]
        step(recorded, eager, *batch())
    assert len(recorded.graphs) == len(phases) and replays(recorded) == 6 * len(phases)


def test_few_recordings_are_kept_of_flags_that_do_not_come_again():
    recorded, eager = pair(Counting)
    for i in range(12):
        recorded.flag = eager.flag = f"phase {i}"
        step(recorded, eager, *batch())
    assert not recorded.graphs
    (known,) = recorded._graphs.all()[-1]._attempts._known.values()
    assert len(known) == 4


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_state_that_is_reset_between_steps():
    """It is reset to the same tensor twice, then to another one."""

    class Recurrent(module.Module):
        def forward(self, x):
            out = x * self.h
            self.h = out + 1
            return out

    recorded, eager = evaluated(Recurrent)
    states = [tensor(2, 3) for _ in range(3)]
    for i in range(9):
        x = tensor(2, 3)
        for model in (recorded, eager):
            if i % 3 < 2:
                model.h = states[i // 3]
        same(recorded(x), eager(x))
        same(recorded.h, eager.h)


def test_flag_set_within_the_step():
    class First(Net):
        first = True

        def train_one_batch(self, x, y):
            if self.first:
                self.first = False
                x = x * 0
            return super().train_one_batch(x, y)

    recorded, eager = pair(First)
    for _ in range(6):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
@pytest.mark.parametrize("resets", [(1,), (2,), (1, 2), (0, 1, 2, 3, 6)])
def test_counter_that_is_reset_between_steps(resets):
    """A value that recordings saw only once may decide everything that the step does."""

    class Answering(Net):
        n = 0

        def train_one_batch(self, x, y):
            self.n += 1
            return super().train_one_batch(x * self.n, y), self.n

    recorded, eager = pair(Answering)
    for i in range(9):
        for model in (recorded, eager):
            if i in resets:
                model.n = 1
        (made, n), (want, m) = recorded(*B), eager(*B)
        same(made, want)
        assert n == m and recorded.n == eager.n


def test_counter_that_is_reset_before_every_step():
    recorded, eager = pair(Counting)
    for _ in range(6):
        recorded.n = eager.n = 4
        step(recorded, eager, *batch())
        assert recorded.n == eager.n == 5
    assert replays(recorded) == 4
    assert "increments attribute n by 1" in recorded.explain()


def test_condition_on_a_counter():
    recorded, eager = pair(Counting, 2)
    for _ in range(8):
        step(recorded, eager, *batch())
    same_states(recorded, eager)
    assert len(recorded.graphs) == 2
    assert "key: ((n + 1) % 2) == 0 is False" in recorded.explain()


def test_condition_that_shows_late_is_noticed_by_check_every():
    class Late(Net):
        def __init__(self):
            super().__init__()
            self.calls = itertools.count(1)

        def train_one_batch(self, x, y):
            return super().train_one_batch(x if next(self.calls) % 4 else x * 2, y)

    recorded, eager = pair(Late, check_every=3)
    for i in range(12):
        results = recorded(*B), eager(*B)
        if i < 3:
            same(*results)
    assert "differs from the previous one" in recorded.explain()


def test_attribute_that_changes_every_step():
    recorded, eager = pair(Counting)
    with pytest.warns(RuntimeWarning, match="attribute flag2"):
        for i in range(40):
            recorded.flag2 = eager.flag2 = str(i)
            step(recorded, eager, *batch())


def test_number_that_is_set_before_every_step():
    recorded, eager = pair(Counting)
    for i in range(10):
        recorded.flag2 = eager.flag2 = i
        step(recorded, eager, *batch())
    assert replays(recorded) == 7


def test_float_that_the_step_changes():
    class Decaying(Net):
        rate = 1.0

        def train_one_batch(self, x, y):
            self.rate *= 0.5
            return super().train_one_batch(x * self.rate, y)

    recorded, eager = pair(Decaying)
    with pytest.warns(RuntimeWarning, match="Decaying.train_one_batch: runs eagerly"):
        for _ in range(18):
            step(recorded, eager, *batch())
    assert recorded.rate == eager.rate


def test_list_that_the_step_fills():
    class Logging(Net):
        def __init__(self):
            super().__init__()
            self.log = []

        def train_one_batch(self, x, y):
            out, loss = super().train_one_batch(x, y)
            self.log.append(loss)
            return out

    recorded, eager = pair(Logging)
    with pytest.warns(RuntimeWarning, match="attribute log"):
        for _ in range(7):
            step(recorded, eager, *batch())
    same(recorded.log, eager.log)


def test_masks_drawn_in_numpy():
    class Masking(Net):
        def train_one_batch(self, x, y):
            mask = from_numpy((self.rng.random((4, 6)) < 0.5).astype(np.float32))
            return super().train_one_batch(x * mask, y)

    recorded, eager = pair(Masking)
    recorded.rng, eager.rng = np.random.default_rng(0), np.random.default_rng(0)
    with pytest.warns(RuntimeWarning, match=r"other values from NumPy"):
        for _ in range(7):
            step(recorded, eager, *batch())


def test_constant_mask_is_baked_in():
    class Masking(Net):
        def train_one_batch(self, x, y):
            mask = from_numpy(np.eye(4, 6, dtype=np.float32))
            return super().train_one_batch(x * mask, y)

    recorded, eager = pair(Masking)
    for _ in range(5):
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_array_in_an_attribute():
    class Masking(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(x * from_numpy(self.mask), y)

    recorded, eager = pair(Masking)
    for i in range(9):
        if i % 3 == 0:
            recorded.mask = eager.mask = RNG.random((4, 6)).astype(np.float32)
        step(recorded, eager, *batch())
    assert replays(recorded) == 3


def test_function_in_an_attribute():
    class Activated(Net):
        act = staticmethod(autograd.relu)

        def train_one_batch(self, x, y):
            return super().train_one_batch(self.act(x), y)

    recorded, eager = pair(Activated)
    for i in range(9):
        if i % 3 == 0:
            recorded.act = eager.act = (autograd.tanh, autograd.sigmoid)[i % 2]
        step(recorded, eager, *batch())


def test_layer_replaced_between_steps():
    recorded, eager = pair(Net)
    for i in range(8):
        if i == 4:
            for model in (recorded, eager):
                CPU.set_seed(9)
                model.fc2 = layer.Linear(3)
        CPU.set_seed(10)
        results = recorded(*B)
        CPU.set_seed(10)
        same(results, eager(*B))
    same_states(recorded, eager)


def test_unreferenced_tensor_that_is_rebound():
    shift = Tensor((4, 6)).set_value(1)

    class Shifted(Net):
        def train_one_batch(self, x, y):
            return super().train_one_batch(x + shift, y)

    recorded, eager = pair(Shifted)
    for i in range(10):
        if i == 4:
            shift.copy_from(RNG.normal(size=(4, 6)).astype(np.float32))
        if i == 6:
            shift.data = from_numpy(RNG.normal(size=(4, 6)).astype(np.float32))
        step(recorded, eager, *batch())
    assert replays(recorded) == 6 and len(recorded.graphs) == 2


class Alternating(Net):
    """Does something else in every other call."""

    def __init__(self):
        super().__init__()
        self.n = 0

    def train_one_batch(self, x, y):
        self.n += 1
        return super().train_one_batch(autograd.tanh(x) if self.n % 2 else x, y)


@pytest.mark.parametrize("sizes", ["ab" + "a" * 8, "ab" * 6, "aabb" * 3, "aab" * 4, "abb" * 4])
def test_a_counter_that_calls_with_another_key_increment(sizes):
    """Two recordings of one key may both find it odd."""
    recorded, eager = pair(Alternating)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in sizes:
            x, y = batch()
            count = len(y) if size == "a" else len(y) - 1
            step(recorded, eager, x[:count], y[:count])
    same_states(recorded, eager)
    assert replays(recorded) or sizes == "aabb" * 3


def test_graphs_that_a_check_ended_are_forgotten():
    """Their keys, too: later ones are dropped for lack of room without regard to these."""

    class Flagged(Net):
        def __init__(self):
            super().__init__()
            self.flags = [0] * 2000  # of which only the length is compared

        def forward(self, x):
            y = super().forward(x)
            return autograd.relu(y) if self.flags[1500] else y

    model = Flagged()
    model.compile([from_numpy(np.ones((3, 6), np.float32))], is_train=False, check_every=3)
    model.eval()
    for _ in range(4):
        model(from_numpy(np.ones((3, 6), np.float32)))
    model.flags[1500] = 1
    with pytest.warns(RuntimeWarning, match="recorded again after"):
        model(from_numpy(np.ones((3, 6), np.float32)))
    for rows in range(4, 40):
        for _ in range(2):
            model(from_numpy(np.ones((rows, 6), np.float32)))
    assert len(model.graphs) == 16
