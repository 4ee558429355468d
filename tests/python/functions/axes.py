"""Axes moved, added, joined and taken apart."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table

S = (3, 4, 6)
table = Table()
VIEWS = {
    "moveaxis": (lambda t: t.moveaxis(0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "moveaxis-two": (
        lambda t: autograd.moveaxis(t, (0, -1), (1, 0)),
        lambda x: np.moveaxis(x, (0, -1), (1, 0)),
    ),
    "swapaxes": (lambda t: t.swapaxes(0, -1), lambda x: x.swapaxes(0, -1)),
    "broadcast_to": (
        lambda t: t.broadcast_to((2, *t.shape)),
        lambda x: np.broadcast_to(x, (2, *x.shape)),
    ),
    "rot90": (lambda t: t.rot90(), np.rot90),
    "rot90-back": (lambda t: t.rot90(-1, (2, 0)), lambda x: np.rot90(x, -1, (2, 0))),
    "rot90-twice": (lambda t: t.rot90(2, (1, 2)), lambda x: np.rot90(x, 2, (1, 2))),
    "rot90-never": (lambda t: t.rot90(4), lambda x: np.rot90(x, 4)),
    "fliplr": (lambda t: t.fliplr(), np.fliplr),
    "flipud": (lambda t: t.flipud(), np.flipud),
    "chunk": (lambda t: t.chunk(4, -1), lambda x: np.split(x, (2, 4), -1)),
    "chunk-uneven": (lambda t: t.chunk(2, 0), lambda x: np.split(x, (2,), 0)),
    "unbind": (lambda t: t.unbind(1), lambda x: list(np.moveaxis(x, 1, 0))),
    "narrow": (lambda t: t.narrow(2, -4, 3), lambda x: x[:, :, 2:5]),
    "unflatten": (lambda t: t.unflatten(-1, (2, -1)), lambda x: x.reshape(*x.shape[:-1], 2, 3)),
    "tile": (lambda t: t.tile(2, 1), lambda x: np.tile(x, (2, 1))),
    "permute": (lambda t: t.permute(1, 2, 0), lambda x: x.transpose(1, 2, 0)),
    "ravel": (lambda t: t.ravel(), np.ravel),
}
for _name, (_tensors, _arrays) in VIEWS.items():
    table.add(_name, _tensors, _arrays, S)
table.add(
    "broadcast_tensors",
    autograd.broadcast_tensors,
    np.broadcast_arrays,
    (3, 1, 2),
    (4, 1),
)
for _rank, _shapes in {1: ((3,), (2,)), 2: ((3, 4), (3, 4)), 3: ((2, 3, 4), (2, 3, 4))}.items():
    for _name in ("hstack", "vstack", "dstack", "column_stack"):
        _same = (
            (_shapes[0], _shapes[0]) if _name in ("vstack", "dstack", "column_stack") else _shapes
        )
        table.add(
            f"{_name}-{_rank}",
            lambda a, b, name=_name: getattr(autograd, name)([a, b]),
            lambda a, b, name=_name: getattr(np, name)([a, b]),
            *_same,
        )
for _rank in (0, 1, 2, 3):
    for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        table.add(
            f"{_name}-{_rank}",
            lambda t, name=_name: getattr(t, name)(),
            getattr(np, _name),
            S[:_rank],
        )


def of(*shape):
    return Tensor(shape or S)


#: By axes: what is left of the shape (1, 3, 1).
SQUEEZED = {(): (1, 3, 1), 0: (3, 1), (0, -1): (3,)}

EXACT = {
    "squeeze": (
        lambda: [*(of(1, 3, 1).squeeze(axes) for axes in SQUEEZED), of(1, 3, 1).squeeze()],
        lambda: [*(np.zeros(s, np.float32) for s in SQUEEZED.values()), np.zeros(3, np.float32)],
    ),
    "squeeze-as-in-singa": (
        lambda: [autograd.squeeze(of(1, 3, 1), []), autograd.squeeze(of(1, 3, 1))],
        lambda: [np.zeros(3, np.float32)] * 2,
    ),
}
REFUSED = {
    "moveaxis: got 1 sources": (ValueError, lambda: of().moveaxis(0, (1, 2))),
    "moveaxis: got axes": (ValueError, lambda: of().moveaxis(3, 0)),
    "swapaxes: got axes": (ValueError, lambda: of().swapaxes(0, 3)),
    "broadcast_to: got shape": (ShapeError, lambda: of().broadcast_to((3, 4))),
    "rot90: got axes": (ValueError, lambda: of().rot90(1, (0, 0))),
    "fliplr: got shape": (ShapeError, lambda: of(3).fliplr()),
    "hstack: got no": (ShapeError, lambda: autograd.hstack([])),
    "chunk: got 0": (ValueError, lambda: of().chunk(0)),
    "narrow: got start 2, length 3": (ValueError, lambda: of().narrow(0, 2, 3)),
    r"unflatten: got \(4, -1\)": (ShapeError, lambda: of().unflatten(2, (4, -1))),
    "unbind: got axes": (ValueError, lambda: of().unbind(5)),
}
