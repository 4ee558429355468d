"""The accuracy of every unary function and of its gradient, in units in the last place: from the
smallest denormal number to the largest, and in the tails."""

from decimal import Decimal

import numpy as np
import precise as p
import pytest
from cases.elementwise import UNARY
from harness import DEVICE
from scipy import special
from singa_rs import _core

D = Decimal
#: Further points of interest: where tails underflow, and where terms cancel.
SPOTS = (0.5, 1.0, 1.25, 2.0, 3.0, 5.0, 8.0, 12.0, 13.5, 14.2, 17.0, 26.0, 37.5, 38.4, 85.0, 88.5)
SPOTS += (95.0, 103.0, 104.5, 108.0, 300.0, 700.0, 705.0, 709.0, 725.0, 744.0, 750.0)


def points(dtype, low, high):
    """Numbers of both signs within these bounds, of every magnitude."""
    tiny, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    rng = np.random.default_rng(3)
    sizes = np.concatenate(
        [
            np.exp(rng.uniform(np.log(float(tiny)), np.log(float(most)), 60)),
            np.exp(rng.uniform(-12, 7, 120)),
            SPOTS * rng.uniform(1 - 1e-3, 1 + 1e-3, len(SPOTS)),
            [float(tiny), float(np.finfo(dtype).tiny), float(most)],
        ]
    )
    with np.errstate(over="ignore"):
        both = np.concatenate([sizes, -sizes]).astype(dtype)
    ends = [v for v in (low, high) if np.isfinite(v) and abs(v) < most]
    inside = rng.uniform(*ends, 60) if len(ends) == 2 else []
    both = np.concatenate([both, np.array([*ends, *inside]).astype(dtype)])
    return both[(both >= low) & (both <= high) & np.isfinite(both)]


INF = np.inf
ALL = (-INF, INF)
NEAR = (-1e6, 1e6)
OPEN = (-1 + 2**-24, 1 - 2**-24)
#: f: its value; its domain; the largest error in float32 and in float64.
VALUES = {
    "neg": (lambda x: x.copy_negate(), ALL, 0, 0),
    "abs": (lambda x: x.copy_abs(), ALL, 0, 0),
    "sign": (lambda x: D(1).copy_sign(x) if x else x, ALL, 0, 0),
    "exp": (p.exp, ALL, 2, 1),
    "expm1": (p.expm1, ALL, 2, 1),
    "exp2": (lambda x: p.exp(x * p.log(D(2))), ALL, 1, 1),
    "log": (p.log, (1e-323, INF), 2, 1),
    "log1p": (p.log1p, (-1 + 2**-24, INF), 1, 1),
    "log2": (lambda x: p.log(x) / p.log(D(2)), (1e-323, INF), 1, 1),
    "log10": (lambda x: p.log(x) / p.log(D(10)), (1e-323, INF), 1, 1.5),
    "sqrt": (lambda x: x.sqrt(), (0, INF), 0.5, 0.5),
    "square": (lambda x: x * x, ALL, 0.5, 0.5),
    "reciprocal": (lambda x: 1 / x, ALL, 0.5, 0.5),
    "sin": (p.sin, NEAR, 1, 1),
    "cos": (p.cos, NEAR, 1, 1),
    "tan": (lambda x: p.sin(x) / p.cos(x), NEAR, 1, 1),
    "asin": (p.asin, (-1, 1), 1, 1),
    "acos": (p.acos, (-1, 1), 1, 1),
    "atan": (p.atan, ALL, 1, 1),
    "sinh": (p.sinh_any, ALL, 1, 2),
    "cosh": (p.cosh, ALL, 1, 2),
    "tanh": (p.tanh_any, ALL, 2, 2.5),
    "asinh": (p.asinh_any, ALL, 1, 2.5),
    "acosh": (p.acosh, (1, INF), 1, 2.5),
    "atanh": (p.atanh_any, OPEN, 1, 2.5),
    "sigmoid": (p.sigmoid, ALL, 2, 2),
    "softplus": (p.softplus, ALL, 1, 2),
    "softsign": (lambda x: x / (1 + abs(x)), ALL, 1.5, 1.5),
    "erf": (p.erf, ALL, 2, 1),
    "erfc": (p.erfc, ALL, 1, 2),
    "erfinv": (p.inverse(special.erfinv, p.erf, p.erf_slope), OPEN, 1, 5),
    "ndtr": (p.normal_cdf, ALL, 1, 2),
    "log_ndtr": (p.log_normal_cdf, ALL, 1, 4),
    "ndtri": (p.inverse(special.ndtri, p.normal_cdf, p.density), (1e-323, 1 - 2**-24), 1, 4),
    "lgamma": (p.lgamma, (1e-323, INF), 2, 4),
    "digamma": (p.digamma, (1e-323, INF), 2, 32),  # its terms cancel near its zero at 1.46
    "gelu": (lambda x: x * p.normal_cdf(x), ALL, 6, 2),
    "silu": (lambda x: x * p.sigmoid(x), ALL, 2, 2),
}


def silu_slope(x):
    """s + x s (1 - s), and how large its terms are."""
    s = p.sigmoid(x)
    return s + x * s * p.sigmoid(-x)


def gelu_slope(x):
    return p.normal_cdf(x) + x * p.density(x)


#: The same for gradients, as functions of the operation's input other than dy, which is 1.
SLOPES = {
    "exp": (lambda y: y, (0, INF), 0, 0),
    "expm1": (p.exp, ALL, 2, 1),
    "exp2": (lambda y: y * p.log(D(2)), (0, INF), 1, 1.5),
    "log": (lambda x: 1 / x, ALL, 0.5, 0.5),
    "log1p": (lambda x: 1 / (1 + x), (-1 + 2**-24, INF), 1.5, 1.5),
    "log2": (lambda x: 1 / (x * p.log(D(2))), ALL, 1.5, 1.5),
    "log10": (lambda x: 1 / (x * p.log(D(10))), ALL, 1.5, 1.5),
    "sqrt": (lambda y: D("0.5") / y, (1e-323, INF), 1, 1),
    "square": (lambda x: 2 * x, ALL, 1, 1),
    "reciprocal": (lambda y: -y * y, ALL, 0.5, 0.5),
    "sin": (p.cos, NEAR, 1, 1),
    "cos": (lambda x: -p.sin(x), NEAR, 1, 1),
    "tan": (lambda y: 1 + y * y, ALL, 1, 1),
    "asin": (lambda x: 1 / ((1 - x) * (1 + x)).sqrt(), (-0.9999, 0.9999), 2.5, 2.5),
    "acos": (lambda x: -1 / ((1 - x) * (1 + x)).sqrt(), (-0.9999, 0.9999), 2.5, 2.5),
    "atan": (lambda x: 1 / (1 + x * x), ALL, 2, 2),
    "sinh": (p.cosh, ALL, 1, 2),
    "cosh": (p.sinh_any, ALL, 1, 2),
    "tanh": (lambda y: (1 - y) * (1 + y), (-1, 1), 1.5, 1.5),
    "asinh": (lambda x: 1 / (1 + x * x).sqrt(), ALL, 2, 2),
    "acosh": (lambda x: 1 / (x * x - 1).sqrt(), (1.0001, INF), 2.5, 2.5),
    "atanh": (lambda x: 1 / ((1 - x) * (1 + x)), (-0.9999, 0.9999), 2, 2),
    "sigmoid": (lambda y: y * (1 - y), (0, 1), 1.5, 1.5),
    "softplus": (lambda y: -p.expm1(-y), (0, INF), 1, 1),
    "softsign": (lambda x: 1 / (1 + abs(x)) ** 2, ALL, 3, 3),
    "erf": (lambda x: 2 / p.PI.sqrt() * p.exp(-x * x), ALL, 2, 2.5),
    "erfc": (lambda x: -p.erf_slope(x), ALL, 2, 2.5),
    "erfinv": (lambda y: 1 / p.erf_slope(y), (-6, 6), 2, 4),
    "ndtr": (p.density, ALL, 1, 4),
    "log_ndtr": (p.log_normal_cdf_slope, ALL, 1, 4),
    "ndtri": (lambda y: 1 / p.density(y), (-12, 8), 2, 4),
    "lgamma": (p.digamma, (1e-323, INF), 2, 4),
    "digamma": (p.polygamma(1), (1e-323, INF), 2, 4),
    "gelu": (gelu_slope, ALL, 6, 4),
    "silu": (silu_slope, ALL, 3, 3),
}
#: The magnitude of terms that cancel: errors are measured relative to it.
TERMS = {
    "gelu": lambda x: D("0.25") if D("-1.5") < x < 0 else D(0),
    "silu": lambda x: D("0.1") if D(-2) < x < 0 else D(0),
    "lgamma": lambda x: D(1),
    "digamma": lambda x: D(1) if x > 1 else D(0),
}
#: Functions of sums and products alone, or without a slope: test_operations.py checks them.
PLAIN = {"ceil", "floor", "round", "rounde", "relu", "not", "leakyrelu", "hardsigmoid", "clip"}
#: Functions with parameters, which have tests of their own.
PARAMETRISED = {"elu", "selu", "polygamma"}
FLOATS = ("float32", "float64")


def measure(got, function, xs, limit, terms=None):
    """Fails if a result is off by more than the limit, and reports where."""
    want = p.exact(function, xs)
    scales = (
        [max(abs(w), t) for w, t in zip(want, p.exact(terms, xs), strict=True)] if terms else None
    )
    errors = p.ulps(got, want, scales)
    worst = int(errors.argmax())
    assert errors[worst] <= limit, (xs[worst], got[worst], float(want[worst]), errors[worst])


def test_every_function_has_a_bound():
    assert set(UNARY) - PLAIN - PARAMETRISED == set(VALUES)
    assert set(SLOPES) == set(VALUES) - {"neg", "abs", "sign"}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", VALUES)
def test_values(f, dtype):
    function, bounds, *limits = VALUES[f]
    xs = points(dtype, *bounds)
    got = _core.Op("unary", f=f)(_core.from_numpy(xs, DEVICE)).to_numpy()
    measure(got, function, xs, limits[FLOATS.index(dtype)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", SLOPES)
def test_gradients(f, dtype):
    function, bounds, *limits = SLOPES[f]
    xs = points(dtype, *bounds)
    ones, saved = (_core.from_numpy(a, DEVICE) for a in (np.ones_like(xs), xs))
    got = _core.Op("unary_grad", f=f)(ones, saved).to_numpy()
    measure(got, function, xs, limits[FLOATS.index(dtype)], TERMS.get(f))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("f", ["elu", "selu"])
def test_values_with_parameters(f, dtype):
    """Parameters are rounded to the dtype first."""
    alpha, gamma = (np.dtype(dtype).type(v) for v in (1.3, 1.1))
    scale = D(float(alpha)) * (D(float(gamma)) if f == "selu" else 1)
    parameters = {"alpha": 1.3} | ({"gamma": 1.1} if f == "selu" else {})
    xs = points(dtype, -INF, 0)
    got = _core.Op("unary", f={f: parameters})(_core.from_numpy(xs, DEVICE)).to_numpy()
    measure(got, lambda x: scale * p.expm1(x), xs, 3 if f == "selu" else 2)


def every_half(dtype):
    """Every number of a half-precision type."""
    bits = np.arange(2**16, dtype=np.uint16)
    if dtype == "float16":
        return _core.from_numpy(bits.view(np.float16), DEVICE)
    floats = _core.from_numpy((bits.astype(np.uint32) << 16).view(np.float32), DEVICE)
    return _core.Op("cast", dtype=dtype)(floats)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", VALUES)
def test_half_precision_is_float32_rounded_once(f, dtype):
    x = every_half(dtype)
    wide = _core.Op("cast", dtype="float32")(x)
    for op, count in ((_core.Op("unary", f=f), 1), (_core.Op("unary_grad", f=f), 2)):
        count = count if _core.unary_saves(_core.Op("unary", f=f)) else 1
        got = op(*[x] * count)
        want = _core.Op("cast", dtype=dtype)(op(*[wide] * count))
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())
