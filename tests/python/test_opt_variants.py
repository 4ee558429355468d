"""Optimizers that are composed of tensor operations: the same recurrences in NumPy float64."""

import math

import numpy as np
import pytest
from opt_nets import Net, both, equal, made, trained
from singa_rs import opt, tensor
from singa_rs.tensor import Tensor, from_numpy

SHAPE = (5, 3)


def rmsprop(lr, rho, epsilon, weight_decay, momentum=0.0, centered=False):
    def step(t, p, g, s):
        g = g + weight_decay * p
        s["a"] = rho * s.get("a", 0) + (1 - rho) * g * g
        s["g"] = rho * s.get("g", 0) + (1 - rho) * g
        variance = s["a"] - s["g"] ** 2 if centered else s["a"]
        s["b"] = momentum * s.get("b", 0) + g / np.sqrt(variance + epsilon)
        return p - lr * s["b"]

    return step


def adadelta(lr, rho, epsilon, weight_decay):
    def step(t, p, g, s):
        g = g + weight_decay * p
        s["a"] = rho * s.get("a", 0) + (1 - rho) * g * g
        delta = np.sqrt(s.get("d", 0) + epsilon) / np.sqrt(s["a"] + epsilon) * g
        s["d"] = rho * s.get("d", 0) + (1 - rho) * delta * delta
        return p - lr * delta

    return step


def moments(t, g, s, beta_1, beta_2):
    s["m"] = beta_1 * s.get("m", 0) + (1 - beta_1) * g
    s["v"] = beta_2 * s.get("v", 0) + (1 - beta_2) * g * g
    return s["m"], s["v"], 1 - beta_1 ** (t + 1), 1 - beta_2 ** (t + 1)


def amsgrad(lr, beta_1, beta_2, epsilon, weight_decay):
    def step(t, p, g, s):
        m, v, one, two = moments(t, g + weight_decay * p, s, beta_1, beta_2)
        s["most"] = np.maximum(s.get("most", 0), v)
        return p - lr * (m / one) / (np.sqrt(s["most"] / two) + epsilon)

    return step


def nadam(lr, beta_1, beta_2, epsilon, weight_decay, decay):
    def step(t, p, g, s):
        g = g + weight_decay * p
        m, v, _, two = moments(t, g, s, beta_1, beta_2)
        now, ahead = (beta_1 * (1 - 0.5 * 0.96 ** (i * decay)) for i in (t + 1, t + 2))
        s["product"] = s.get("product", 1) * now
        step = (1 - now) / (1 - s["product"]) * g + ahead / (1 - s["product"] * ahead) * m
        return p - lr * step / (np.sqrt(v / two) + epsilon)

    return step


def lamb(lr, beta_1, beta_2, epsilon, weight_decay):
    def step(t, p, g, s):
        m, v, one, two = moments(t, g, s, beta_1, beta_2)
        r = (m / one) / (np.sqrt(v / two) + epsilon) + weight_decay * p
        lengths = np.linalg.norm(p), np.linalg.norm(r)
        return p - lr * (lengths[0] / lengths[1] if min(lengths) else 1) * r

    return step


def muon(lr, momentum, weight_decay, nesterov):
    def step(t, p, g, s):
        s["b"] = momentum * s.get("b", 0) + (1 - momentum) * g
        x = momentum * s["b"] + (1 - momentum) * g if nesterov else s["b"]
        x = (x / (np.linalg.norm(x) + 1e-7)).T
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return p * (1 - lr * weight_decay) - lr * x.T  # fewer outputs than inputs

    return step


PART = (0.8, 0.95, 1e-3, 0.02)
CASES = {
    "momentum": (
        lambda: opt.RMSProp(0.1, 0.8, 1e-3, 0.02, 0.9), rmsprop(0.1, 0.8, 1e-3, 0.02, 0.9)
    ),
    "centered": (
        lambda: opt.RMSProp(0.1, 0.8, 1e-3, 0.02, centered=True),
        rmsprop(0.1, 0.8, 1e-3, 0.02, 0, True),
    ),
    "momentum, centered": (
        lambda: opt.RMSProp(0.1, 0.8, 1e-3, 0.02, 0.9, True),
        rmsprop(0.1, 0.8, 1e-3, 0.02, 0.9, True),
    ),
    "adadelta": (lambda: opt.Adadelta(0.5, 0.8, 1e-3, 0.02), adadelta(0.5, 0.8, 1e-3, 0.02)),
    "amsgrad": (lambda: opt.AMSGrad(0.1, *PART), amsgrad(0.1, *PART)),
    "nadam": (lambda: opt.NAdam(0.1, *PART), nadam(0.1, *PART, 0.004)),
    "nadam, faster": (lambda: opt.NAdam(0.1, *PART, 0.5), nadam(0.1, *PART, 0.5)),
    "lamb": (lambda: opt.LAMB(0.1, *PART), lamb(0.1, *PART)),
    "muon": (lambda: opt.Muon(0.1, 0.9, 0.02), muon(0.1, 0.9, 0.02, True)),
    "muon, plain": (lambda: opt.Muon(0.1, 0.9, 0, False), muon(0.1, 0.9, 0, False)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_recurrence(case, dtype):
    make, step = CASES[case]
    rng = np.random.default_rng(0)
    start = rng.standard_normal(SHAPE).astype(dtype)
    optimizer, param = make(), from_numpy(start, dtype=dtype)
    want, memory = start.astype(np.float64), {}
    for t in range(6):
        grad = rng.standard_normal(SHAPE).astype(dtype)
        optimizer.apply("p", param, from_numpy(grad, dtype=dtype))
        optimizer.step()
        want = step(t, want, grad.astype(np.float64), memory)
    tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(param.to_numpy(), want, rtol=tolerance, atol=tolerance)


def make_for_net(case):
    """An optimizer of all parameters, or with Muon of matrices."""
    optimizer = CASES[case][0]()
    if isinstance(optimizer, opt.Muon):
        return opt.Muon(0.1, params=lambda name, p: p.ndim > 1)
    return optimizer


@pytest.mark.parametrize("case", CASES)
def test_replay_has_the_bits_of_eager_execution(case):
    both(Net, lambda: make_for_net(case))


@pytest.mark.parametrize("case", CASES)
def test_states_continue_a_run(case):
    whole = trained(made(Net, False, make_for_net(case)))
    first = made(Net, False, make_for_net(case))
    params = trained(first, range(4))[-1]
    second = made(Net, False, make_for_net(case))
    second.set_params(params)
    second.optimizer.set_states(first.optimizer.get_states())
    equal(trained(second, range(4, 8)), whole[4:])


def test_groups_of_composed_updates():
    optimizer = opt.RMSProp(0.1, 0.8, 1e-3)
    optimizer.group("b", momentum=0.9, lr=0.5)
    plain, other = opt.RMSProp(0.1, 0.8, 1e-3), opt.RMSProp(0.5, 0.8, 1e-3, momentum=0.9)
    a, b, c, d = (Tensor((2,)) for _ in range(4))
    for value in (1.0, -0.5):
        grad = from_numpy(np.full(2, value, np.float32))
        for one, name, param in (
            (optimizer, "a", a), (optimizer, "b", b), (plain, "c", c), (other, "d", d)
        ):  # fmt: skip
            one.apply(name, param, grad)
    assert a.tolist() == c.tolist() and b.tolist() == d.tolist() and a.tolist() != b.tolist()
    nadam = opt.NAdam(0.1)
    nadam.group("x", lr=0.3)
    for name, param in (("x", a), ("y", b)):
        param.set_value(0)
        nadam.apply(name, param, from_numpy(np.ones(2, np.float32)))
    np.testing.assert_allclose(a.to_numpy(), 3 * b.to_numpy(), rtol=1e-6)


def test_lamb_of_zeros():
    optimizer, param = opt.LAMB(0.1), Tensor((3,))
    optimizer.apply("p", param, from_numpy(np.ones(3, np.float32)))
    np.testing.assert_allclose(param.to_numpy(), [-0.1] * 3, rtol=1e-5)
    optimizer.apply("q", Tensor((3,)), Tensor((3,)))
    assert np.isfinite(optimizer.v["q"].to_numpy()).all()


def test_muon_makes_steps_of_one_size_in_all_directions():
    optimizer, param = opt.Muon(1.0, weight_decay=0), Tensor((4, 3, 3, 3))
    rng = np.random.default_rng(1)
    optimizer.apply("p", param, from_numpy(rng.normal(size=param.shape).astype(np.float32)))
    values = np.linalg.svd(param.to_numpy().reshape(4, 27), compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3


@pytest.mark.parametrize(
    ("shape", "factor"), [((5, 8), math.sqrt(8 / 5)), ((8, 5), 1), ((9, 2, 2), 1.5), ((2, 3, 3), 1)]
)
def test_muon_makes_larger_steps_for_more_outputs_than_inputs(shape, factor):
    optimizer, param = opt.Muon(1.0, weight_decay=0), Tensor(shape)
    rng = np.random.default_rng(1)
    optimizer.apply("p", param, from_numpy(rng.normal(size=shape).astype(np.float32)))
    values = np.linalg.svd(param.to_numpy().reshape(shape[0], -1), compute_uv=False) / factor
    assert values.min() > 0.6 and values.max() < 1.3


BAD = [
    ("Muon: got shape", lambda: opt.Muon().apply("p", Tensor((3,)), Tensor((3,)))),
    ("LAMB: got shapes", lambda: opt.LAMB().apply("p", Tensor((3,)), Tensor((4,)))),
    ("rho", lambda: opt.Adadelta(rho=1)),
    ("momentum_decay", lambda: opt.NAdam(momentum_decay=0)),
    ("iterations", lambda: opt.Muon(iterations=0)),
]


@pytest.mark.parametrize(("says", "call"), BAD)
def test_refused(says, call):
    with pytest.raises(ValueError, match=says):
        call()


def test_dtypes_that_do_not_fit_are_refused():
    for dtypes in (("int32", "int32"), ("float32", "float64")):
        p, g = (Tensor((3,), dtype=getattr(tensor, dtype)) for dtype in dtypes)
        with pytest.raises(TypeError, match="AMSGrad: got dtypes"):
            opt.AMSGrad().apply("p", p, g)


class Reporting(opt.Optimizer):
    def __call__(self, loss):
        return super().__call__(loss)


class Logging(opt.Optimizer):
    def __init__(self, *args, log=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.log = log


class Named(opt.SGD):
    pass


class Heavy(opt.SGD):
    def __init__(self, lr=0.1, **options):
        super().__init__(lr, momentum=0.9, **options)


class Aside:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Explicit(Reporting, opt.Adam):
    def __init__(self, lr):
        opt.Adam.__init__(self, lr)


MIXED = {
    "another call": (type("T", (Reporting, opt.SGD), {}), (0.1, 0.9), lambda: opt.SGD(0.1, 0.9)),
    "cooperative": (type("T", (Logging, opt.SGD), {}), (0.1, 0.9), lambda: opt.SGD(0.1, 0.9)),
    "fused": (type("T", (Logging, Reporting, opt.AdamW), {}), (0.1,), lambda: opt.AdamW(0.1)),
    "composed": (type("T", (Reporting, opt.Lion), {}), (0.01,), lambda: opt.Lion(0.01)),
    "by name": (Explicit, (0.1,), lambda: opt.Adam(0.1)),
    "diamond": (type("T", (Named, Heavy), {}), (), lambda: opt.SGD(0.1, 0.9)),
    "no optimizer": (
        type("T", (type("A", (Aside, opt.SGD), {}), type("B", (Aside, Heavy), {})), {}),
        (),
        lambda: opt.SGD(0.1, 0.9),
    ),
}


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("how", MIXED)
def test_several_bases_are_looked_up_in_pythons_order(how, use_graph):
    kind, args, same = MIXED[how]
    one, want = kind(*args), same()
    assert one.hyperparameters == want.hyperparameters
    assert set(one.get_states()) == {"step_counter"}
    equal(trained(made(Net, use_graph, one)), trained(made(Net, use_graph, want)))
    one.lr = 0.5
    assert one.get_states()["hyperparameters"] == {"lr": 0.5}
