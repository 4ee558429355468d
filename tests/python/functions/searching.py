"""Sorted boundaries, counts, and results whose size depends on values."""

import numpy as np
from singa_rs import DTypeError, ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain

S = (3, 4, 5)
table = Table()
RNG = np.random.default_rng(9)
SIGNS = RNG.random(S) > 0.4
ROW = RNG.random(5) > 0.4
table.add(
    "masked_select",
    lambda x: x.masked_select(SIGNS),
    lambda x: x[SIGNS],
    S,
)
table.add(
    "masked_select-wide",
    lambda x: autograd.masked_select(x, ROW),
    lambda x: x[np.broadcast_to(ROW, x.shape)],
    S,
    empty=((0, 5),),
)
PLACES = RNG.integers(0, 6, 20)
table.add(
    "bincount-weights",
    lambda w: autograd.bincount(plain(PLACES), w, length=7),
    lambda w: np.bincount(PLACES, w, 7),
    (20,),
)
BOUNDS = np.linspace(-1.7, 1.9, 7)
for _side in ("left", "right"):
    table.add(
        f"searchsorted-{_side}",
        lambda v, side=_side: autograd.searchsorted(plain(BOUNDS, v.dtype), v, side),
        lambda v, side=_side: np.searchsorted(BOUNDS, v, side),
        S,
        smooth=False,
        halves=False,
        empty=((0, 2),),
    )
table.add(
    "bucketize",
    lambda x: x.bucketize(plain(BOUNDS, x.dtype), True),
    lambda x: np.digitize(x, BOUNDS),
    S,
    smooth=False,
    halves=False,
)
table.add(
    "histc",
    lambda x: x.histc(7, -1.5, 1.9),
    lambda x: np.histogram(x, 7, (-1.5, 1.9))[0],
    S,
    smooth=False,
    halves=False,
    same_dtype=False,
    empty=((0,),),
)
table.add(
    "count_nonzero",
    lambda x: (x > 0).count_nonzero((0, -1)),
    lambda x: np.count_nonzero(x > 0, (0, -1)),
    S,
    smooth=False,
    halves=False,
    empty=((0, 4, 5),),
)

SPECIAL = np.array([3.0, np.nan, 1.0, -np.inf, np.nan, 3.0, np.inf, 1.0])
WHOLE = RNG.integers(-3, 3, (4, 3)).astype(np.int32)
SORTED = np.sort(RNG.integers(-9, 9, 13))
EXACT = {
    "unique": (lambda: plain(WHOLE, "int32").unique(), lambda: np.unique(WHOLE)),
    "unique-nan": (
        lambda: plain(SPECIAL, "float64").unique(True, True, True),
        lambda: np.unique(SPECIAL, True, True, True),
    ),
    "unique-all": (
        lambda: plain(WHOLE, "int32").unique(True, True, True),
        lambda: [
            one.reshape(WHOLE.shape) if i == 2 else one
            for i, one in enumerate(np.unique(WHOLE, True, True, True))
        ],
    ),
    "unique-axis": (
        lambda: plain(WHOLE // 2, "int32").unique(return_counts=True, axis=-1),
        lambda: np.unique(WHOLE // 2, return_counts=True, axis=-1),
    ),
    "unique-none": (lambda: Tensor((0, 3)).unique(), lambda: np.unique(np.zeros((0, 3)))),
    "bincount": (lambda: plain(PLACES).bincount(), lambda: np.bincount(PLACES)),
    "bincount-long": (
        lambda: plain(PLACES, "uint8").bincount(minlength=9),
        lambda: np.bincount(PLACES, minlength=9),
    ),
    "bincount-none": (lambda: plain([]).bincount(), lambda: np.zeros(0, np.int64)),
    "argwhere": (lambda: plain(WHOLE).argwhere(), lambda: np.argwhere(WHOLE)),
    **{
        f"searchsorted-{side}-{dtype}": (
            lambda side=side, dtype=dtype: plain(SORTED, dtype).searchsorted(WHOLE, side),
            lambda side=side: np.searchsorted(SORTED, WHOLE, side),
        )
        for side in ("left", "right")
        for dtype in ("int8", "int64", "float32")
    },
    **{
        f"searchsorted-{side}-special": (
            lambda side=side: plain(np.sort(SPECIAL), "float64").searchsorted(SPECIAL, side),
            lambda side=side: np.searchsorted(np.sort(SPECIAL), SPECIAL, side),
        )
        for side in ("left", "right")
    },
    "searchsorted-nothing": (
        lambda: plain([], "float32").searchsorted([1.0, 2.0]),
        lambda: np.zeros(2, np.int64),
    ),
    "searchsorted-large": (
        lambda: plain([2**53, 2**53 + 1, 2**53 + 2]).searchsorted(plain([2**53 + 1])),
        lambda: np.array([1]),
    ),
    "histc-read": (
        lambda: plain(WHOLE, "float32").histc(4),
        lambda: np.histogram(WHOLE, 4)[0].astype(np.float32),
    ),
    "one_hot": (
        lambda: autograd.one_hot([[0, 2], [1, 1]], 3),
        lambda: np.eye(3, dtype=int)[[[0, 2], [1, 1]]],
    ),
    "one_hot-axis": (
        lambda: autograd.one_hot(plain(PLACES), 6, 0, "float32"),
        lambda: np.eye(6, dtype=np.float32)[PLACES].T,
    ),
}


def ones(*shape, dtype="float32"):
    return Tensor(shape or S, dtype=dtype)


REFUSED = {
    "masked_select: got a mask of float32": (DTypeError, lambda: ones().masked_select(ones())),
    "masked_select: got .* want shapes": (
        ShapeError,
        lambda: ones().masked_select(ones(2, dtype="bool")),
    ),
    "masked_select: got a mask of int64": (
        DTypeError,
        lambda: ones().masked_select(np.zeros(S, int)),
    ),
    "unique: got axes": (ValueError, lambda: ones().unique(axis=3)),
    "unique: return_index": (TypeError, lambda: ones().unique("x")),
    "bincount: got shape": (ShapeError, lambda: ones(2, 2, dtype="int32").bincount()),
    "bincount: got weights": (ShapeError, lambda: ones(2, dtype="int32").bincount(ones(3))),
    "bincount.*out of range": (ValueError, lambda: plain([0, 5]).bincount(length=5)),
    "bincount.*is out of": (ValueError, lambda: plain([0, -1]).bincount()),
    "searchsorted: got side": (ValueError, lambda: ones(3).searchsorted(1.0, "middle")),
    "searchsorted: got shape": (ShapeError, lambda: ones(3, 3).searchsorted(1.0)),
    "histc: got bins 0": (ValueError, lambda: ones().histc(0)),
    "histc: got bins 3, from 2.0 to 1.0": (ValueError, lambda: ones().histc(3, 2, 1)),
    "one_hot.*out of range": (ValueError, lambda: autograd.one_hot([3], 3)),
    "one_hot: got num_classes": (ValueError, lambda: autograd.one_hot([3], -1)),
}
