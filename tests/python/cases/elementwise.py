"""Unary and binary functions, selection."""

import math
from dataclasses import replace

import numpy as np
from numeric import slope
from scipy import special
from singa_rs import _core, autograd, tensor

from .base import ALL, FLOATS, INTS, NUMBERS, Arg, Bad, Table

S = (3, 4, 5)
BIG = (257, 1025)
NO_INF = (np.nan,)
table = Table()

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    """1 / (1 + e^-x), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def round_away(x):
    """Half away from zero."""
    return np.where(np.isfinite(x), np.sign(x) * np.floor(np.abs(x) + 0.5), x)


def selu(x, alpha, gamma):
    """Klambauer et al. 2017."""
    return gamma * np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0)), x)


def elu(x, alpha):
    """Clevert et al. 2015."""
    return np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0)), x)


def hardsigmoid(x, alpha, gamma):
    """ONNX HardSigmoid."""
    return np.clip(alpha * x + gamma, 0, 1)


# f: (reference, input, the function that differentiates, further options of the case)
ZERO = (0.0,)
HALVES = (-1.5, -0.5, 0.5, 1.5)
WHOLE = (-1.0, 0.0, 1.0)
INTEGER = {"dtypes": NUMBERS}
UNARY = {
    "neg": (np.negative, Arg(S), lambda x: autograd.negative(x), INTEGER),
    "abs": (np.abs, Arg(S, away=ZERO), lambda x: autograd.abs(x), INTEGER),
    "sign": (np.sign, Arg(S, away=ZERO), lambda x: autograd.sign(x), INTEGER),
    "exp": (np.exp, Arg(S), lambda x: autograd.exp(x), {}),
    "exp2": (np.exp2, Arg(S), lambda x: autograd.exp2(x), {}),
    "expm1": (np.expm1, Arg(S), lambda x: autograd.expm1(x), {}),
    "log1p": (np.log1p, Arg(S, -0.8, 4), lambda x: autograd.log1p(x), {}),
    "log2": (np.log2, Arg(S, 0.2, 4), lambda x: autograd.log2(x), {}),
    "log10": (np.log10, Arg(S, 0.2, 4), lambda x: autograd.log10(x), {}),
    "log": (np.log, Arg(S, 0.2, 4), lambda x: autograd.log(x), {"specials": (np.nan, np.inf, 0.0)}),
    "sqrt": (np.sqrt, Arg(S, 0.2, 4), lambda x: autograd.sqrt(x), {}),
    "square": (np.square, Arg(S), lambda x: tensor.square(x), INTEGER),
    "reciprocal": (np.reciprocal, Arg(S, 0.3, 3), lambda x: autograd.reciprocal(x), {}),
    "ceil": (np.ceil, Arg(S, -1.9, 1.9, away=WHOLE), lambda x: autograd.ceil(x), INTEGER),
    "floor": (np.floor, Arg(S, -1.9, 1.9, away=WHOLE), lambda x: autograd.floor(x), INTEGER),
    "round": (round_away, Arg(S, away=HALVES), lambda x: autograd.round(x), INTEGER),
    "rounde": (np.rint, Arg(S, away=HALVES), lambda x: autograd.rounde(x), INTEGER),
    "sin": (np.sin, Arg(S, -8, 8), lambda x: autograd.sin(x), {}),
    "cos": (np.cos, Arg(S, -8, 8), lambda x: autograd.cos(x), {}),
    "tan": (np.tan, Arg(S, -1.2, 1.2), lambda x: autograd.tan(x), {}),
    "asin": (np.arcsin, Arg(S, -0.9, 0.9), lambda x: autograd.asin(x), {}),
    "acos": (np.arccos, Arg(S, -0.9, 0.9), lambda x: autograd.acos(x), {}),
    "atan": (np.arctan, Arg(S), lambda x: autograd.atan(x), {}),
    "sinh": (np.sinh, Arg(S), lambda x: autograd.sinh(x), {}),
    "cosh": (np.cosh, Arg(S), lambda x: autograd.cosh(x), {}),
    "tanh": (np.tanh, Arg(S), lambda x: autograd.tanh(x), {}),
    "asinh": (np.arcsinh, Arg(S), lambda x: autograd.asinh(x), {}),
    "acosh": (np.arccosh, Arg(S, 1.2, 4), lambda x: autograd.acosh(x), {}),
    "atanh": (np.arctanh, Arg(S, -0.9, 0.9), lambda x: autograd.atanh(x), {}),
    "sigmoid": (sigmoid, Arg(S, -6, 6), lambda x: autograd.sigmoid(x), {}),
    "relu": (lambda x: np.maximum(x, 0), Arg(S, away=ZERO), lambda x: autograd.relu(x), INTEGER),
    "softplus": (lambda x: np.logaddexp(x, 0), Arg(S, -6, 6), lambda x: autograd.softplus(x), {}),
    "softsign": (
        lambda x: x / (1 + np.abs(x)),
        Arg(S, away=ZERO),
        lambda x: autograd.softsign(x),
        {"specials": NO_INF},
    ),
    "erf": (erf, Arg(S), lambda x: autograd.erf(x), {}),
    "erfc": (special.erfc, Arg(S), lambda x: autograd.erfc(x), {}),
    "erfinv": (special.erfinv, Arg(S, -0.9, 0.9), lambda x: autograd.erfinv(x), {}),
    "ndtr": (special.ndtr, Arg(S), lambda x: autograd.ndtr(x), {}),
    "log_ndtr": (special.log_ndtr, Arg(S, -9, 3), lambda x: autograd.log_ndtr(x), {}),
    "ndtri": (special.ndtri, Arg(S, 0.1, 0.9), lambda x: autograd.ndtri(x), {}),
    "lgamma": (
        special.gammaln,
        Arg(S, 0.2, 4),
        lambda x: autograd.lgamma(x),
        {"specials": (np.nan, np.inf)},
    ),
    "digamma": (special.digamma, Arg(S, 0.2, 4), lambda x: autograd.digamma(x), {}),
    "polygamma": (
        lambda x, n: special.polygamma(int(n), x),
        Arg(S, 0.6, 4),
        lambda x: autograd.polygamma(2, x),
        {"parameters": {"n": 2.0}, "specials": (np.nan, np.inf)},
    ),
    "gelu": (
        lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
        Arg(S, -3, 3),
        lambda x: autograd.gelu(x),
        {"specials": NO_INF},
    ),
    "silu": (
        lambda x: x * sigmoid(x),
        Arg(S, -3, 3),
        lambda x: autograd.silu(x),
        {"specials": NO_INF},
    ),
    "not": (np.logical_not, Arg(S), None, {"dtypes": ALL, "out": "bool"}),
    "leakyrelu": (
        lambda x, a: np.where(x < 0, a * x, x),
        Arg(S, away=ZERO),
        lambda x: autograd.leakyrelu(x, 0.1),
        {"parameters": {"a": 0.1}},
    ),
    "elu": (
        elu,
        Arg(S, away=ZERO),
        lambda x: autograd.elu(x, 0.7),
        {"parameters": {"alpha": 0.7}},
    ),
    "selu": (
        selu,
        Arg(S, away=ZERO),
        lambda x: autograd.selu(x, 1.5, 1.1),
        {"parameters": {"alpha": 1.5, "gamma": 1.1}},
    ),
    "hardsigmoid": (
        hardsigmoid,
        Arg(S, -3, 3, away=(-2.5, 2.5)),
        lambda x: autograd.hardsigmoid(x, 0.2, 0.5),
        {"parameters": {"alpha": 0.2, "gamma": 0.5}},
    ),
    "clip": (
        lambda x, min, max: np.clip(x, min, max),
        Arg(S, away=WHOLE),
        lambda x: autograd.clip(x, -1, 1),
        {"parameters": {"min": -1.0, "max": 1.0}},
    ),
}


def unary(f, reference, arg, gradient, options):
    """A function's case, and that of its gradient's operation."""
    options = dict(options)
    parameters = options.pop("parameters", {})
    kind = {f: parameters} if parameters else f

    def value(x):
        return reference(x, **parameters)

    refused = () if f == "not" else (Bad(_core.DTypeError, dtypes=("bool",)),)
    table.case(
        "unary",
        value,
        arg,
        attrs={"f": kind},
        gradient=gradient,
        empty=(((0,),), ((2, 0, 3),)),
        large=(BIG,),
        bad=refused,
        **options,
    )
    if gradient is not None:
        unary_grad(kind, value, arg)


def unary_grad(kind, value, arg):
    """(dy, saved) -> dx, where the saved tensor is the input, the output, or left out."""
    saves = _core.unary_saves(_core.Op("unary", f=kind))
    derive = {
        "x": lambda dy, x: (dy, x),
        "y": lambda dy, x: (dy, value(x)),
        None: lambda dy, x: (dy,),
    }[saves]
    short = Bad(_core.ShapeError, shapes=((3, 4, 5), (3, 4, 4)))
    mixed = Bad(_core.DTypeError, dtypes=("float32", "float64"))
    table.case(
        "unary_grad",
        lambda dy, x: dy * slope(value, x),
        arg.shape,
        arg,
        attrs={"f": kind},
        derive=derive,
        derived=(None,) * (1 if saves is None else 2),
        scale=4,
        specials=(),
        empty=(((0,), (0,)), ((2, 0), (2, 0))),
        large=(BIG, BIG),
        bad=() if saves is None else (short, mixed),
    )


for name, (reference, arg, gradient, options) in UNARY.items():
    unary(name, reference, arg, gradient, options)

for label, bounds in {"below": {"max": 1.0}, "above": {"min": -1.0}, "free": {}}.items():
    table.case(
        "unary",
        lambda x, bounds=bounds: np.clip(x, bounds.get("min"), bounds.get("max")) if bounds else x,
        Arg(S, away=WHOLE),
        attrs={"f": {"clip": {"min": None, "max": None, **bounds}}},
        label=label,
        dtypes=NUMBERS,
        gradient=lambda x, bounds=bounds: autograd.clip(x, **bounds),
    )

MIXED = Bad(_core.DTypeError, dtypes=("float32", "float64"))
APART = Bad(_core.ShapeError, shapes=((3, 4), (4, 3)))
NO_BOOL = Bad(_core.DTypeError, dtypes=("bool", "bool"))
POSITIVE = Arg(S, 0.3, 3)
BINARY = {
    "add": (np.add, Arg(S), Arg(S), lambda a, b: autograd.add(a, b), ALL),
    "sub": (np.subtract, Arg(S), Arg(S), lambda a, b: autograd.sub(a, b), NUMBERS),
    "mul": (np.multiply, Arg(S), Arg(S), lambda a, b: autograd.mul(a, b), ALL),
    "div": (np.divide, Arg(S), POSITIVE, lambda a, b: autograd.div(a, b), FLOATS),
    "pow": (np.power, POSITIVE, Arg(S, 0.0, 3), lambda a, b: autograd.pow(a, b), NUMBERS),
    "maximum": (np.maximum, Arg(S), Arg(S, -1.9, 1.8), lambda a, b: autograd.max(a, b), ALL),
    "minimum": (np.minimum, Arg(S), Arg(S, -1.9, 1.8), lambda a, b: autograd.min(a, b), ALL),
    "floor_divide": (np.floor_divide, Arg(S, 0, 9), Arg(S, 1.2, 4), None, NUMBERS),
    "remainder": (np.remainder, Arg(S, -9, 9), Arg(S, 1.2, 4), None, NUMBERS),
}
COMPARE = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}
# How the two inputs broadcast.
SHAPES = {
    "row": (S, (5,)),
    "column": (S, (4, 1)),
    "outer": ((3, 1, 5), (4, 1)),
    "scalar": ((), S),
}


def binary(f, reference, a, b, gradient, dtypes, **options):
    """A function of two tensors: of one shape, and broadcasting."""
    common = dict(attrs={"f": f}, gradient=gradient, dtypes=dtypes, **options)
    table.case(
        "binary",
        reference,
        a,
        b,
        empty=(((0,), (0,)), ((0, 3), (1, 3)), ((2, 0), (1,))),
        large=(BIG, BIG) if "float32" in dtypes else (),
        bad=(MIXED, APART) + (() if "bool" in dtypes else (NO_BOOL,)),
        **common,
    )
    for label, (left, right) in SHAPES.items():
        args = replace(a, shape=left), replace(b, shape=right)
        table.case("binary", reference, *args, label=label, **common)


for name, (reference, a, b, gradient, dtypes) in BINARY.items():
    rules = {"specials": NO_INF} if name in ("floor_divide", "remainder", "pow") else {}
    binary(name, reference, a, b, gradient, dtypes, **rules)
for name, reference in COMPARE.items():
    like = Arg(S, -2, 3, integral=True)
    binary(name, reference, like, like, None, ALL, out="bool")

for name, reference in BITS.items():
    shifts = "shift" in name
    like = Arg(S, 0 if shifts else -9, 9, integral=True)
    dtypes = INTS if shifts else (*INTS, "bool")
    binary(name, reference, like, like, None, dtypes, specials=())


def scalar_case(f, reference, a, scalar, reverse, label="", **options):
    """A function of a tensor and a number; the dtype is kept."""

    def value(x):
        number = x.dtype.type(scalar)
        return reference(number, x) if reverse else reference(x, number)

    table.case(
        "binary_scalar",
        value,
        a,
        attrs={"f": f, "scalar": scalar, "reverse": reverse},
        label="reverse" if reverse else label,
        empty=(((0,),), ((2, 0, 3),)),
        large=() if f in BITS else (BIG,),
        **options,
    )


SCALAR = {
    "add": lambda a: a + 2,
    "sub": lambda a: a - 2,
    "mul": lambda a: a * 2,
    "div": lambda a: a / 2,
    "pow": lambda a: a**2,
}
REVERSE = {
    "sub": lambda a: 2 - a,
    "div": lambda a: 2 / a,
}
for name, (reference, a, b, _, dtypes) in BINARY.items():
    rules = {"dtypes": tuple(dtype for dtype in dtypes if dtype != "bool")}
    if name in ("floor_divide", "remainder", "pow"):
        rules["specials"] = NO_INF
    scalar_case(name, reference, a, 2, False, gradient=SCALAR.get(name), **rules)
    positive = POSITIVE if name == "div" else b
    scalar_case(name, reference, positive, 2, True, gradient=REVERSE.get(name), **rules)
# Exponents for which a product, a quotient or a root takes the place of a power.
for exponent in (1, 3, 0.5, -1, -0.5):
    rules = {"dtypes": NUMBERS if exponent > 0.5 else FLOATS, "specials": NO_INF}
    rules |= {"gradient": lambda a, n=exponent: a**n, "label": f"to-{exponent}"}
    scalar_case("pow", np.power, POSITIVE, exponent, False, **rules)
for name, reference in COMPARE.items():
    like = Arg(S, -2, 3, integral=True)
    for reverse in (False, True):
        scalar_case(name, reference, like, 1, reverse, dtypes=NUMBERS, out="bool")

for name, reference in BITS.items():
    for reverse in (False, True):
        like = Arg(S, 0, 6, integral=True)
        scalar_case(name, reference, like, 2, reverse, dtypes=INTS, specials=())

CHOICE = Arg(S, 0, 2, dtype="bool")
for label, shapes in {"": (S, S, S), "broadcast": ((4, 1), S, (5,))}.items():
    condition, a, b = (
        replace(arg, shape=s) for arg, s in zip((CHOICE, Arg(S), Arg(S)), shapes, strict=True)
    )
    table.case(
        "where",
        np.where,
        condition,
        a,
        b,
        label=label,
        dtypes=ALL,
        gradient=lambda condition, a, b: autograd.where(a, b, condition),
        empty=(((0,), (0,), (0,)), ((2, 1), (2, 0), (1,))),
        bad=(
            Bad(_core.DTypeError, dtypes=("float32", "float32", "float32")),
            Bad(_core.DTypeError, dtypes=("bool", "float32", "float64")),
            Bad(_core.ShapeError, shapes=((3,), (4,), (4,))),
        ),
    )


def link(family, f, *operands):
    """An operation of a region."""
    return {"kind": {"op": family, "f": f}, "operands": operands}


def chained(x, bias, one):
    """The last link's value, and one in the middle."""
    bent = np.tanh(x + bias)
    return bent * one + (x + bias), bent


LINKS = (
    link("binary", "add", 0, 1),
    link("unary", "tanh", 3),
    link("binary", "mul", 4, 2),
    link("binary", "add", 5, 3),
)
for label, bias in {"": S, "row": S[-1:], "column": (S[0], 1, 1)}.items():
    table.case(
        "region",
        chained,
        S,
        bias,
        (1,),
        attrs={"inputs": 3, "links": LINKS, "outputs": (3, 1)},
        label=f"chain-{label}",
        specials=(np.nan,),
        scale=8,
        large={"": (BIG, BIG, (1,)), "row": (BIG, BIG[-1:], (1,))}.get(label),
        empty=(((0, 5), (1, 5), (1,)), ((0, 5), (0, 5), (1,))),
        bad=(Bad(_core.ShapeError, shapes=(S, (7,), (1,))),),
    )
