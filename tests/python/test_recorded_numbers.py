"""Numbers that change from step to step: counters, epochs, temperatures. What a step does with them
is the same in replays as in eager execution."""

import gc
import warnings
from collections import deque
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numbers_used import CHANGES, SETTINGS, USES, Using, X, alike, plain, replays, same, steps
from recorded import tensor
from singa_rs import layer, module
from singa_rs.record.symbols import LARGEST, MOST_DECISIONS, Symbol
from singa_rs.tensor import from_numpy, zeros


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("use", USES)
def test_uses(use, change):
    alike(lambda: Using(USES[use], CHANGES[change]), steps(9))


@pytest.mark.parametrize("use", ["phases", "float first", "decay", "power", "bits"])
@pytest.mark.parametrize("change", [lambda n: n + 0.5, lambda n: n * 0.5 + 1, lambda n: -n])
def test_floats(use, change):
    if use == "bits":
        use = "comparison as a number"
    alike(lambda: Using(USES[use], change), steps(9))


@pytest.mark.parametrize("use", ["phases", "truth", "product", "text", "JSON", "chain"])
def test_numbers_that_change_between_steps(use):
    """An attribute of the model, one of an object in it, an item of a global dictionary."""

    class Reading(Using):
        def train_one_batch(self, x):
            loss = (self.use(self.fc(x), self.n) * self.use(self.fc(x), self.given.n)).mean()
            loss = loss + self.use(self.fc(x), SETTINGS["epoch"]).mean()
            self.optimizer(loss)
            return loss

    def change(model, i):
        model.n, model.given.n, SETTINGS["epoch"] = i // 2, i, i // 4

    alike(lambda: Reading(USES[use], None), steps(14, change))


@pytest.mark.parametrize("changes", [False, True])
def test_numbers_of_an_object_that_is_an_argument(changes):
    class Given(Using):
        def train_one_batch(self, x, settings):
            loss = self.fc(x).mean() * (2 if settings.epoch % 4 == 0 else 1)
            self.optimizer(loss)
            if changes:
                self.n += settings.epoch
                settings.count = self.n // 2
            return loss

    def session(model):
        settings = SimpleNamespace(epoch=0, count=0)
        for i in range(20):
            settings.epoch = i // 2
            yield model(from_numpy(X), settings)
            yield from (model.n, settings.count)

    assert replays(alike(lambda: Given(None, None), session)) >= 10


def test_a_target_that_is_copied_every_third_step():
    class Delayed(Using):
        def __init__(self):
            super().__init__(None, None)
            self.target = layer.Linear(2)

        def forward(self, x):
            return self.fc(x) + self.target(x)

        def train_one_batch(self, x):
            loss = ((self.fc(x) - self.target(x).detach() - 1) ** 2).mean()
            self.optimizer(loss)
            self.n += 1
            if self.n % 3 == 0:
                self.target.W.copy_data(self.fc.W)
            return loss

    model = alike(Delayed, steps(30))
    assert len(model.graphs) == 2 and replays(model) >= 24
    assert "key: (n + 1) % 3 is" not in model.explain()
    assert "key: ((n + 1) % 3) == 0 is True" in model.explain()


def test_a_warm_up_of_many_steps():
    """It ends long after the recordings."""

    class Warming(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean()
            if self.n >= 40:
                loss = loss * 0.5
            self.optimizer(loss)
            self.n += 1
            return loss

    assert replays(alike(lambda: Warming(None, None), steps(60))) >= 56


def test_a_buffer_that_is_written_in_turn():
    class Ring(Using):
        def __init__(self):
            super().__init__(None, None)
            self.queue = zeros((12, 2))

        def train_one_batch(self, x):
            out = self.fc(x)
            loss = (out @ self.queue.detach().T).mean() + out.mean()
            self.optimizer(loss)
            self.queue[self.n : self.n + 4] = out.detach()
            self.n = (self.n + 4) % 12
            return loss

    model = alike(Ring, steps(24))
    assert len(model.graphs) == 3 and replays(model) >= 18


def test_two_numbers_in_one_decision():
    class Two(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean()
            self.n, self.other = self.n + 1, self.other + 2
            if self.other - self.n > 5 or self.n == self.other - 3:
                loss = loss * 2
            self.optimizer(loss)
            return loss

    assert replays(alike(lambda: Two(None, None), steps(20))) >= 14


def test_a_number_that_takes_the_value_of_another():
    class Copying(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean() * (1 + self.other % 2)
            self.optimizer(loss)
            self.other = self.n * 3
            self.n += 1
            return loss

    assert replays(alike(lambda: Copying(None, None), steps(16))) >= 8


def test_a_number_that_steps_set_from_one_that_comes_back():
    """Its first two recordings find it at 0."""

    class Setting(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean() * (2 if self.other > 1 else 1)
            self.optimizer(loss)
            self.n += 1
            self.other = self.n // 3
            return loss

    alike(lambda: Setting(None, None), steps(14))


def test_a_number_that_becomes_a_text():
    class Ending(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean()
            self.optimizer(loss)
            self.given.n = "n" if self.n == 5 else self.n
            self.n += 1
            return loss

    def session(model):
        for _ in range(12):
            yield model(from_numpy(X))
            yield model.given.n

    alike(lambda: Ending(None, None), session)


def test_results_and_steps_of_a_loop():
    class Returning(Using):
        def train_one_batch(self, x):
            for _ in range(LARGEST * 3):
                self.n += 1
            out = self.fc(x)
            return {"loss": out.mean(), "n": [self.n, self.n % 2]}

    def session(model):
        for _ in range(6):
            made = model(from_numpy(X))
            assert type(made["n"][0]) is int
            yield from (made["loss"], *made["n"])

    alike(lambda: Returning(None, None), session)


def test_many_decisions():
    class Deciding(Using):
        def train_one_batch(self, x):
            count = sum(self.n > limit for limit in range(2 * MOST_DECISIONS))
            self.n += 1
            return self.fc(x).mean() * count

    alike(lambda: Deciding(None, None), steps(8))


def test_a_step_that_asks_for_the_type():
    """It would see that it got a symbol."""

    class Asking(Using):
        def train_one_batch(self, x):
            loss = self.fc(x).mean() * (2 if type(self.n) is int else 3)
            self.n += 1
            return loss

    alike(lambda: Asking(None, None), steps(8))


def test_a_history_that_grows():
    class Logging(Using):
        def __init__(self):
            super().__init__(None, None)
            self.last = deque(maxlen=2)

        def train_one_batch(self, x):
            self.last.append((self.n, self.n * 2))
            self.n += 1
            return self.fc(x).mean()

    def session(model):
        for _ in range(8):
            yield model(from_numpy(X))
            assert all(type(one) is int for pair in model.last for one in pair)
            yield from (one for pair in model.last for one in pair)

    alike(Logging, session)


def test_an_error_leaves_numbers():
    class Failing(Using):
        def train_one_batch(self, x):
            self.n += 1
            if self.n == 2:
                raise KeyError("on purpose")
            return self.fc(x).mean()

    model = Failing(None, None)
    model.compile([from_numpy(X)], is_train=True, use_graph=True)
    model(from_numpy(X))
    with pytest.raises(KeyError):
        model(from_numpy(X))
    assert type(model.n) is int and model.n == 1


@pytest.mark.parametrize("compute", [lambda n: 1.0 / (4 - n), lambda n: 1 << (4 - n)])
def test_a_number_that_cannot_be_computed_stops_the_step_before_it_writes(compute):
    class Computing(Using):
        def train_one_batch(self, x):
            self.other = compute(self.n)
            self.n += 1
            loss = self.fc(x).mean()
            self.optimizer(loss)
            return loss

    model = Computing(None, None)
    model.compile([from_numpy(X)], is_train=True, use_graph=True)
    while model.n < (4 if compute(3) == 1.0 else 5):
        model(from_numpy(X))
    before, n, other = model.fc.W.to_numpy(), model.n, model.other
    with pytest.raises((ZeroDivisionError, ValueError)):
        model(from_numpy(X))
    assert (model.fc.W.to_numpy() == before).all()
    assert (model.n, model.other) == (n, other)


def test_numbers_that_never_come_back_are_told():
    model = Using(USES["decay"], lambda n: n + 3)
    model.compile([from_numpy(X)], is_train=True, use_graph=True)
    with pytest.warns(RuntimeWarning, match=r"never replayed; .* is not 0\.\d+, of the attributes"):
        for _ in range(20):
            model(from_numpy(X))


def test_a_symbol_that_outlives_its_step_is_a_number():
    kept = []

    class Keeping(Using):
        def train_one_batch(self, x):
            kept.append(self.n)
            self.n += 1
            return self.fc(x).mean()

    model = Keeping(None, None)
    model.compile([from_numpy(X)], is_train=True, use_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            model(from_numpy(X))
    assert 0 in kept and all(one + 1 == int(one) + 1 for one in kept)
    assert all(type(one + 1) is int for one in kept if type(one) is Symbol)


def test_no_symbols_are_left():
    def count():
        gc.collect()
        return sum(type(one) is Symbol for one in gc.get_objects())

    before = count()
    model = Using(USES["phases"], CHANGES["plus one"])
    model.compile([from_numpy(X)], is_train=True, use_graph=True)
    for _ in range(8):
        model(from_numpy(X))
    assert replays(model) and count() == before


_NUMBERS = st.integers(-4, 9)
_PARTS = st.recursive(
    st.one_of(st.just("n"), st.just("m"), _NUMBERS.map(str)),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*"]), part).map(lambda t: f"({' '.join(t)})"),
        st.tuples(part, st.sampled_from(["//", "%"]), st.integers(1, 5).map(str)).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), part, part).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        part.map(lambda p: f"abs({p})"),
    ),
    max_leaves=5,
)
_TESTS = st.tuples(_PARTS, st.sampled_from(["<", "<=", "==", "!=", ">"]), _PARTS).map(" ".join)


@given(_TESTS, _TESTS, _PARTS, _PARTS)
def test_random_programs(first, second, n, m):
    """Branches on two numbers, which are set to expressions."""
    code = compile(f"({n}) % 23, ({m}) % 19, ({first}), ({second})", "step", "eval")

    class Random(module.Module):
        def __init__(self):
            super().__init__()
            self.n, self.m, self.total = 0, 1, zeros((2,))

        def forward(self, x):
            self.n, self.m, is_first, is_second = eval(code, {}, {"n": self.n, "m": self.m})
            if is_first:
                x = x + 1
            if is_second:
                self.total += x
            return x * 2

    seen = []
    for use_graph in (True, False):
        model = Random()
        model.graph(use_graph)
        model.eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            out = [(plain(model(tensor(2) * 0)), model.n, model.m) for _ in range(10)]
        seen.append((out, plain(model.total)))
    for (made, *numbers), (want, *others) in zip(seen[0][0], seen[1][0], strict=True):
        same(made, want)
        assert numbers == others
    same(seen[0][1], seen[1][1])
