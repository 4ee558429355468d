"""Gathering and scattering, against NumPy's indexing and unbuffered functions."""

import numpy as np
from singa_rs import DTypeError, ShapeError, autograd, tensor
from singa_rs.tensor import Tensor, from_numpy

from .base import Table, plain

S = (3, 4, 5)
table = Table()
RNG = np.random.default_rng(8)
AT = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def tuples(*shape, of=S):
    """Tuples of indices, some of them equal, some negative."""
    return np.stack([RNG.integers(-n, n, shape) for n in of], -1)


def scattered(x, key, updates, how):
    made = x.copy()
    if how == "none":
        for place in np.ndindex(key[0].shape):  # in order, so that the last one stands
            made[tuple(k[place] for k in key)] = updates[place]
    else:
        AT[how].at(made, key, updates)
    return made


def batched(x, indices):
    return np.stack([one[tuple(i.T)] for one, i in zip(x, indices, strict=True)])


ROWS, ELEMENTS, PAIRS = tuples(6, of=S[:1]), tuples(2, 30), tuples(9, of=S[:2])
for _name, _tuples in {"rows": ROWS, "elements": ELEMENTS, "pairs": PAIRS}.items():
    _key = tuple(np.moveaxis(_tuples, -1, 0))
    table.add(
        f"gather_nd-{_name}",
        lambda x, i=_tuples: autograd.gather_nd(x, i),
        lambda x, key=_key: x[key],
        S,
    )
    for _how in ("none", *AT):
        table.add(
            f"scatter_nd-{_name}-{_how}",
            lambda x, u, i=_tuples, how=_how: autograd.scatter_nd(x, plain(i), u, how),
            lambda x, u, key=_key, how=_how: scattered(x, key, u, how),
            S,
            (*_tuples.shape[:-1], *S[_tuples.shape[-1] :]),
            step=1e-5,
        )
IN_BATCH = RNG.integers(0, 4, (3, 2, 1))
table.add(
    "gather_nd-batch",
    lambda x: autograd.gather_nd(x, plain(IN_BATCH), 1),
    lambda x: batched(x, IN_BATCH),
    S,
)
SMALLER = RNG.integers(-4, 4, (2, 7, 5))
_grid = np.meshgrid(*map(np.arange, SMALLER.shape), indexing="ij")
_key = (_grid[0], SMALLER, _grid[2])
table.add(
    "scatter_add",
    lambda x, u: x.scatter_add(1, SMALLER, u),
    lambda x, u, key=_key: scattered(x, key, u, "add"),
    S,
    SMALLER.shape,
)
for _axis, _indices in ((0, [2, 0, -1, 2]), (1, [3, 3, 0]), (-1, [4])):
    _shape = list(S)
    _shape[_axis] = len(_indices)
    _key = (slice(None),) * (_axis % 3) + (np.array(_indices),)

    def copied(x, u, axis=_axis, indices=_indices):
        made = np.moveaxis(x.copy(), axis, 0)
        for i, row in zip(indices, np.moveaxis(u, axis, 0), strict=True):
            made[i] = row
        return np.moveaxis(made, 0, axis)

    def summed(x, u, axis=_axis, indices=_indices):
        made = np.moveaxis(x.copy(), axis, 0)
        np.add.at(made, np.array(indices), 0.5 * np.moveaxis(u, axis, 0))
        return np.moveaxis(made, 0, axis)

    def filled(x, axis=_axis, indices=_indices):
        made = np.moveaxis(x.copy(), axis, 0)
        made[np.array(indices)] = x[0, 0, 0]
        return np.moveaxis(made, 0, axis)

    table.add(
        f"index_add-{_axis}",
        lambda x, u, axis=_axis, i=_indices: x.index_add(axis, i, u, 0.5),
        summed,
        S,
        tuple(_shape),
    )
    table.add(
        f"index_copy-{_axis}",
        lambda x, u, axis=_axis, i=_indices: x.index_copy(axis, i, u),
        copied,
        S,
        tuple(_shape),
    )
    table.add(
        f"index_fill-{_axis}",
        lambda x, axis=_axis, i=_indices: x.index_fill(axis, plain(i), x[0, 0, 0]),
        filled,
        S,
    )
NONE = np.zeros((0, 1), np.int64)
table.add(
    "scatter_nd-nothing",
    lambda x: autograd.scatter_nd(x, plain(NONE), np.zeros((0, x.shape[1])), "mul"),
    lambda x: x,
    (3, 4),
    empty=((3, 0),),
)

#: Of integers and bools: the result, and the same by NumPy.
_INTS = RNG.integers(-100, 100, S).astype(np.int8)
_MANY = RNG.integers(-9, 9, (2, 30)).astype(np.int8)
_WHERE = tuple(np.moveaxis(ELEMENTS, -1, 0))
EXACT = {
    **{
        f"scatter_nd-{how}-{dtype}": (
            lambda how=how, dtype=dtype: autograd.scatter_nd(
                plain(_INTS, dtype), ELEMENTS, plain(_MANY, dtype), how
            ),
            lambda how=how, dtype=dtype: scattered(
                _INTS.astype(dtype), _WHERE, _MANY.astype(dtype), how
            ),
        )
        for how in ("none", *AT)
        for dtype in ("int8", "int64", "int32")
    },
    "scatter_nd-bool": (
        lambda: autograd.scatter_nd(plain(_INTS > 0, "bool"), ELEMENTS, plain(_MANY > 0, "bool")),
        lambda: scattered(_INTS > 0, _WHERE, _MANY > 0, "none"),
    ),
    "index_add-wraps": (
        lambda: plain([100, -100], "int8").index_add(0, [0, 0, 1], [100, 100, 3]),
        lambda: np.array([44, -97], np.int8),
    ),
    "scatter_nd-nan": (
        lambda: autograd.scatter_nd(tensor.ones(3), [[0], [0], [2]], [np.nan, 5.0, 3.0], "min"),
        lambda: np.array([np.nan, 1, 1]),
    ),
    "index_fill-bool": (
        lambda: plain([False, False, True], "bool").index_fill(0, [-1, 0], True),
        lambda: np.array([True, False, True]),
    ),
}


def ones(*shape, dtype="float32"):
    return Tensor(shape or S, dtype=dtype)


REFUSED = {
    "gather_nd: got indices of shape": (
        ShapeError,
        lambda: autograd.gather_nd(ones(), np.zeros((2, 4), int)),
    ),
    "gather_nd: got batch_dims 3": (
        ValueError,
        lambda: autograd.gather_nd(ones(), ROWS, 3),
    ),
    "gather_nd.*out of range": (ValueError, lambda: autograd.gather_nd(ones(), [[3]])),
    "scatter_nd.*out of range": (
        ValueError,
        lambda: autograd.scatter_nd(ones(), [[0, -5]], np.zeros((1, 5))),
    ),
    "scatter_nd: got reduction 'sum'": (
        ValueError,
        lambda: autograd.scatter_nd(ones(), ROWS, ones(6, 4, 5), "sum"),
    ),
    "scatter_nd: got updates of shape": (
        ShapeError,
        lambda: autograd.scatter_nd(ones(), ROWS, ones(6, 4)),
    ),
    "scatter_nd: got bools": (
        DTypeError,
        lambda: autograd.scatter_nd(ones(3, dtype="bool"), [[0]], ones(1, dtype="bool"), "add"),
    ),
    "scatter_add: got indices of shape": (
        ShapeError,
        lambda: ones().scatter_add(1, np.zeros((4, 4, 5), int), ones(4, 4, 5)),
    ),
    "scatter_add: got updates of shape": (
        ShapeError,
        lambda: ones().scatter_add(1, np.zeros(S, int), ones(3, 4, 4)),
    ),
    "scatter_add: got axes": (ValueError, lambda: ones().scatter_add(3, np.zeros(S, int), ones())),
    "index_add: got indices of shape": (
        ShapeError,
        lambda: ones().index_add(0, [[0]], ones(1, 4, 5)),
    ),
    "index_add: got indices of bool": (
        DTypeError,
        lambda: ones().index_add(0, from_numpy(np.zeros(3, bool)), ones(3, 4, 5)),
    ),
    "index_copy: got updates of shape": (
        ShapeError,
        lambda: ones().index_copy(0, [0, 1], ones(1, 4, 5)),
    ),
    "index_fill: got a value of shape": (
        ShapeError,
        lambda: ones().index_fill(0, [0], ones(2)),
    ),
    "convert.*can hold, not 0.5": (
        DTypeError,
        lambda: ones(dtype="int32").index_fill(0, [0], from_numpy(np.array(0.5))),
    ),
}
