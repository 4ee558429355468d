"""Statistics of what is not NaN, k-th elements, membership, intervals, integrals, correlation."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain

S = (3, 4, 5)
table = Table()
RNG = np.random.default_rng(4)
HOLES = RNG.random(S) < 0.3
HOLES[1, 2] = False


def pierced(x):
    """NaN in some places, of tensors and of arrays."""
    if isinstance(x, Tensor):
        return x.masked_fill(plain(HOLES, "bool"), np.nan)
    return np.where(HOLES, np.nan, x)


Q = [0.1, 0.5, 0.83]
CASES = {
    "nanprod": (lambda t: t.nanprod(1), lambda x: np.nanprod(x, 1)),
    "nanvar": (lambda t: t.nanvar(-1, True), lambda x: np.nanvar(x, -1, keepdims=True)),
    "nanvar-all": (lambda t: autograd.nanvar(t, ddof=1), lambda x: np.nanvar(x, ddof=1)),
    "nanstd": (lambda t: t.nanstd((0, 2)), lambda x: np.nanstd(x, (0, 2))),
    "nancumsum": (lambda t: autograd.nancumsum(t, 1), lambda x: np.nancumsum(x, 1)),
    "nancumsum-flat": (lambda t: autograd.nancumsum(t), np.nancumsum),
    "nancumprod": (lambda t: autograd.nancumprod(t, -1), lambda x: np.nancumprod(x, -1)),
    "nanmedian": (lambda t: t.nanmedian(), np.nanmedian),
    "nanmedian-axis": (
        lambda t: t.nanmedian(-1, True),
        lambda x: np.nanmedian(x, -1, keepdims=True),
    ),
    "nanquantile": (lambda t: t.nanquantile(Q, 1), lambda x: np.nanquantile(x, Q, 1)),
    "nanpercentile": (
        lambda t: t.nanpercentile(60, (0, 1)),
        lambda x: np.nanpercentile(x, 60, (0, 1)),
    ),
    **{
        f"nanquantile-{how}": (
            lambda t, how=how: t.nanquantile(0.37, -1, method=how),
            lambda x, how=how: np.nanquantile(x, 0.37, -1, method=how),
        )
        for how in ("lower", "higher", "nearest", "midpoint")
    },
}
for _name, (_tensors, _arrays) in CASES.items():
    table.add(
        _name,
        lambda t, of=_tensors: of(pierced(t)),
        lambda x, of=_arrays: of(pierced(x)),
        S,
        step=1e-5,
        scale=2,
    )
for _name in ("nanargmax", "nanargmin"):
    for _axis in (None, 1, -1):
        table.add(
            f"{_name}-{_axis}",
            lambda t, name=_name, axis=_axis: getattr(pierced(t), name)(axis, axis == 1),
            lambda x, name=_name, axis=_axis: getattr(np, name)(
                pierced(x), axis, keepdims=axis == 1
            ),
            S,
            smooth=False,
            halves=False,
        )


def kth(x, k, axis, keepdims):
    values, places = np.sort(x, axis), np.argsort(x, axis, kind="stable")
    made = [np.take(one, k - 1, axis) for one in (values, places)]
    return [np.expand_dims(one, axis) for one in made] if keepdims else made


table.add("kthvalue", lambda t: t.kthvalue(2, 1), lambda x: kth(x, 2, 1, False), S, halves=False)
table.add(
    "kthvalue-kept",
    lambda t: t.kthvalue(5, -1, True),
    lambda x: kth(x, 5, -1, True),
    S,
    halves=False,
)
table.add("aminmax", lambda t: t.aminmax(1), lambda x: [x.min(1), x.max(1)], S, step=1e-5)
table.add("var_mean", lambda t: autograd.var_mean(t, 1), lambda x: [x.var(1), x.mean(1)], S)
table.add(
    "std_mean",
    lambda t: autograd.std_mean(t, (0, 1), True, 1),
    lambda x: [x.std((0, 1), ddof=1, keepdims=True), x.mean((0, 1), keepdims=True)],
    S,
)
for _p in (1, 2, 3, np.inf):
    table.add(
        f"dist-{_p}",
        lambda a, b, p=_p: a.dist(b, p),
        lambda a, b, p=_p: np.linalg.norm((a - b).ravel(), p),
        S,
        (5,),
        step=1e-5,
        scale=2,
    )

BOUNDS = np.linspace(-1.7, 1.9, 7)
for _right in (False, True):
    for _way in (1, -1):
        table.add(
            f"digitize-{_right}-{_way}",
            lambda x, r=_right, w=_way: x.digitize(plain(BOUNDS[::w].copy(), x.dtype), r),
            lambda x, r=_right, w=_way: np.digitize(x, BOUNDS[::w], r),
            S,
            smooth=False,
            halves=False,
            empty=((0, 2),),
        )
table.add(
    "histogram",
    lambda x: x.histogram(7, (-1.5, 1.9)),
    lambda x: np.histogram(x, 7, (-1.5, 1.9)),
    S,
    smooth=False,
    halves=False,
    same_dtype=False,
    empty=((0,),),
)
table.add(
    "histogram-bounds",
    lambda x: x.histogram(BOUNDS**3, density=True),
    lambda x: np.histogram(x, BOUNDS**3, density=True),
    S,
    smooth=False,
    halves=False,
    same_dtype=False,
)
VALUES = np.linspace(-2, 2, 60).reshape(S)
table.add(
    "histogram-weights",
    lambda w: autograd.histogram(plain(VALUES, "float64"), 5, (-1, 2), weights=w)[0],
    lambda w: np.histogram(VALUES, 5, (-1, 2), weights=w)[0],
    S,
)
for _few in (3, 40):
    _among = RNG.permutation(np.linspace(-2, 2, 62)[1:-1])[:_few]
    for _invert in (False, True):
        table.add(
            f"isin-{_few}-{_invert}",
            lambda x, v=_among, i=_invert: x.isin(plain(v, x.dtype), invert=i),
            lambda x, v=_among, i=_invert: np.isin(x, v, invert=i),
            S,
            smooth=False,
            halves=False,
            empty=((0, 3),),
        )


def integrals(y, axis, x=None, dx=1.0):
    y = np.moveaxis(y, axis, -1)
    steps = dx if x is None else np.diff(x)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) * steps / 2, -1), -1, axis)


AT = np.array([0.0, 0.5, 2.0, 2.5, 4.0])
table.add(
    "cumulative_trapezoid",
    lambda y: autograd.cumulative_trapezoid(y, dx=0.5, axis=1),
    lambda y: integrals(y, 1, dx=0.5),
    S,
)
table.add(
    "cumulative_trapezoid-at",
    lambda y: autograd.cumulative_trapezoid(y, AT),
    lambda y: integrals(y, -1, AT),
    S,
)
for _mode in ("valid", "same", "full"):
    for _n, _m in ((7, 3), (3, 7), (4, 4), (6, 4), (4, 6)):
        table.add(
            f"correlate-{_mode}-{_n}-{_m}",
            lambda a, v, mode=_mode: autograd.correlate(a, v, mode),
            lambda a, v, mode=_mode: np.correlate(a, v, mode),
            (_n,),
            (_m,),
            scale=2,
        )

SPECIAL = np.array([3.0, np.nan, 1.0, -np.inf, np.nan, 3.0, np.inf, 1.0])
ROWS = np.array([[np.nan, -np.inf, np.nan], [np.nan, np.nan, np.inf], [1.0, np.nan, 2.0]])
WHOLE = RNG.integers(-9, 9, (4, 3)).astype(np.int32)


def of_rows():
    return plain(ROWS, "float64")


EXACT = {
    "nanargmax-infinite": (
        lambda: [of_rows().nanargmax(1), of_rows().nanargmin(1), of_rows().nanargmax()],
        # NumPy finds the NaN before an infinity that it put there.
        lambda: [np.array([1, 2, 2]), np.array([1, 2, 0]), np.array(5)],
    ),
    "nanmedian-infinite": (lambda: of_rows().nanmedian(1), lambda: np.nanmedian(ROWS, 1)),
    "nanmedian-none": (
        lambda: plain([[np.nan, np.nan], [1, np.nan]], "float64").nanmedian(1),
        lambda: np.array([np.nan, 1]),
    ),
    "nanvar-none": (
        lambda: plain([[np.nan, np.nan], [1, np.nan]], "float64").nanvar(1),
        lambda: np.array([np.nan, 0]),
    ),
    "nanprod-int": (lambda: plain(WHOLE, "int32").nanprod(1), lambda: np.nanprod(WHOLE, 1)),
    "nanargmin-int": (lambda: plain(WHOLE, "int32").nanargmin(), lambda: np.nanargmin(WHOLE)),
    "kthvalue-int": (
        lambda: plain(WHOLE, "int32").kthvalue(2, 0),
        lambda: kth(WHOLE, 2, 0, False),
    ),
    "isin-int": (
        lambda: plain(WHOLE, "int32").isin([3, -2, 8]),
        lambda: np.isin(WHOLE, [3, -2, 8]),
    ),
    "isin-mixed": (
        lambda: plain([2**53 + 1, 2]).isin([2.0, 0.5]),
        lambda: np.array([False, True]),
    ),
    "isin-nan": (
        lambda: [
            plain(SPECIAL, "float64").isin(values) for values in (SPECIAL, np.tile(SPECIAL, 5))
        ],
        lambda: [np.isin(SPECIAL, SPECIAL)] * 2,
    ),
    "isin-nothing": (lambda: plain(WHOLE).isin(np.zeros(0)), lambda: np.zeros((4, 3), bool)),
    "digitize-int": (
        lambda: plain(WHOLE, "int32").digitize([-5, 0, 5]),
        lambda: np.digitize(WHOLE, [-5, 0, 5]),
    ),
    "digitize-one": (lambda: plain(WHOLE).digitize([1]), lambda: np.digitize(WHOLE, [1])),
    "histogram-int": (lambda: plain(WHOLE).histogram(4), lambda: np.histogram(WHOLE, 4)),
    "histogram-outside": (
        lambda: plain(SPECIAL, "float64").histogram([1.0, 2.0, 3.0]),
        lambda: [np.array([2, 2]), np.array([1.0, 2, 3])],
    ),
    "histogram-nothing": (
        lambda: Tensor((0,)).histogram(2),
        lambda: np.histogram(np.zeros(0), 2),
    ),
}


def of(*shape):
    return Tensor(shape or S)


REFUSED = {
    "nanvar: ddof": (TypeError, lambda: of().nanvar(ddof="x")),
    "nanquantile: got q": (ValueError, lambda: of().nanquantile(1.5)),
    "nanpercentile: got method": (ValueError, lambda: of().nanpercentile(5, method="x")),
    "nanmedian: got shape": (ShapeError, lambda: of(0).nanmedian()),
    "nanargmax: got axes": (ValueError, lambda: of().nanargmax(3)),
    "kthvalue: got k 0": (ValueError, lambda: of().kthvalue(0)),
    "kthvalue: got k 6": (ValueError, lambda: of().kthvalue(6)),
    "dist: p": (TypeError, lambda: of().dist(of(), "x")),
    "digitize: got bins .* want them sorted": (ValueError, lambda: of().digitize([1, 3, 2])),
    "digitize: got bins of shape": (ShapeError, lambda: of().digitize(of(2, 2))),
    "histogram: got 0 bins": (ValueError, lambda: of().histogram(0)),
    "histogram: got range": (ValueError, lambda: of().histogram(3, (1, 0))),
    "histogram: got weights": (ShapeError, lambda: of().histogram(3, (0, 1), weights=of(3))),
    "histogram: got bins of shape": (ShapeError, lambda: of().histogram([1.0])),
    "cumulative_trapezoid: got": (ShapeError, lambda: autograd.cumulative_trapezoid(of(), of(3))),
    "correlate: got shapes": (ShapeError, lambda: autograd.correlate(of(3), of(2, 2))),
    "correlate: got mode": (ValueError, lambda: autograd.correlate(of(3), of(2), "x")),
}
