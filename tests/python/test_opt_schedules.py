"""Schedules: values, in recorded steps, and after states were set."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from opt_nets import Net, both, equal, made, trained
from singa_rs import autograd, layer, module, opt, tensor
from singa_rs.tensor import Tensor

# ---- schedules -----------------------------------------------------------------------------------


def cycle(t):
    def wave(start, end, part):
        return end + (start - end) / 2 * (1 + math.cos(math.pi * min(max(part, 0), 1)))

    low, peak = 0.5 / 25, 0.3 * 10 - 1
    if t <= peak:
        return wave(low, 0.5, t / peak)
    return wave(0.5, low / 1e4, (t - peak) / (9 - peak))


SCHEDULES = {
    "step": (lambda: opt.StepDecay(0.5, 3, 0.1), lambda t: 0.5 * 0.1 ** (t // 3)),
    "linear": (lambda: opt.LinearDecay(0.5, 5, 0.1), lambda t: 0.5 - 0.4 * min(t, 5) / 5),
    "cosine": (
        lambda: opt.CosineDecay(0.5, 5, 0.1),
        lambda t: 0.1 + 0.2 * (1 + math.cos(math.pi * min(t, 5) / 5)),
    ),
    "one cycle": (lambda: opt.OneCycle(0.5, 10), cycle),
    "warm-up": (lambda: opt.Warmup(4, 0.5), lambda t: 0.5 * min(t + 1, 4) / 4),
    "warm-up, then": (
        lambda: opt.warmup(3, then=opt.StepDecay(0.5, 2, 0.1)),
        lambda t: 0.5 * (t + 1) / 3 if t < 3 else 0.5 * 0.1 ** ((t - 3) // 2),
    ),
    "plateau": (lambda: opt.OnPlateau(0.5), lambda t: 0.5),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, want = SCHEDULES[name]
    schedule, optimizer = make(), opt.SGD(make())
    for t in range(13):
        value = schedule(Tensor((1,), dtype=tensor.int32).set_value(t))
        assert value.shape == (1,)
        np.testing.assert_allclose(value.item(), want(t), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(optimizer.lr_value.item(), want(t), rtol=1e-6, atol=1e-9)
        optimizer.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_cost_no_recording(name):
    both(Net, lambda: opt.SGD(SCHEDULES[name][0](), momentum=0.9))


def observing(net, i):
    net.optimizer.observe(1.0 if i else 2.0)


def test_plateau_is_followed_at_the_next_update():
    run = both(Net, lambda: opt.SGD(opt.OnPlateau(0.5, 0.1, patience=1)), observing)
    constant = both(Net, lambda: opt.SGD(0.5))
    equal(run[:4], constant[:4])
    assert run[4]["two.b"].tobytes() != constant[4]["two.b"].tobytes()
    optimizer = opt.SGD(opt.Warmup(1, opt.OnPlateau(0.5, 0.1, patience=1, cooldown=1)))
    rates = []
    for metric in (2, 1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5):
        optimizer.observe(metric)
        rates.append(optimizer.lr_value.item())
    want = [0.5] * 3 + [0.05] * 3 + [0.005] * 3 + [0.0005]
    np.testing.assert_allclose(rates, want, rtol=1e-6)
    rising = opt.SGD(opt.OnPlateau(0.5, 0.5, 0, min_value=0.2, mode="max"))
    for metric in (1, 2, 3):
        rising.observe(metric)
    assert rising.lr_value.item() == 0.5
    for metric in (3, 3, 3):
        rising.observe(metric)
    np.testing.assert_allclose(rising.lr_value.item(), 0.2)
    with pytest.raises(ValueError, match="no hyperparameter is an OnPlateau"):
        opt.SGD(0.1).observe(1)
    with pytest.raises(ValueError, match="metric"):
        rising.observe(math.nan)


WRONG = [
    (lambda: opt.ExponentialDecay(0.1, 10, 0.5), ("decay_steps", 0), ("decay_rate", -1)),
    (lambda: opt.ExponentialDecay(0.1, 10, 0.5), ("init_value", math.nan), ("staircase", "no")),
    (lambda: opt.StepDecay(0.1, 10), ("step_size", 0), ("gamma", -0.1), ("step_size", 1.5)),
    (lambda: opt.LinearDecay(0.1, 10), ("decay_steps", 0), ("final_value", math.inf)),
    (lambda: opt.CosineDecay(0.1, 10), ("decay_steps", -1), ("final_value", None)),
    (lambda: opt.OneCycle(0.1, 10), ("total_steps", 2), ("rise", 0.05), ("rise", 2), ("peak", 3)),
    (lambda: opt.OneCycle(0.1, 10, 0.2), ("total_steps", 5), ("div_factor", 0)),
    (lambda: opt.OneCycle(0.1, 10), ("final_div_factor", -1), ("init_value", 1), ("max_value", "")),
    (lambda: opt.Warmup(4, 0.1), ("steps", 0), ("then", "0.1"), ("init_value", 0.1)),
    (lambda: opt.OnPlateau(0.1), ("factor", 2), ("patience", -1), ("mode", "least"), ("mode", 1)),
    (lambda: opt.OnPlateau(0.1), ("init_value", 0.2), ("threshold", -1), ("cooldown", 0.5)),
]


@pytest.mark.parametrize(("make", "wrong"), [(make, wrong) for make, *wrong in WRONG])
def test_what_is_assigned_is_checked_as_what_is_constructed(make, wrong):
    schedule = make()
    optimizer, told = opt.SGD(schedule), repr(schedule)
    for name, value in wrong:
        match = f"{name}|of 5 steps|Constant"
        with pytest.raises((TypeError, ValueError, AttributeError), match=match):
            setattr(schedule, name, value)
        assert repr(schedule) == told and copy.deepcopy(schedule)(optimizer.step_counter).item() > 0


def test_what_is_assigned_counts_from_the_next_step():
    schedule = opt.OneCycle(1.0, 10)
    optimizer = opt.SGD(opt.Warmup(2, schedule))
    schedule.total_steps, schedule.max_value, schedule.rise = 100, 2.0, 0.5
    assert (schedule.peak, schedule.init_value) == (49, 2 / 25)
    optimizer.step()
    fresh = opt.SGD(opt.Warmup(2, opt.OneCycle(2.0, 100, 0.5)))
    fresh.step()
    assert optimizer.lr_value.item() == fresh.lr_value.item()
    assert opt.Warmup(2, schedule).init_value == 1 / 25


# ---- constants -----------------------------------------------------------------------------------


def test_a_constants_value_is_followed():
    def sgd():
        return opt.SGD(0.5, momentum=0.9, weight_decay=0.01)

    def change(value):
        def between(net, i):
            if i == 2:
                value(net.optimizer, "lr", 0.25)
            elif i == 4:
                value(net.optimizer, "momentum", 0.5)

        return between

    def of_the_constant(optimizer, name, number):
        held = getattr(optimizer, name)
        held.init_value = number
        assert getattr(optimizer, name) is held

    runs = [both(Net, sgd, change(value)) for value in (of_the_constant, setattr)]
    equal(*runs)
    assert runs[0][3]["two.b"].tobytes() != both(Net, sgd)[3]["two.b"].tobytes()


def test_a_constants_value_is_checked_and_shared():
    shared = opt.Constant(0.5)
    one, two = opt.SGD(shared), opt.Adam(shared)
    group = one.group("fc", lr=shared)
    shared.init_value = 0.25
    assert [x.lr_value.item() for x in (one, two, group)] == [0.25] * 3
    for wrong in (-1.0, math.nan, "0.1"):
        with pytest.raises((TypeError, ValueError), match=r"init_value|(SGD|Adam): lr"):
            shared.init_value = wrong
    assert [x.lr_value.item() for x in (one, two, group)] == [0.25] * 3
    two.lr = 0.125
    shared.init_value = 1
    assert [x.lr_value.item() for x in (one, two, group)] == [1, 0.125, 1]
    assert one.get_states()["hyperparameters"]["lr"] == 1


@pytest.mark.parametrize("made", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_optimizers_follow_constants_of_their_own(made):
    one = opt.SGD(0.5)
    other = made(one)
    other.lr.init_value = 0.25
    assert (one.lr_value.item(), other.lr_value.item()) == (0.5, 0.25)


def test_a_step_may_change_a_constants_value():
    class Falling(Net):
        def train_one_batch(self, x, y):
            loss = super().train_one_batch(x, y)
            self.optimizer.lr.init_value *= 0.5
            return loss

    nets = [made(Falling, use_graph, opt.SGD(0.5)) for use_graph in (True, False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number differs in each recording
        equal(*(trained(net) for net in nets))
    assert [net.optimizer.lr.init_value for net in nets] == [0.5**9] * 2


# ---- states and averages -------------------------------------------------------------------------


def test_states_of_schedules_and_groups_continue_a_run():
    def make():
        optimizer = opt.SGD(opt.OnPlateau(0.5, 0.1, patience=0), 0.9)
        optimizer.group("two", lr=opt.Warmup(2, opt.OnPlateau(0.25, 0.5, patience=0)))
        return optimizer

    whole = trained(made(Net, False, make()), between=observing)
    first = made(Net, False, make())
    params = trained(first, range(4), observing)[-1]
    states = first.optimizer.get_states()
    assert set(states["schedules"]) == {"lr", "0.lr"}
    second = made(Net, False, make())
    second.set_params(params)
    second.optimizer.set_states(states)
    equal(trained(second, range(4, 8), observing), whole[4:])
    with pytest.raises(ValueError, match="schedules"):
        second.optimizer.set_states({"schedules": {"lr": np.zeros(3)}, "step_counter": 1})
    assert second.optimizer.get_states()["step_counter"] == 8


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize(
    ("make", "place", "value"),
    [
        (lambda: opt.CosineDecay(0.5, 3), "decay_steps", 30),
        (lambda: opt.StepDecay(0.5, 2, 0.1), "gamma", 0.9),
        (lambda: opt.Warmup(2, opt.StepDecay(0.5, 2, 0.1)), "then.gamma", 0.9),
        (lambda: opt.Warmup(2, 0.5), "then.init_value", 0.25),
        (lambda: opt.OnPlateau(0.5, 0.1, patience=0), "patience", 2),
    ],
)
def test_what_is_assigned_to_schedules_is_part_of_states(make, place, value, use_graph):
    def new():
        return made(Net, use_graph, opt.SGD(make(), 0.9))

    def changing(net, i):
        *path, last = place.split(".")
        if i == 1:
            setattr(net.optimizer.lr.then if path else net.optimizer.lr, last, value)
        if net.optimizer.lr.state is not None:
            observing(net, i)

    whole, first, second = trained(new(), between=changing), new(), new()
    assert "hyperparameters" not in first.optimizer.get_states()
    second.set_params(trained(first, range(4), changing)[-1])
    second.optimizer.set_states(first.optimizer.get_states())
    equal(trained(second, range(4, 8), changing), whole[4:])
    assert second.optimizer.get_states()["hyperparameters"].keys() == {"lr"}


def test_plateau_of_negative_metrics():
    """A metric is better if it is below `best * (1 - threshold)`, as in PyTorch."""
    optimizer = opt.SGD(opt.OnPlateau(0.5, 0.1, patience=0))
    rates = []
    for metric in (-1.0, -1.0, -0.99995, -0.9):
        optimizer.observe(metric)
        rates.append(round(optimizer.lr_value.item(), 6))
    assert rates == [0.5, 0.5, 0.5, 0.05]


# ---- numbers -------------------------------------------------------------------------------------


def test_constants_are_as_precise_as_the_optimizer():
    optimizer = opt.SGD(opt.Warmup(2, 0.05), dtype="float64")
    for _ in range(3):
        optimizer.step()
    assert optimizer.lr_value.item() == 0.05


def test_constants_stand_for_numbers():
    rate = opt.SGD(0.1).lr
    assert rate == 0.1 and 0.1 == rate and rate != 0.2 and rate == opt.SGD(0.1).lr
    assert rate < 1 and rate <= 0.1 and 0 < rate and not rate > opt.Constant(0.2)
    assert f"{rate:.3f} {rate}" == "0.100 Constant(0.1)"
    assert [rate + 1, 1 - rate, rate - 1, 2 * rate, rate / 2, 1 / rate, rate**2] == [
        1.1, 0.9, -0.9, 0.2, 0.05, 10.0, 0.1**2,
    ]  # fmt: skip
    assert max(rate * 0.5, 1e-3) == 0.05 and not opt.SGD(0.1).weight_decay
    assert rate != "0.1" and len({rate, opt.SGD(0.1).lr}) == 2
    with pytest.raises(TypeError):
        rate < "1"  # noqa: B015


@pytest.mark.parametrize(
    "ask",
    [float, lambda rate: rate < 1, lambda rate: rate * 0.5, lambda rate: f"{rate:.3f}"],
)
def test_schedules_say_where_their_number_is(ask):
    with pytest.raises(TypeError, match=r"StepDecay: got a schedule.*optimizer\.lr_value\.item"):
        ask(opt.StepDecay(0.1, 2))


class Reading(Net):
    def train_one_batch(self, x, y):
        scale = 2.0 if self.optimizer.lr > 0.3 else 1.0
        loss = autograd.mse_loss(self.forward(x), y) * scale
        self.optimizer(loss)
        return loss


def test_steps_that_read_a_number_follow_it():
    def between(net, i):
        if i == 4:
            net.optimizer.lr = 0.125

    runs = [trained(made(Reading, mode, opt.SGD(0.5)), between=between) for mode in (True, False)]
    equal(*runs)


class Assigning(module.Module):
    """Assigns its learning rate, or writes into its tensor."""

    def __init__(self, writes):
        super().__init__()
        self.w = layer.Parameter(tensor.from_numpy(np.zeros((1, 1)), dtype="float64"))
        self.optimizer, self.writes = opt.SGD(0.5), writes

    def forward(self, x):
        return x @ self.w

    def train_one_batch(self, x):
        if self.writes:
            self.optimizer.lr_value.set_value(0.125)
        else:
            self.optimizer.lr = 0.125
        loss = self.forward(x).sum()
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("writes", [False, True])
def test_what_the_first_step_of_a_double_parameter_assigns_is_used(writes, use_graph):
    net, x = Assigning(writes), tensor.from_numpy(np.ones((1, 1)), dtype="float64")
    net.compile([x], use_graph=use_graph)
    seen = []
    for _ in range(4):
        net(x)
        seen.append(net.w.item())
    assert seen == [-0.125, -0.25, -0.375, -0.5]


def test_a_staircase_of_ones_own_in_singas_way():
    """Quotients of integers are integers, as in NumPy; in SINGA they are float32."""

    class Stairs(opt.DecayScheduler):
        def call(self, step):
            at = step // 3
            assert at.dtype == tensor.int32
            at = at.as_type(tensor.float32)
            base = tensor.Tensor((1,), at.device, at.dtype).set_value(0.5)
            return self.init_value * tensor.pow(base, at)

    one = opt.SGD(Stairs(0.2))
    for _ in range(3):
        one.step()
    assert one.lr_value.tolist() == [np.float32(0.1)]
