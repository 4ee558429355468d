"""Functions element by element, of one operand or several."""

import numpy as np
from singa_rs import autograd
from singa_rs.tensor import Tensor

from .base import Table, plain, slopes

S = (3, 4, 5)
table = Table()

#: Functions with NumPy's name: the bounds of the samples.
OF_ONE = {
    "log1p": (-0.9, 3.0),
    "log2": (0.1, 9.0),
    "log10": (0.1, 20.0),
    "cbrt": (-8.0, 9.0),
    "exp2": (-3.0, 3.0),
    "sinc": (-2.5, 2.6),
    "deg2rad": (-300.0, 300.0),
    "rad2deg": (-3.0, 3.0),
    "trunc": (-3.3, 3.4),
}
for _name, (_low, _high) in OF_ONE.items():
    table.add(
        _name,
        lambda x, name=_name: getattr(x, name)(),
        getattr(np, _name),
        S,
        low=_low,
        high=_high,
        step=1e-3,
        halves=_name != "trunc",
        empty=((0, 3),),
    )
table.add("frac", lambda x: x.frac(), lambda x: x - np.trunc(x), S, step=1e-4, halves=False)
table.add("rsqrt", lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x), S, low=0.3, high=4.0)
table.add(
    "logit", lambda x: x.logit(), lambda x: np.log(x / (1 - x)), S, low=0.1, high=0.8, step=1e-3
)
table.add(
    "logit-eps",
    lambda x: autograd.logit(x, 0.3),
    lambda x: np.log(np.clip(x, 0.3, 0.7) / (1 - np.clip(x, 0.3, 0.7))),
    S,
    low=0.1,
    high=0.9,
    step=1e-5,
)
for _name in ("hypot", "logaddexp", "logaddexp2", "fmod", "fmax", "fmin"):
    table.add(
        _name,
        lambda a, b, name=_name: getattr(a, name)(b),
        getattr(np, _name),
        S,
        (4, 5),
        step=1e-5,
        halves=_name != "fmod",
        empty=((0, 4, 5), (4, 5)),
    )
SIGNS = np.cos(np.arange(5))
table.add("copysign", lambda a: a.copysign(SIGNS), lambda a: np.copysign(a, SIGNS), S, step=1e-5)
table.add(
    "heaviside",
    lambda h: autograd.heaviside(plain([-1.0, 0.0, 2.0], h.dtype), h),
    lambda h: np.heaviside([-1.0, 0.0, 2.0], h),
    (4, 3),
)
table.add("xlogy", lambda a, b: autograd.xlogy(a, b + 3), lambda a, b: a * np.log(b + 3), S, (1, 5))
table.add(
    "xlog1py",
    lambda a, b: autograd.xlog1py(a, b + 3),
    lambda a, b: a * np.log1p(b + 3),
    S,
    (1, 5),
)
table.add("lerp", lambda a, b, w: a.lerp(b, w), lambda a, b, w: a + w * (b - a), S, (4, 1), (5,))
table.add("lerp-number", lambda a, b: a.lerp(b, 0.3), lambda a, b: 0.7 * a + 0.3 * b, S, S)
table.add(
    "addcmul",
    lambda x, a, b: x.addcmul(a, b, 0.5),
    lambda x, a, b: x + 0.5 * a * b,
    S,
    (4, 5),
    (5,),
)
table.add(
    "addcdiv",
    lambda x, a, b: x.addcdiv(a, b + 4),
    lambda x, a, b: x + a / (b + 4),
    S,
    (4, 5),
    (5,),
)
for _name, _of in {
    "signbit": (np.signbit,),
    "logical_not": (np.logical_not,),
}.items():
    table.add(_name, lambda x, name=_name: getattr(x, name)(), *_of, S, smooth=False, halves=False)

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0])
GRID = np.repeat(SPECIAL, 8), np.tile(SPECIAL, 8)
FEW = np.array([-7, -3, 0, 2, 9], np.int32)


def quietly(function, *args):
    with np.errstate(all="ignore"):
        return function(*args)


NEAR = np.array([0.0, 1e-320, -1e-310, 1e-160, 1e-20, -1e-9, 1e-7])

EXACT = {
    "sinc-near-zero": (
        lambda: [plain(NEAR, "float64").sinc(), slopes(lambda x: x.sinc() / 1e-5, NEAR)[0]],
        lambda: [np.ones(7) - (np.pi * NEAR) ** 2 / 6, -(np.pi**2) * NEAR / 3e-5],
    ),
    "sinc-around-its-series": (
        lambda: plain(np.linspace(-0.1, 0.1, 41), "float64").sinc(),
        lambda: np.sinc(np.linspace(-0.1, 0.1, 41)),
    ),
    **{
        f"{name}-special": (
            lambda name=name: getattr(plain(GRID[0], "float64"), name)(plain(GRID[1], "float64")),
            lambda name=name: quietly(getattr(np, name), *GRID),
        )
        for name in (
            "logaddexp", "fmod", "copysign", "heaviside", "fmax", "fmin", "logical_and",
            "logical_or", "logical_xor",
        )
    },
    **{
        f"{name}-special": (
            lambda name=name: getattr(plain(SPECIAL, "float64"), name)(),
            lambda name=name: quietly(getattr(np, name), SPECIAL),
        )
        for name in ("log1p", "log2", "log10", "cbrt", "exp2", "trunc", "signbit", "logical_not")
    },
    "hypot-special": (
        lambda: plain(GRID[0], "float64").hypot(plain(GRID[1], "float64")),
        lambda: np.hypot(*GRID),
    ),
    "log2-powers": (
        lambda: plain(2.0 ** np.arange(-60, 60), "float64").log2(),
        lambda: np.arange(-60.0, 60.0),
    ),
    "log10-powers": (
        lambda: plain(10.0 ** np.arange(0, 10), "float32").log10(),
        lambda: np.arange(0.0, 10.0),
    ),
    "cbrt-cubes": (
        lambda: plain(np.arange(-9.0, 10) ** 3, "float64").cbrt(),
        lambda: np.arange(-9.0, 10),
    ),
    "hypot-large": (
        lambda: plain([3e200, 3e-200], "float64").hypot(plain([4e200, 4e-200], "float64")),
        lambda: np.array([5e200, 5e-200]),
    ),
    "fmod-int": (
        lambda: plain(FEW, "int32").fmod(4),
        lambda: np.fmod(FEW, np.int32(4)),
    ),
    "fmax-int": (
        lambda: plain(FEW, "int32").fmax(plain(FEW[::-1].copy(), "int32")),
        lambda: np.fmax(FEW, FEW[::-1]),
    ),
    "trunc-int": (lambda: plain(FEW, "int32").trunc(), lambda: FEW),
    "signbit-int": (lambda: plain(FEW, "int32").signbit(), lambda: FEW < 0),
    "addcmul-int": (lambda: plain(FEW, "int32").addcmul(FEW, 2), lambda: FEW * 3),
    "xlog1py-zero": (
        lambda: plain([0.0, 0.0], "float64").xlog1py(plain([-1.0, np.nan], "float64")),
        lambda: np.array([0.0, np.nan]),
    ),
    "xlogy-zero": (
        lambda: plain([0.0, 0.0], "float64").xlogy(plain([0.0, np.nan], "float64")),
        lambda: np.array([0.0, np.nan]),
    ),
    "methods": (
        lambda: [
            plain(FEW, "int32").add(1), plain(FEW, "int32").sub(1), plain(FEW, "int32").mul(2),
            plain(FEW, "int32").div(2.0), plain(FEW, "int32").remainder(4),
            plain(FEW, "int32").floor_divide(4), plain(FEW, "int32").maximum(1),
            plain(FEW, "int32").minimum(1), plain(FEW, "int32").less_equal(2),
        ],
        lambda: [
            FEW + np.int32(1), FEW - np.int32(1), FEW * np.int32(2), (FEW / 2).astype("f"),
            FEW % np.int32(4), FEW // np.int32(4), np.maximum(FEW, np.int32(1)),
            np.minimum(FEW, np.int32(1)), FEW <= 2,
        ],
    ),
}  # fmt: skip


REFUSED = {
    "logit: eps": (ValueError, lambda: Tensor((2,)).logit(0.7)),
    "addcmul: value": (TypeError, lambda: Tensor((2,)).addcmul(1.0, 2.0, "x")),
    "hypot: got shapes": (ValueError, lambda: Tensor((2,)).hypot(Tensor((3,)))),
    "lerp: got values of <U1": (TypeError, lambda: Tensor((2,)).lerp(Tensor((2,)), "x")),
}
