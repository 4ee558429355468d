"""Undoing a recording restores everything: after plans, after errors, in steps that turn eager."""

import signal
import types
import warnings

import numpy as np
import pytest
from recorded import CPU, B, Net, batch, inputs, pair, same_states, step, tensor
from singa_rs import _core, autograd, layer, module, opt
from singa_rs.errors import GraphError
from singa_rs.tensor import Placeholder, Tensor, from_numpy

X = np.ones((2, 4), np.float32)


class Leaving(module.Module):
    """Leaves gradients in its parameters, as PyTorch programs do, and then calls `then`."""

    def __init__(self, then=None):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.then = then

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x, log=None):
        loss = autograd.reduce_mean(self.fc(x)).reshape((1,))
        loss.backward()
        if self.then is not None:
            self.then(self)
        if log is not None:
            log.append(1)  # no graph can do that, so the step runs eagerly
        for p in self.get_params().values():
            self.optimizer.apply(p.name, p, p.grad)
            p.grad = None
        return loss


def compiled(cls, *args, **options):
    CPU.set_seed(3)
    model = cls(*args)
    model.compile([Placeholder((2, 4), device=CPU)], **options)
    return model


class Failure(Exception):
    pass


def fail(*_):
    raise Failure


def interrupt(*_):
    signal.raise_signal(signal.SIGINT)


def planned(model):
    model.plan(from_numpy(X))


def failed(model):
    model.then, before = fail, model.then
    with pytest.raises(Failure):
        model(from_numpy(X))
    model.then = before


def interrupted(model):
    model.then, before = interrupt, model.then
    with pytest.raises(KeyboardInterrupt):
        model(from_numpy(X))
    model.then = before


def compiled_again(model):
    model.compile([from_numpy(X)])


UNDOINGS = [planned, failed, interrupted, compiled_again]


@pytest.mark.parametrize("undone", UNDOINGS)
def test_gradients_left_in_parameters(undone):
    model, eager = compiled(Leaving), compiled(Leaving, use_graph=False)
    undone(model)
    for p in model.get_params().values():
        assert p.grad is None
    for _ in range(4):
        assert model(from_numpy(X)).item() == eager(from_numpy(X)).item()
    undone(model)
    for _ in range(3):
        assert model(from_numpy(X)).item() == eager(from_numpy(X)).item()
    same_states(model, eager)


def test_gradients_left_by_a_step_that_turns_eager():
    model, eager = compiled(Leaving), compiled(Leaving, use_graph=False)
    for _ in range(3):
        assert model(from_numpy(X), []).item() == eager(from_numpy(X), []).item()
    same_states(model, eager)


def test_gradients_in_parameters_that_a_plan_has_made():
    model = Leaving()
    model.train()
    model.plan(from_numpy(X))
    assert {p.grad for p in model.get_params().values()} == {None}
    model(from_numpy(X))


# ---- everything that a step can change in a tensor -----------------------------------------------

HELD = Tensor(data=np.ones((2, 4), np.float32))


def _set(name, value):
    def change(t):
        setattr(t, name, value(t) if callable(value) else value)

    change.__name__ = name
    return change


def in_place(t):
    with autograd.no_grad():
        t.data = t * 2


def converted(t):
    t.to_type("float64")


def renewed(t):
    t.reset_like(t)


def replaced_by_another(t):
    t.rebind(t * 1)


def left_a_gradient(t):
    if t.requires_grad:
        t.stores_grad = True
        (t * 1).sum().backward()


CHANGES = [
    _set("grad", lambda t: t * 2),
    _set("requires_grad", lambda t: not t.requires_grad),
    _set("stores_grad", lambda t: not t.stores_grad),
    _set("name", "another"),
    _set("creator", lambda t: (t * 2).creator),
    _set("own", lambda t: t * 2),
    in_place,
    converted,
    renewed,
    replaced_by_another,
    left_a_gradient,
]


def looks(t):
    own = {name: value for name, value in t.__dict__.items() if name != "_views"}
    return own, t.shape, t.dtype, t.block_id, t.offset, t.strides, type(t)


class Changing(module.Module):
    """Changes a tensor that it finds somewhere."""

    def __init__(self, where, change, error=False):
        super().__init__()
        self.fc, self.optimizer = layer.Linear(3), opt.SGD(0.1)
        self.state, self.kept = from_numpy(X), [from_numpy(X)]
        self.where, self.change, self.error = where, change, error

    def forward(self, x):
        return self.fc(x)

    def train_one_batch(self, x):
        out = self.fc(x)
        self.change(self.where(self, x))
        if self.error:
            raise Failure
        return out


PLACES = {
    "a parameter": lambda model, x: model.fc.W,
    "a state": lambda model, x: model.state,
    "an item": lambda model, x: model.kept[0],
    "the optimizer's": lambda model, x: model.optimizer.lr_value,
    "the argument": lambda model, x: x,
    "a global": lambda model, x: HELD,
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", ["plan", "error"])
def test_a_tensor_is_as_it_was(place, change, way):
    where = PLACES[place]
    model, x = compiled(Changing, where, change), from_numpy(X)
    tensor, states = where(model, x), model.get_states()
    want, values = looks(tensor), tensor.to_numpy()
    if way == "plan":
        model.plan(x)
    else:
        model.error = True
        with pytest.raises(Failure):
            model(x)
    assert looks(tensor) == want and np.array_equal(tensor.to_numpy(), values)
    assert all(one is states[name] for name, one in model.get_states().items())


def test_a_placeholder_that_a_step_fills_is_unfilled_again():
    held = Placeholder((2, 4), device=CPU)

    class Fills(Leaving):
        def forward(self, x):
            held.copy_from(x)
            return self.fc(held)

    model = Fills()
    model.eval()
    model.plan(from_numpy(X))
    assert type(held) is Placeholder and not held.is_allocated
    held.copy_from(from_numpy(X))
    assert np.array_equal(held.to_numpy(), X)


# ---- the tape, taps, generators, containers, objects ---------------------------------------------


def test_the_tape_of_earlier_computations():
    autograd.training = True
    w = Tensor(data=X, requires_grad=True, stores_grad=True)
    h = w * w

    class Uses(Leaving):
        def train_one_batch(self, x):
            loss = (h * x).sum()
            loss.backward()
            return loss

    model = compiled(Uses)
    model.plan(from_numpy(X))
    assert w.grad is None
    autograd.training = True
    (grad,) = (g for t, g in autograd.backward((h * 2).sum()) if t is w)
    assert np.array_equal(grad.to_numpy(), 4 * X)


def test_values_of_taps_in_the_last_step():
    model = compiled(Leaving)
    with model.tap("fc", grad=True) as tap:
        for _ in range(4):
            model(from_numpy(X))
        value, grad = tap.value.to_numpy(), tap.grad.to_numpy()
        planned(model), failed(model)
        assert np.array_equal(tap.value.to_numpy(), value)
        assert np.array_equal(tap.grad.to_numpy(), grad)


def test_initial_values_that_are_made_again_are_those_of_eager_execution():
    """Layers that a failing first step makes are made again by the next one."""
    answers = []
    for use_graph in (True, False):
        CPU.set_seed(5)
        model = Leaving(then=fail)
        model.train()
        model.graph(use_graph)
        with pytest.raises(Failure):
            model(from_numpy(X))
        model.then = None
        for p in model.get_params().values():
            p.grad = None
        answers.append(model(from_numpy(X)).item())
    assert answers[0] == answers[1]


def test_a_seed_that_an_undone_step_sets():
    model = compiled(Leaving, lambda _: CPU.set_seed(99))
    CPU.set_seed(1)
    want = [_core.random_state(CPU, stream).to_numpy() for stream in ("step", "init")]
    planned(model), failed(model)
    got = [_core.random_state(CPU, stream).to_numpy() for stream in ("step", "init")]
    assert np.array_equal(want, got)


class Settings:
    __slots__ = ("n", "others")

    def __init__(self):
        self.n, self.others = 1, {"a": [1]}


def test_objects_and_containers():
    def change(model):
        model.n += 1
        model.settings.n += 1
        model.settings.others["a"].append(2)
        model.numbers.update({3})
        model.order.move_to_end("a")

    import collections

    model = compiled(Leaving, change)
    model.n, model.settings, model.numbers = 1, Settings(), {1, 2}
    model.order = collections.OrderedDict(a=1, b=2)
    planned(model), failed(model)
    assert (model.n, model.settings.n, model.settings.others) == (1, 1, {"a": [1]})
    assert model.numbers == {1, 2} and list(model.order) == ["a", "b"]


# ---- errors of a run -----------------------------------------------------------------------------


def test_a_run_that_fails_leaves_no_gradient_without_a_value():
    class Picks(Leaving):
        def train_one_batch(self, x, y):
            loss = autograd.softmax_cross_entropy(self.fc(x), y)
            loss.backward()
            return loss

    model, x = compiled(Picks), from_numpy(X)
    wrong, right = (from_numpy(np.full(2, n, np.int32)) for n in (7, 1))
    for _ in range(3):
        with pytest.raises(ValueError, match="out of range"):
            model(x, wrong)
        assert {p.grad for p in model.get_params().values()} == {None}
    model(x, right)
    assert all(np.isfinite(p.grad.to_numpy()).all() for p in model.get_params().values())


def test_an_error_before_a_run_names_nothing_that_an_earlier_run_has_written():
    model = compiled(Leaving, check_finite=True)
    for _ in range(3):
        model(from_numpy(X))
    with pytest.raises(FloatingPointError):
        model(from_numpy(X * np.inf))
    with pytest.raises(GraphError) as error:
        model(Placeholder((2, 4), device=CPU))
    assert "already written" not in str(error.value)


def test_programs_continue_after_undone_recordings():
    recorded, eager = pair(Net)
    for i in range(12):
        if i % 3 == 1:
            recorded.plan(*map(from_numpy, B))
        if i % 4 == 2:
            with warnings.catch_warnings(), pytest.raises(GraphError):
                recorded(Placeholder((4, 6), device=CPU), from_numpy(B[1]))
        step(recorded, eager, *batch(4 if i % 5 else 3))
    assert inputs() and tensor(1) is not None


STARTED = None
SEEN = types.SimpleNamespace(value=False)


class Starting(module.Module):
    """Counts, and sets what lies outside of it from the counter."""

    def __init__(self):
        super().__init__()
        self.n, self.old = 0, None

    def forward(self, x):
        return x

    def train_one_batch(self, x):
        global STARTED
        if self.n == 5 and STARTED is None:
            STARTED = self.n
            x = x * 100
        SEEN.value, self.old = self.n, SEEN.value
        self.n += 1
        return x + 0


def test_what_a_step_that_runs_again_finds_outside():
    """The step is recorded with symbols, and again without, if it keeps one of them."""
    global STARTED
    found = {}
    for use_graph in (False, True):
        STARTED, SEEN.value = None, False
        model = compiled(Starting, use_graph=use_graph)
        found[use_graph] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(10):
                if i == 7:
                    SEEN.value = False
                y = model(from_numpy(X)).numpy()[0, 0].item()
                found[use_graph].append((y, STARTED, model.old, type(model.old)))
    assert found[True] == found[False]
