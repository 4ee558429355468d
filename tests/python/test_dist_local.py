"""Local steps, and averages of parameters after every few of them."""

import dist_models
import numpy as np
import pytest
from recorded import replays
from singa_rs import autograd, device, dist, layer, notices, opt, tensor
from singa_rs.errors import ShapeError
from singa_rs.module import Module
from singa_rs.opt.distributed import local

pytestmark = pytest.mark.usefixtures("quick_start")

TIMEOUT = 60.0
STEPS = 24


def made(every, outer, inner="SGD"):
    inner = {"SGD": lambda: opt.SGD(0.1), "Adam": lambda: opt.Adam(0.02)}[inner]()
    outers = {
        "identity": lambda: opt.SGD(1.0),
        "nesterov": lambda: opt.SGD(0.7, momentum=0.9, nesterov=True),
    }
    return opt.LocalSGD(inner, every, outers[outer]() if outer else None)


def model_of(x, graph, optimizer):
    device.get_default_device().set_seed(1)
    model = dist_models.MLP()
    model.optimizer = optimizer
    model.compile([x], is_train=True, use_graph=graph)
    return model


def parameters(model):
    return {name: one.to_numpy().copy() for name, one in model.get_params().items()}


def share():
    """This rank's batches."""
    rank, size = dist.rank(), dist.size()
    own = slice(rank * dist_models.BATCH // size, (rank + 1) * dist_models.BATCH // size)
    for x, y in dist_models.batches(STEPS):
        yield tensor.from_numpy(x[own]), tensor.from_numpy(y[own])


def run(every, outer, graph, inner="SGD", restored_at=None):
    """Mean losses, the parameters after each step, the exchanges of parameters, and replays."""
    exchanged, average = [], local.average

    def counted(params):
        exchanged.append(sum(param.numel for param in params))
        average(params)

    local.average = counted
    try:
        return _run(every, outer, graph, inner, restored_at, exchanged)
    finally:
        local.average = average


def _run(every, outer, graph, inner, restored_at, exchanged):
    losses, after, model = [], [], None
    for step, (x, y) in enumerate(share()):
        model = model or model_of(x, graph, made(every, outer, inner))
        if step == restored_at:
            states, params = model.optimizer.get_states(), model.get_params()
            model = model_of(x, graph, made(every, outer, inner))
            model.set_params(params)
            model.optimizer.set_states(states)
        losses.append(dist.all_reduce(model(x, y).clone(), "mean").item())
        after.append(parameters(model))
    return losses, after, exchanged, replays(model) if graph else 0


def spawn(n, *args, **given):
    return dist.spawn(_named, n, (args, given), timeout=TIMEOUT)


def _named(args, given):
    return run(*args, **given)


def equal(ones, others):
    return all(np.array_equal(one, others[name]) for name, one in ones.items())


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(("every", "outer"), [(1, None), (2, None), (4, None), (4, "nesterov")])
def test_rounds_end_with_equal_parameters(n, every, outer):
    found = spawn(n, every, outer, False)
    recorded = spawn(n, every, outer, True)
    for step in range(STEPS):
        is_last = (step + 1) % every == 0
        for _, after, _, _ in found[1:]:
            assert equal(after[step], found[0][1][step]) == is_last
    for (losses, after, exchanged, _), (same, ones, _, runs) in zip(found, recorded, strict=True):
        assert losses == same
        assert all(equal(a, b) for a, b in zip(after, ones, strict=True))
        assert exchanged == [16 * 16 + 16 + 16 * 3 + 3] * (STEPS // every)
        # One step learns which parameters there are, and one compares the ranks'.
        assert runs >= STEPS - 2 * 3 - 2
    assert np.mean(found[0][0][-6:]) < 0.7 * np.mean(found[0][0][:6])


def test_averages_after_each_step_are_averages_of_gradients():
    """As long as the optimizer has no moments."""
    want = dist.spawn(_averaged, 2, timeout=TIMEOUT)[0]
    losses = spawn(2, 1, None, True)[0][0]
    np.testing.assert_allclose(losses, want, rtol=1e-5)


def _averaged():
    made, model = [], None
    for x, y in share():
        model = model or model_of(x, True, opt.DistOpt(opt.SGD(0.1)))
        made.append(dist.all_reduce(model(x, y).clone(), "mean").item())
    return made


def test_an_outer_step_of_the_whole_change_is_the_average():
    want, made = (spawn(2, 4, outer, True)[0] for outer in (None, "identity"))
    np.testing.assert_allclose(made[0], want[0], rtol=1e-4)


def test_the_outer_update_is_that_of_its_formula():
    """Nesterov's momentum of the changes of rounds, computed by hand from the ranks' parameters."""
    every, lr, momentum = 3, 0.7, 0.9
    found = [after for _, after, _, _ in spawn(2, every, "nesterov", False)]
    start = dist.spawn(_initial, 2, timeout=TIMEOUT)[0]
    first = [local_steps(rank, start, every) for rank in range(2)]
    for name, anchor in start.items():
        change = anchor - (first[0][name] + first[1][name]) / 2
        want = anchor - lr * (change + momentum * change)
        np.testing.assert_allclose(found[0][every - 1][name], want, rtol=1e-4, atol=1e-6)


def _initial():
    x, _ = next(share())
    return parameters(model_of(x, False, opt.SGD(0.1)))


def local_steps(rank, start, count):
    """The parameters of a rank after its first steps from `start`."""
    return dist.spawn(_alone, 2, (start, count), timeout=TIMEOUT)[rank]


def _alone(start, count):
    batches = share()
    x, y = next(batches)
    model = model_of(x, False, opt.SGD(0.1))
    model.set_params(start)
    for _ in range(count):
        model(x, y)
        x, y = next(batches)
    return parameters(model)


@pytest.mark.parametrize("outer", [None, "nesterov"])
def test_states_continue_a_round(outer):
    want = spawn(2, 4, outer, True, inner="Adam")
    made = spawn(2, 4, outer, True, inner="Adam", restored_at=10)
    for (losses, after, _, _), (same, ones, _, _) in zip(want, made, strict=True):
        assert losses == same
        assert equal(after[-1], ones[-1])


@pytest.mark.parametrize("every", [2, 4])
def test_a_loop_of_nothing_but_steps_takes_the_same_turns(every):
    """Nothing tells the recorded steps that a turn has come except the steps themselves."""
    eager, recorded = (_losses(every, graph) for graph in (False, True))
    assert recorded == eager


def _losses(every, graph):
    losses, model = [], None
    for x, y in share():
        model = model or model_of(x, graph, made(every, "nesterov"))
        losses.append(model(x, y))
    return [loss.item() for loss in losses]


def test_wrong_arguments():
    with pytest.raises(TypeError, match="LocalSGD: got int for inner, want an Optimizer"):
        opt.LocalSGD(3, 2)
    with pytest.raises(TypeError, match="LocalSGD: got str for outer, want an Optimizer"):
        opt.LocalSGD(opt.SGD(), 2, "SGD")
    with pytest.raises(ValueError, match="LocalSGD: every: got 0, want at least 1"):
        opt.LocalSGD(opt.SGD(), 0)
    with pytest.raises(ValueError, match="an outer SGD with clip_norm, want none"):
        opt.LocalSGD(opt.SGD(), 2, opt.SGD(clip_norm=1.0))
    one = opt.LocalSGD(opt.SGD(), 2, opt.SGD())
    with pytest.raises(ValueError, match="set_states: got no 'outer'"):
        one.set_states(opt.LocalSGD(opt.SGD(), 2).get_states())
    with pytest.raises(ValueError, match="local_steps: got -1"):
        one.set_states({**one.get_states(), "local_steps": -1})


def parameter(value, name):
    made = tensor.Tensor(data=np.array([value], np.float32), requires_grad=True, stores_grad=True)
    made.name = name
    return made


def rounds(first, later, resumes):
    """A parameter after each step, where `every` changes after the first round."""
    param, one, found = parameter(1.0, "p"), opt.LocalSGD(opt.SGD(0.1), first, opt.SGD(0.5)), []
    for step in range(10):
        if step == first and resumes:
            states, one = one.get_states(), opt.LocalSGD(opt.SGD(0.1), later, opt.SGD(0.5))
            one.set_states(states)
        elif step == first:
            one.every = later
        with autograd._training_scope(True):
            one((param * param).sum())
        found.append(param.item())
    return found


@pytest.mark.parametrize("resumes", [False, True])
@pytest.mark.parametrize(("first", "later"), [(4, 4), (4, 3), (2, 5)])
def test_rounds_may_change_their_length(first, later, resumes):
    param = anchor = 1.0
    want, left = [], first
    for _ in range(10):
        param, left = param * 0.8, left - 1
        if not left:
            param = anchor = anchor - 0.5 * (anchor - param)
            left = later
        want.append(param)
    np.testing.assert_allclose(rounds(first, later, resumes), want, rtol=1e-5)


class Two(Module):
    """Two parameters, of which the second may be frozen."""

    def __init__(self):
        self.a, self.b = (layer.Parameter(tensor.full((1,), one)) for one in (1.0, 5.0))

    def forward(self, x):
        return (self.a * self.a * x + self.b * 0.001).sum()

    def train_one_batch(self, x):
        loss = self.forward(x)
        self.optimizer(loss)
        return loss


class Heads(Module):
    """Two heads, of which each step trains one."""

    def __init__(self):
        self.heads = [layer.Linear(2), layer.Linear(2)]

    def forward(self, x, which):
        return (self.heads[which](x) ** 2).mean()

    def train_one_batch(self, x, which):
        loss = self.forward(x, which)
        self.optimizer(loss)
        return loss


def _train_heads(every, outer, graph):
    device.get_default_device().set_seed(1)
    model, x = Heads(), tensor.full((4, 3), float(dist.rank() + 1))
    model.forward(x, 0), model.forward(x, 1)
    model.optimizer = made(every, outer)
    model.compile([x, 0], is_train=True, use_graph=graph)
    found = []
    for step in range(5 * every):
        model(x, step % 2)
        if (step + 1) % every == 0:
            found.append(parameters(model))
    return found


@pytest.mark.parametrize(("every", "outer"), [(2, None), (4, None), (2, "nesterov")])
def test_heads_that_are_trained_in_turn_are_equal_at_the_ends_of_rounds(every, outer):
    first, second = dist.spawn(_train_heads, 2, (every, outer, False), timeout=TIMEOUT)
    assert all(map(equal, first, second)) and not equal(first[0], first[-1])
    recorded = dist.spawn(_train_heads, 2, (every, outer, True), timeout=TIMEOUT)
    assert all(map(equal, first, recorded[0])) and all(map(equal, first, recorded[1]))


@pytest.mark.parametrize("graph", [False, True])
def test_a_parameter_may_join_in_the_midst_of_a_round(graph):
    """Its anchor is what it was before its first update, or after the last round with it."""
    model, x = Two(), tensor.full((1,), 1.0)
    model.optimizer = opt.LocalSGD(opt.SGD(0.1), 4, opt.SGD(0.5))
    model.compile([x], is_train=True, use_graph=graph)
    found, want, b, anchor = [], [], 5.0, 5.0
    for step in range(40):
        model.b.requires_grad = is_free = 5 < step % 20 < 13
        model(x)
        found.append(model.b.item())
        if is_free:
            anchor, b = b if step % 4 == 0 else anchor, b - 1e-4
        if is_free and step % 4 == 3:
            b = anchor = (anchor + b) / 2
        want.append(b)
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_assigned_lengths_and_optimizers_are_checked():
    one = opt.LocalSGD(opt.SGD(0.1), 3)
    for value in (0, 2.5, "x"):
        with pytest.raises((TypeError, ValueError), match="LocalSGD: every: got"):
            one.every = value
    with pytest.raises(ValueError, match="an outer SGD with clip_norm, want none"):
        one.outer = opt.SGD(0.1, clip_norm=1.0)
    with pytest.raises(TypeError, match="got int for inner"):
        one.opt = 3
    assert (one.every, one.outer) == (3, None)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("part", ["inner", "outer", "rank"])
def test_states_are_set_all_or_none(part, monkeypatch):
    monkeypatch.setattr(notices, "_shown", set())

    def trained(value, steps):
        param = parameter(value, "a")
        one = opt.LocalSGD(opt.SGD(0.1, momentum=0.9), 3, opt.SGD(0.5, momentum=0.9))
        with autograd._training_scope(True):
            for _ in range(steps):
                one((param * param).sum())
        return one, param

    def shown(one):
        states = one.get_states()
        moments = [states[key]["moments"]["a"].item() for key in ("inner", "outer")]
        return moments, states["anchor"]["a"].item(), states["place"], states["local_steps"]

    (other, _kept), (one, _held) = trained(1.0, 3), trained(2.0, 4)
    states, before = other.get_states(), shown(one)
    if part == "rank":
        wrong = {"rank": 1, "ranks": 2}
    else:
        wrong = {part: {**states[part], "moments": {"a": tensor.zeros((7,))}}}
    with pytest.raises((ShapeError, UserWarning), match="moments|rank 1 of 2"):
        one.set_states({**states, **wrong})
    assert shown(one) == before
