"""Order statistics, averages, covariances; running extremes, integrals, sequences."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain

S = (3, 4, 5)
table = Table()


def logcumsumexp(x, axis):
    return np.logaddexp.accumulate(x, axis)


#: NumPy's name of it since 2.0, or the one before.
trapezoid = np.trapezoid if hasattr(np, "trapezoid") else np.trapz


def running(x, axis, extreme):
    made = extreme.accumulate(x, axis)
    hits = np.moveaxis(x == made, axis, -1)
    places = np.maximum.accumulate(np.where(hits, np.arange(hits.shape[-1]), 0), -1)
    return made, np.moveaxis(places, -1, axis)


Q = np.array([0.1, 0.5, 0.83])
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.1])
AT = np.array([0.0, 0.5, 2.0, 2.5, 4.0])
XP, FP = np.array([-1.5, -0.4, 0.3, 1.6]), np.array([2.0, -1.0, 0.5, 3.0])
CASES = {
    "median": (lambda t: t.median(), np.median),
    "median-axis": (lambda t: t.median(1, True), lambda x: np.median(x, 1, keepdims=True)),
    "median-axes": (lambda t: autograd.median(t, (0, -1)), lambda x: np.median(x, (0, 2))),
    "quantile": (lambda t: t.quantile(Q, 1), lambda x: np.quantile(x, Q, 1)),
    "quantile-axes": (
        lambda t: t.quantile(0.3, (0, 2), True),
        lambda x: np.quantile(x, 0.3, (0, 2), keepdims=True),
    ),
    **{
        f"quantile-{how}": (
            lambda t, how=how: t.quantile(0.37, -1, method=how),
            lambda x, how=how: np.quantile(x, 0.37, -1, method=how),
        )
        for how in ("lower", "higher", "nearest", "midpoint")
    },
    "percentile": (lambda t: t.percentile(60), lambda x: np.percentile(x, 60)),
    "ptp": (lambda t: t.ptp(-1, True), lambda x: np.ptp(x, -1, keepdims=True)),
    "average": (lambda t: autograd.average(t, 1, WEIGHTS), lambda x: np.average(x, 1, WEIGHTS)),
    "average-all": (lambda t: autograd.average(t), np.average),
    "cov": (lambda t: autograd.cov(t[0]), lambda x: np.cov(x[0])),
    "cov-vector": (lambda t: autograd.cov(t[0, 0], 0), lambda x: np.cov(x[0, 0], ddof=0)),
    "cov-row": (lambda t: autograd.cov(t[0, :1]), lambda x: np.cov(x[0, :1])),
    "corrcoef": (lambda t: autograd.corrcoef(t[1]), lambda x: np.corrcoef(x[1])),
    "cummax": (lambda t: t.cummax(1), lambda x: running(x, 1, np.maximum)),
    "cummin": (lambda t: t.cummin(), lambda x: running(x, -1, np.minimum)),
    "logcumsumexp": (lambda t: t.logcumsumexp(1), lambda x: logcumsumexp(x, 1)),
    "trapezoid": (lambda t: autograd.trapezoid(t, dx=0.5), lambda x: trapezoid(x, dx=0.5)),
    "trapezoid-at": (lambda t: autograd.trapezoid(t, AT), lambda x: trapezoid(x, AT)),
    "trapezoid-axis": (
        lambda t: autograd.trapezoid(t, WEIGHTS, axis=1),
        lambda x: trapezoid(x, WEIGHTS, axis=1),
    ),
    "gradient": (
        lambda t: autograd.gradient(t, 0.5, axis=1),
        lambda x: np.gradient(x, 0.5, axis=1),
    ),
    "gradient-all": (lambda t: autograd.gradient(t), lambda x: np.gradient(x)),
    "interp": (lambda t: autograd.interp(t, XP, FP), lambda x: np.interp(x, XP, FP)),
    "interp-ends": (
        lambda t: autograd.interp(t, XP, FP, -7, 9),
        lambda x: np.interp(x, XP, FP, -7, 9),
    ),
    "vander": (lambda t: autograd.vander(t[0, 0]), lambda x: np.vander(x[0, 0])),
    "vander-increasing": (
        lambda t: autograd.vander(t[0, 0], 3, True),
        lambda x: np.vander(x[0, 0], 3, True),
    ),
}
for _name, (_tensors, _arrays) in CASES.items():
    _halves = not _name.startswith(("cum", "quantile-near"))
    table.add(_name, _tensors, _arrays, S, step=1e-5, halves=_halves, scale=2)
for _name in ("nansum", "nanmean", "nanmax", "nanmin"):
    table.add(
        _name,
        lambda t, name=_name: getattr(autograd.where(HOLES, np.nan, t), name)(1),
        lambda x, name=_name: getattr(np, name)(np.where(FLAGS, np.nan, x), 1),
        S,
        step=1e-5,
    )
FLAGS = np.random.default_rng(2).random(S) < 0.3
FLAGS[0, :3] = FLAGS[:, 3] = False
HOLES = plain(FLAGS, "bool")
for _mode in ("full", "same", "valid"):
    for _m in (1, 2, 3, 9):
        table.add(
            f"convolve-{_mode}-{_m}",
            lambda a, v, how=_mode: autograd.convolve(a, v, how),
            lambda a, v, how=_mode: np.convolve(a, v, how),
            (7,),
            (_m,),
            scale=2,
        )
table.add(
    "interp-values",
    lambda f: autograd.interp(plain([-2.0, -1.0, 0.0, 1.6, 3.0], f.dtype), XP, f),
    lambda f: np.interp([-2.0, -1.0, 0.0, 1.6, 3.0], XP, f),
    (4,),
    halves=False,
)

SPECIAL = np.array([1.0, 3.0, np.nan, 2.0, np.inf, 3.0])
WHOLE = np.array([[3, 1, 3, 2, 1], [5, 5, 4, 4, 4]], np.int32)
EXACT = {
    "cummax-nan": (
        lambda: plain(SPECIAL, "float64").cummax(),
        lambda: (np.maximum.accumulate(SPECIAL), np.array([0, 1, 2, 2, 2, 2])),
    ),
    "cummin-int": (
        lambda: plain(WHOLE, "int32").cummin(1),
        lambda: (
            np.minimum.accumulate(WHOLE, 1),
            np.array([[0, 1, 1, 1, 4], [0, 1, 2, 3, 4]]),
        ),
    ),
    "mode": (
        lambda: plain(WHOLE, "int32").mode(),
        lambda: (np.array([1, 4], np.int32), np.array([4, 4])),
    ),
    "mode-keeps": (
        lambda: plain(WHOLE, "int32").mode(1, keepdims=True),
        lambda: (np.array([[1], [4]], np.int32), np.array([[4], [4]])),
    ),
    "median-nan": (lambda: plain(SPECIAL, "float64").median(), lambda: np.median(SPECIAL)),
    "median-int": (
        lambda: plain(WHOLE, "int32").median(0),
        lambda: np.median(WHOLE, 0).astype("f"),
    ),
    "nanmean-int": (lambda: plain(WHOLE).nanmean(), lambda: WHOLE.mean().astype("f")),
    "nansum-int": (lambda: plain(WHOLE, "int32").nansum(0), lambda: np.nansum(WHOLE, 0)),
    "nanmax-none": (
        lambda: plain([[np.nan, np.nan], [1, np.nan]], "float64").nanmax(1),
        lambda: np.array([np.nan, 1.0]),
    ),
    "nanmean-none": (
        lambda: plain([np.nan], "float64").nanmean(),
        lambda: np.array(np.nan),
    ),
    "interp-nan": (
        lambda: autograd.interp(plain(SPECIAL, "float64"), XP, FP),
        lambda: np.interp(SPECIAL, XP, FP),
    ),
    "logcumsumexp-large": (
        lambda: plain([-np.inf, 1000.0, 1000.0], "float64").logcumsumexp(),
        lambda: np.array([-np.inf, 1000.0, 1000 + np.log(2)]),
    ),
    "corrcoef-row": (
        lambda: autograd.corrcoef(plain(WHOLE[:1], "float64")),
        lambda: np.corrcoef(WHOLE[:1]),
    ),
    **{
        f"{name}-no-axes": (
            lambda name=name: getattr(autograd, name)(plain(WHOLE, "float64"), (), True),
            lambda name=name: getattr(np, name)(WHOLE, axis=(), keepdims=True),
        )
        for name in ("var", "std", "nanvar", "nanstd")
    },
    "convolve-int": (
        lambda: autograd.convolve(plain(WHOLE[0], "int32"), WHOLE[1]),
        lambda: np.convolve(*WHOLE),
    ),
}


def of(*shape):
    return Tensor(shape or S)


REFUSED = {
    "median: got shape": (ShapeError, lambda: of(0, 3).median(0)),
    "median: got axes": (ValueError, lambda: of().median(3)),
    "quantile: got q 1.5": (ValueError, lambda: of().quantile(1.5)),
    "quantile: got method": (ValueError, lambda: of().quantile(0.5, method="hazen")),
    "percentile: got q -1": (ValueError, lambda: of().percentile(-1)),
    "average: got weights": (ShapeError, lambda: autograd.average(of(), 1, of(3))),
    "cov: got shape": (ShapeError, lambda: autograd.cov(of())),
    "mode: got shape": (ShapeError, lambda: of(2, 0).mode()),
    "cummax: got axes": (ValueError, lambda: of().cummax(3)),
    "logcumsumexp: got axes": (ValueError, lambda: of().logcumsumexp(3)),
    "trapezoid: got": (ShapeError, lambda: autograd.trapezoid(of(), of(4))),
    "gradient: got shape": (ShapeError, lambda: autograd.gradient(of(1, 3))),
    "convolve: got shapes": (ShapeError, lambda: autograd.convolve(of(2, 2), of(2))),
    "convolve: got mode": (ValueError, lambda: autograd.convolve(of(2), of(2), "half")),
    "interp: got points": (ShapeError, lambda: autograd.interp(of(), of(2), of(3))),
    "vander: got shape": (ShapeError, lambda: autograd.vander(of())),
    "vander: got 0 columns": (ValueError, lambda: autograd.vander(of(2), 0)),
}
