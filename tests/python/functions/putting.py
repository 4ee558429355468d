"""Values at indices and where masks hold, against NumPy's indexing and unbuffered functions."""

import numpy as np
from singa_rs import DTypeError, ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain, slopes
from .scattering import AT, RNG, S, scattered

table = Table()
PLACES = RNG.integers(-4, 4, (3, 6, 5))
GRID = np.meshgrid(*map(np.arange, PLACES.shape), indexing="ij")
KEY = (GRID[0], PLACES, GRID[2])
SOME = PLACES[:2, :3, :4]
SOME_KEY = tuple(np.broadcast_to(g[:2, :3, :4], SOME.shape) for g in GRID[:1]) + (
    SOME,
    GRID[2][:2, :3, :4],
)
HOW = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}


def reduced(x, u, how, keeps, key=SOME_KEY):
    hits = np.zeros(x.shape, int)
    np.add.at(hits, key, 1)
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}[how]
    made = x.copy() if keeps else np.where(hits > 0, neutral, x)
    AT[HOW[how]].at(made, key, u)
    return made / np.maximum(hits + keeps, 1) if how == "mean" else made


for _how, _reduce in {None: "none", "add": "add", "multiply": "mul"}.items():
    table.add(
        f"scatter-{_how}",
        lambda x, u, how=_how: x.scatter(1, plain(PLACES), u, how),
        lambda x, u, how=_reduce: scattered(x, KEY, u, how),
        S,
        PLACES.shape,
    )
table.add(
    "scatter-number",
    lambda x: autograd.scatter(x, 1, SOME, 0.25),
    lambda x: scattered(x, SOME_KEY, np.full(SOME.shape, 0.25), "none"),
    S,
)
for _how in HOW:
    for _keeps in (True, False):
        table.add(
            f"scatter_reduce-{_how}-{_keeps}",
            lambda x, u, how=_how, keeps=_keeps: x.scatter_reduce(1, SOME, u, how, keeps),
            lambda x, u, how=_how, keeps=_keeps: reduced(x, u, how, keeps),
            S,
            SOME.shape,
            step=1e-5,
        )
ROW = RNG.integers(0, 5, (3, 1, 2))


def put(x, indices, values, axis):
    made = x.copy()
    np.put_along_axis(made, indices, values, axis)
    return made


table.add(
    "put_along_axis",
    lambda x, u: autograd.put_along_axis(x, plain(ROW), u, -1),
    lambda x, u: put(x, np.broadcast_to(ROW, (3, 4, 2)), np.broadcast_to(u, (3, 4, 2)), -1),
    S,
    (4, 2),
)
table.add(
    "put_along_axis-flat",
    lambda x: autograd.put_along_axis(x, [3, -1, 9], 0.5, None),
    lambda x: put(x, np.array([3, -1, 9]), 0.5, None),
    S,
)
FIRST, SECOND = np.array([[2, 0, -1], [1, 2, 0]]), np.array([0, -1, 3])


def indexed(x, u, accumulate):
    made, wide = x.copy(), np.broadcast_to(u, (2, 3, 5))
    if accumulate:
        np.add.at(made, (FIRST, SECOND), wide)
    else:
        made[FIRST, SECOND] = wide
    return made


for _accumulate in (False, True):
    table.add(
        f"index_put-{_accumulate}",
        lambda x, u, a=_accumulate: x.index_put((plain(FIRST), SECOND), u, a),
        lambda x, u, a=_accumulate: indexed(x, u, a),
        S,
        (3, 5),
    )
table.add(
    "index_put-number",
    lambda x: autograd.index_put(x, [[0, 2]], 1.5),
    lambda x: np.stack([np.full((4, 5), 1.5), x[1], np.full((4, 5), 1.5)]),
    S,
)
MASK = RNG.random(S[1:]) > 0.5
ROWS = np.array([True, False, True])


def where_masks_hold(x, u, keys, accumulate):
    made = x.copy()
    made[keys] = made[keys] + u if accumulate else u
    return made


for _label, _key, _shape in (
    ("rows", (ROWS,), (2, 4, 5)),
    ("places", ([2, 0], np.array([True, False, False, True])), (2, 5)),
    ("axes", (RNG.random(S[:2]) > 0.5,), (1, 5)),
):
    for _adds in (False, True):
        table.add(
            f"index_put-mask-{_label}-{_adds}",
            lambda x, u, k=_key, a=_adds: x.index_put(k, u, a),
            lambda x, u, k=_key, a=_adds: where_masks_hold(x, u, k, a),
            S,
            _shape,
        )
table.add(
    "index_put-mask-unread",
    lambda x, u: x.index_put((plain(ROWS, "bool"),), u),
    lambda x, u: where_masks_hold(x, u, (ROWS,), False),
    S,
    (5,),
)


def masked(x, source):
    made, flags = x.copy(), np.broadcast_to(MASK, x.shape)
    made[flags] = source.ravel()[: flags.sum()]
    return made


table.add("masked_scatter", lambda x, u: x.masked_scatter(MASK, u), masked, S, (6, 10))
table.add(
    "masked_scatter-nothing",
    lambda x: x.masked_scatter(np.zeros(4, bool), np.zeros(0)),
    lambda x: x,
    (3, 4),
    empty=((0, 4),),
)

WIDE = RNG.integers(-9, 9, S).astype(np.int32)
MORE = RNG.integers(-9, 9, SOME.shape).astype(np.int32)


def whole(how, keeps):
    made = reduced(WIDE.astype(float), MORE, how, keeps)
    return np.floor(made).astype(np.int32)


EXACT = {
    **{
        f"scatter_reduce-{how}-{keeps}-int": (
            lambda how=how, keeps=keeps: plain(WIDE, "int32").scatter_reduce(
                1, SOME, plain(MORE, "int32"), how, keeps
            ),
            lambda how=how, keeps=keeps: whole(how, keeps),
        )
        for how in HOW
        for keeps in (True, False)
    },
    "scatter_reduce-nan": (
        lambda: plain([1.0, 2.0, 3.0], "float64").scatter_reduce(
            0, [0, 0, 2], [np.nan, 1.0, -np.inf], "amin", False
        ),
        lambda: np.array([np.nan, 2, -np.inf]),
    ),
    **{
        f"scatter_reduce-{how}-ties-{keeps}": (
            lambda how=how, keeps=keeps: slopes(
                lambda x, u: x.scatter_reduce(0, [0, 0, 0, 1, 1], u, how, keeps) * 12,
                [1.0, 5.0, 3.0],
                [1.0, 1.0, 1.0, 5.0, np.nan],
            ),
            lambda keeps=keeps: [
                np.array([3.0 * keeps, 0, 12]),
                np.array([*[3.0 if keeps else 4.0] * 3, 0, 12]),
            ],
        )
        for how in ("amax", "amin")
        for keeps in (True, False)
    },
    "scatter_reduce-nothing": (
        lambda: plain([1, 2], "int8").scatter_reduce(0, np.zeros(0, int), [], "mean"),
        lambda: np.array([1, 2], np.int8),
    ),
    "scatter-bool": (
        lambda: plain([False, False], "bool").scatter(0, [1], plain([True], "bool")),
        lambda: np.array([False, True]),
    ),
    "masked_scatter-int": (
        lambda: plain([1, 2, 3], "int64").masked_scatter(
            plain([True, False, True], "bool"), plain([2**60, 7, 9])
        ),
        lambda: np.array([2**60, 2, 7]),
    ),
    "put_along_axis-nan": (
        lambda: autograd.put_along_axis(plain([[1.0, 2.0]], "float64"), [[1]], np.nan),
        lambda: np.array([[1, np.nan]]),
    ),
}


def ones(*shape, dtype="float32"):
    return Tensor(shape or S, dtype=dtype)


REFUSED = {
    "scatter: got reduce 'sum'": (ValueError, lambda: ones().scatter(1, SOME, 1.0, "sum")),
    "scatter: got indices of shape": (ShapeError, lambda: ones().scatter(1, FIRST, 1.0)),
    "scatter_reduce: got reduce 'add'": (
        ValueError,
        lambda: ones().scatter_reduce(1, SOME, ones(2, 3, 4), "add"),
    ),
    "scatter_reduce: got bools": (
        DTypeError,
        lambda: ones(2, dtype="bool").scatter_reduce(0, [0], [True], "sum"),
    ),
    "scatter_reduce: got indices of": (
        ShapeError,
        lambda: ones().scatter_reduce(1, FIRST, ones(2, 3), "mean"),
    ),
    "scatter_reduce: include_self": (
        TypeError,
        lambda: ones().scatter_reduce(1, SOME, ones(2, 3, 4), "sum", "x"),
    ),
    "put_along_axis: got indices": (
        ShapeError,
        lambda: autograd.put_along_axis(ones(), [[1, 2]], 1.0),
    ),
    "put_along_axis: got values": (
        ShapeError,
        lambda: autograd.put_along_axis(ones(), ROW, ones(3)),
    ),
    "index_put: got ndarray": (TypeError, lambda: ones().index_put(FIRST, 1.0)),
    "index_put: got 4 indices": (ShapeError, lambda: ones().index_put((0, 0, 0, 0), 1.0)),
    "index_put: got indices of bool": (DTypeError, lambda: ones().index_put((True,), 1.0)),
    r"got a mask of shape \(4, 5\)": (
        ValueError,
        lambda: ones().index_put((plain(MASK, "bool"),), 1.0, True),
    ),
    "index_put: got values of shape": (
        ShapeError,
        lambda: ones().index_put((FIRST, SECOND), ones(2)),
    ),
    "out of range": (ValueError, lambda: ones().index_put(([3],), 1.0)),
    "masked_scatter: got a mask of float32": (
        DTypeError,
        lambda: ones().masked_scatter(ones(), ones()),
    ),
    "masked_scatter: got a mask of shape": (
        ShapeError,
        lambda: ones().masked_scatter(plain([True, False], "bool"), ones()),
    ),
    r"3 .*out of range": (
        ValueError,
        lambda: ones(4).masked_scatter(plain([True] * 4, "bool"), ones(2)),
    ),
}
