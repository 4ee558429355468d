"""Schedules: values, in recorded steps, and after states were set."""

import math

import numpy as np
import pytest
from opt_nets import Net, both, equal, made, trained
from singa_rs import opt, tensor
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


def test_plateau_of_negative_metrics():
    """A metric is better if it is below `best * (1 - threshold)`, as in PyTorch."""
    optimizer = opt.SGD(opt.OnPlateau(0.5, 0.1, patience=0))
    rates = []
    for metric in (-1.0, -1.0, -0.99995, -0.9):
        optimizer.observe(metric)
        rates.append(round(optimizer.lr_value.item(), 6))
    assert rates == [0.5, 0.5, 0.5, 0.05]
