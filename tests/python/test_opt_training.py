"""Groups, clipping, accumulation and averages: values, and in recorded steps."""

import math
import re
import warnings

import numpy as np
import pytest
from opt_nets import BATCHES, Net, both, equal, made, trained
from recorded import function, replays
from singa_rs import autograd, opt, tensor
from singa_rs.tensor import Tensor, from_numpy

# ---- groups --------------------------------------------------------------------------------------


def grouped(select, **own):
    def make():
        optimizer = opt.AdamW(0.1, weight_decay=0.1)
        optimizer.group(select, **own)
        return optimizer

    return make


@pytest.mark.parametrize(
    "select", ["two", ["two.W", "two.b"], "two.?", lambda name, p: p.shape[-1] == 2]
)
def test_groups_have_their_own_hyperparameters(select):
    """A group is as an optimizer of its own for its parameters."""
    run = both(Net, grouped(select, lr=0.01, weight_decay=0))
    one = both(Net, lambda: Only("one", opt.AdamW(0.1, weight_decay=0.1)))
    assert run[0]["one.W"].tobytes() == one[0]["one.W"].tobytes()
    net = made(Net, False, opt.AdamW(0.01, weight_decay=0))
    start = trained(net, range(1))
    assert run[0]["two.W"].tobytes() == start[0]["two.W"].tobytes()


class Only(opt.Optimizer):
    """Applies another optimizer to the parameters below a layer."""

    def __init__(self, path, other):
        super().__init__(0.1)
        self.path, self.other = path, other

    def apply(self, param_name, param_value, param_grad):
        if param_name.startswith(self.path):
            self.other.apply(param_name, param_value, param_grad)

    def step(self):
        self.other.step()


def test_groups_follow_the_optimizer_and_their_own_schedules():
    optimizer, params = opt.SGD(0.5, momentum=0.9), [Tensor((2,)) for _ in range(3)]
    fixed = optimizer.group([params[0]], lr=opt.LinearDecay(0.1, 2))
    optimizer.group({"b": params[0], "c": params[1]}, momentum=0)
    one = from_numpy(np.ones(2, np.float32))
    assert (
        optimizer.member("x", params[0]) is fixed and optimizer.member("y", params[2]) is optimizer
    )
    for lr in (0.5, 0.25):
        optimizer.lr = lr
        for name, param in zip("abc", params, strict=True):
            optimizer.apply(name, param, one)
        optimizer.step()
    got = [p.to_numpy()[0] for p in params]
    np.testing.assert_allclose(got, [-0.1 - 0.05 * 1.9, -0.75, -0.5 - 0.25 * 1.9], rtol=1e-6)
    assert set(optimizer.moments) == {"a", "c"}
    fixed.lr = 0.3
    np.testing.assert_allclose(fixed.lr_value.item(), 0.3)
    assert float(optimizer.lr) == 0.25


def test_groups_of_double_parameters():
    optimizer = opt.SGD(0.1)
    group = optimizer.group("p", lr=0.3)
    param = Tensor((1,), dtype="float64")
    optimizer.apply("p", param, from_numpy(np.ones(1), dtype="float64"))
    assert param.item() == -0.3 and group.lr_value.dtype == tensor.float64


class Two(Net):
    """Two optimizers of one loss, each of one layer."""

    def train_one_batch(self, x, y):
        loss = autograd.mse_loss(self.forward(x), y)
        self.optimizer[0](loss)
        again = autograd.mse_loss(self.forward(x), y)
        self.optimizer[1](again)
        return again


def test_optimizers_update_what_they_own():
    def make():
        return [opt.SGD(0.1, params="one"), opt.Adam(0.01, params=["two.W"])]

    run = both(Two, make)
    assert all(step["two.b"].tobytes() == run[0]["two.b"].tobytes() for step in run)
    for name in ("one.W", "one.b", "two.W"):
        assert run[0][name].tobytes() != run[1][name].tobytes()
    net = made(Net, False, opt.SGD(0.1, params="decoder"))
    with pytest.raises(ValueError, match="none of its params"):
        trained(net, range(1))
    given = made(Net, False, None)
    given.optimizer = opt.SGD(0.1, params=given.two.get_params())
    first, second = trained(given, range(2))
    assert first["one.W"].tobytes() == second["one.W"].tobytes()
    assert first["two.W"].tobytes() != second["two.W"].tobytes()


# ---- clipping, accumulation ----------------------------------------------------------------------


def gradients(net, i=0):
    x, y = map(from_numpy, BATCHES[i])
    with autograd._training_scope(True):
        loss = autograd.mse_loss(net.forward(x), y)
        return [(p, g) for p, g in autograd.backward(loss)]


@pytest.mark.parametrize("limit", [0.05, 100.0])
def test_clipping_by_norm(limit):
    net = made(Net, False, None)
    pairs = gradients(net)
    grads = [g.to_numpy().astype(np.float64) for _, g in pairs]
    norm = math.sqrt(sum((g * g).sum() for g in grads))
    factor = min(1, limit / (norm + 1e-6))
    for given in (limit, from_numpy(np.float32([limit]))):
        for (p, clipped), (q, _), g in zip(
            opt.clip_grad_norm(pairs, given), pairs, grads, strict=True
        ):
            assert p is q
            np.testing.assert_allclose(clipped.to_numpy(), g * factor, rtol=1e-5, atol=1e-9)
    before = {k: p.to_numpy() for k, p in net.get_params().items()}
    run = both(Net, lambda: opt.SGD(0.5, clip_norm=limit))
    for (p, _), g in zip(pairs, grads, strict=True):
        want = before[p.name] - 0.5 * g * factor
        np.testing.assert_allclose(run[0][p.name], want, rtol=1e-5, atol=1e-6)


def test_clipping_by_value():
    pairs = gradients(made(Net, False, None))
    before = {p.name: p.to_numpy() for p, _ in pairs}
    run = both(Net, lambda: opt.SGD(0.5, clip_value=0.01))
    for (p, clipped), (_, g) in zip(opt.clip_grad_value(pairs, 0.01), pairs, strict=True):
        want = np.clip(g.to_numpy(), -np.float32(0.01), np.float32(0.01))
        np.testing.assert_array_equal(clipped.to_numpy(), want)
        np.testing.assert_allclose(run[0][p.name], before[p.name] - 0.5 * want, rtol=1e-6)


def test_limits_change_without_a_recording():
    def lower(net, i):
        net.optimizer.clip_norm = 0.5 / (i + 1)

    both(Net, lambda: opt.SGD(0.5, clip_norm=1.0, clip_value=opt.LinearDecay(0.5, 8, 0.1)), lower)


def test_clipping_keeps_dtypes_and_nan():
    grads = [np.array([3.0, np.nan, -3], np.float16), np.array(2.0, np.float32)]
    pairs = [(from_numpy(g, dtype=g.dtype.name), from_numpy(g, dtype=g.dtype.name)) for g in grads]
    one, two = [g for _, g in opt.clip_grad_value(pairs, 1.0)]
    assert one.dtype == tensor.float16 and one.tolist()[::2] == [1, -1]
    assert math.isnan(one.tolist()[1]) and two.shape == () and two.item() == 1
    assert all(np.isnan(g.to_numpy()).all() for _, g in opt.clip_grad_norm(pairs, 1.0))
    assert opt.clip_grad_norm([], 1.0) == []
    for clip in (opt.clip_grad_norm, opt.clip_grad_value):
        for wrong in (0, -1.0, math.inf):
            with pytest.raises(ValueError, match="clip_grad"):
                clip(pairs, wrong)


class Parts(Net):
    """Accumulates the gradients of the first half of each batch."""

    def train_one_batch(self, x, y):
        first = autograd.mse_loss(self.forward(x[:2]), y[:2]) * 0.5
        self.optimizer.accumulate(first)
        loss = autograd.mse_loss(self.forward(x[2:]), y[2:]) * 0.5
        self.optimizer(loss)
        return loss


def test_accumulated_gradients_are_those_of_the_whole_batch():
    for options in ({}, {"clip_norm": 0.3}, {"clip_value": 0.05}, {"params": "two"}):
        run = both(Parts, lambda options=options: opt.SGD(0.1, momentum=0.9, **options))
        whole = trained(made(Net, False, opt.SGD(0.1, momentum=0.9, **options)))
        for one, other in zip(run, whole, strict=True):
            for name, value in one.items():
                np.testing.assert_allclose(value, other[name], rtol=2e-4, atol=2e-6)


class Alternating(Net):
    """Updates with every second batch."""

    def train_one_batch(self, x, y, last):
        loss = autograd.mse_loss(self.forward(x), y)
        (self.optimizer if last else self.optimizer.accumulate)(loss)
        return loss


def test_accumulation_over_calls_continues_from_states():
    def run(net, steps):
        for i in steps:
            net.train_one_batch(*map(from_numpy, BATCHES[i % 8]), i % 2 == 1)
        return {k: p.to_numpy() for k, p in net.get_params().items()}

    nets = [made(Alternating, use_graph, opt.Adam(0.1)) for use_graph in (True, False)]
    equal([run(nets[0], range(12))], [run(nets[1], range(12))])
    assert replays(nets[0])
    whole = run(made(Alternating, False, opt.Adam(0.1)), range(8))
    first = made(Alternating, False, opt.Adam(0.1))
    params = run(first, range(5))
    states = first.optimizer.get_states()
    assert set(states["accumulated"]) == set(params)
    second = made(Alternating, False, opt.Adam(0.1))
    second.set_params(params)
    second.optimizer.set_states(states)
    equal([run(second, range(5, 8))], [whole])


class Failing(opt.SGD):
    """Does not update the first layer while it fails."""

    fails = False

    def apply(self, param_name, param_value, param_grad):
        if self.fails and param_name.startswith("one"):
            raise ArithmeticError(param_name)
        super().apply(param_name, param_value, param_grad)


@pytest.mark.parametrize("options", [{}, {"clip_norm": 100.0}])
def test_an_update_that_fails_keeps_the_sums_of_what_it_did_not_update(options):
    runs = []
    for fails in (False, True):
        net = made(Alternating, False, Failing(0.1, **options))
        net.train_one_batch(*map(from_numpy, BATCHES[0]), False)
        net.optimizer.fails = fails
        x, y = map(from_numpy, BATCHES[1])
        sums = {k: t.to_numpy() for k, t in net.optimizer.get_states()["accumulated"].items()}
        if fails:
            with pytest.raises(ArithmeticError, match="one"):
                net.train_one_batch(x, y, True)
        else:
            net.train_one_batch(x, y, True)
        left = {k: t.to_numpy() for k, t in net.optimizer.get_states()["accumulated"].items()}
        for name, value in left.items():
            is_kept = fails and name.startswith("one")
            assert (value == (sums[name] if is_kept else 0)).all(), name
        runs.append(net.get_params())
    for name in ("two.W", "two.b"):
        assert (runs[0][name].to_numpy() == runs[1][name].to_numpy()).all()


# ---- averages, bad input ------------------------------------------------------------------------


class Averaged(Net):
    """Keeps averages of its parameters."""

    def __init__(self, optimizer):
        super().__init__(optimizer)
        self.average = opt.MovingAverage(0.8)

    def train_one_batch(self, x, y):
        loss = super().train_one_batch(x, y)
        self.average.update(self.get_params())
        return loss


def test_moving_averages():
    nets = [made(Averaged, use_graph, opt.SGD(0.1)) for use_graph in (True, False)]
    runs = [trained(net) for net in nets]
    equal(*runs)
    assert replays(nets[0]) and len(function(nets[0]).entries) == 1
    averages = [{k: t.to_numpy() for k, t in net.average.averages.items()} for net in nets]
    equal(averages[:1], averages[1:])
    for name, value in averages[0].items():
        want = runs[0][0][name].astype(np.float64)
        for step in runs[0][1:]:
            want = 0.8 * want + 0.2 * step[name]
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-7)
    net, last = nets[0], runs[0][-1]
    with net.average.applied(net.get_params()):
        for name, param in net.get_params().items():
            assert param.to_numpy().tobytes() == averages[0][name].tobytes()
    equal([{k: p.to_numpy() for k, p in net.get_params().items()}], [last])
    again = opt.MovingAverage(0.8)
    again.set_states(net.average.get_states())
    trained(net, range(1))
    again.update(net.get_params())
    assert again.averages["one.W"].tolist() == net.average.averages["one.W"].tolist()
    with pytest.raises(ValueError, match="'late' was not there"):
        again.update({"late": Tensor((2,))})
    with pytest.raises(ValueError, match="no average yet"):
        opt.MovingAverage().copy_to(net.get_params())


def test_averages_are_taken_back_when_copying_stops():
    class Stopping(opt.MovingAverage):
        def copy_to(self, params):
            super().copy_to(params)
            raise KeyboardInterrupt

    a, average = tensor.ones((2,)), Stopping(0.5)
    average.set_states({"step_counter": 1, "average": {"a": np.float32([7, 8])}})
    with pytest.raises(KeyboardInterrupt), average.applied({"a": a}):
        pass
    assert a.tolist() == [1, 1]


BAD = [
    (TypeError, "unknown argument 'clip'", lambda: opt.SGD(0.1, clip=1)),
    (ValueError, "clip_norm", lambda: opt.Adam(0.1, clip_norm=-1)),
    (TypeError, "clip_value", lambda: opt.Adam(0.1, clip_value="1")),
    (ValueError, "nothing to select", lambda: opt.SGD(0.1, params={})),
    (TypeError, "params: got 3", lambda: opt.SGD(0.1, params=3)),
    (TypeError, "momenta", lambda: opt.SGD(0.1).group("W", momenta=1)),
    (TypeError, "clip_norm", lambda: opt.SGD(0.1).group("W", clip_norm=1)),
    (ValueError, "lr", lambda: opt.SGD(0.1).group("W", lr=-1)),
    (ValueError, "no groups", lambda: opt.SGD(0.1).group("W").group("b")),
    (ValueError, "decay", lambda: opt.MovingAverage(1.0)),
    (ValueError, "step_size", lambda: opt.StepDecay(0.1, 0)),
    (ValueError, "rise", lambda: opt.OneCycle(0.1, 10, 0.05)),
    (ValueError, "mode", lambda: opt.OnPlateau(0.1, mode="least")),
    (TypeError, "init_value", lambda: opt.Warmup(2, "0.1")),
]


@pytest.mark.parametrize(("error", "says", "make"), BAD)
def test_refused(error, says, make):
    with pytest.raises(error, match=says):
        make()


def gradients_left():
    """A parameter, with the gradient that PyTorch's optimizers would read."""
    w = Tensor(data=np.ones(3, np.float32), requires_grad=True, stores_grad=True)
    autograd.training = True
    autograd.mean(w * w).backward()
    autograd.training = False
    return w


def warned(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("make", [opt.SGD, opt.Adam, opt.RMSProp], ids=lambda make: make.__name__)
def test_a_step_after_backward_alone_says_that_nothing_is_updated(make, monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    optimizer = make(lr=0.1)
    w = gradients_left()
    assert re.match(
        rf"{make.__name__}\.step: no parameter is updated.*want", warned(optimizer.step)[0]
    )
    gradients_left()
    assert not warned(optimizer.step)  # said once
    np.testing.assert_array_equal(w.numpy(), np.ones(3, np.float32))


def test_a_step_of_an_update_of_no_module_says_nothing():
    """Code that `exec` runs may have no module, and is not the package's."""
    made = {}
    exec("def apply(self, name, param, grad): pass", made)
    optimizer = type("Mine", (opt.SGD,), {"apply": made["apply"]})(lr=0.1)
    gradients_left()
    assert not warned(optimizer.step)


def test_a_step_after_an_update_says_nothing(monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    optimizer = opt.SGD(lr=0.1)
    w = gradients_left()
    optimizer.apply("w", w, w.grad)
    assert not warned(optimizer.step)
    assert not warned(optimizer.step)


@pytest.mark.parametrize("call", ["__call__", "accumulate"])
def test_a_loss_that_leads_to_no_parameter(call, monkeypatch):
    monkeypatch.setattr("singa_rs.notices._shown", set())
    monkeypatch.setattr(autograd, "training", True)
    loss, update = (tensor.ones((2,)) * 2).sum(), getattr(opt.Adam(0.1), call)
    assert "Adam: the loss leads to no parameter" in warned(lambda: update(loss))[0]
