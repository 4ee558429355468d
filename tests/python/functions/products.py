"""Products of vectors and matrices, and distances."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table

table = Table()


def blocks(*xs):
    made = np.zeros(np.sum([np.atleast_2d(x).shape for x in xs], 0))
    at = [0, 0]
    for x in map(np.atleast_2d, xs):
        made[at[0] : at[0] + x.shape[0], at[1] : at[1] + x.shape[1]] = x
        at = [m + n for m, n in zip(at, x.shape, strict=True)]
    return made


def normalized(x, p, axis):
    return x / np.linalg.norm(x, p, axis, keepdims=True)


def distances(a, b, p):
    return np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], p, -1)


def pairs(x, p):
    first, second = np.triu_indices(len(x), 1)
    return np.linalg.norm(x[first] - x[second], p, -1)


def bilinear(a, b, w, c):
    return np.einsum("...n,mnk,...k->...m", a, w, b) + c


M, N, K = (3, 4), (4, 2), (2, 3, 4)
CASES = {
    "mv": (lambda a, b: a.mv(b), np.matmul, M, (4,)),
    "mm": (lambda a, b: a.mm(b), np.matmul, M, N),
    "bmm": (lambda a, b: a.bmm(b), np.matmul, K, (2, 4, 2)),
    "addmm": (
        lambda x, a, b: x.addmm(a, b, 0.5, 2),
        lambda x, a, b: 0.5 * x + 2 * a @ b,
        (2,),
        M,
        N,
    ),
    "baddbmm": (
        lambda x, a, b: x.baddbmm(a, b, alpha=-1),
        lambda x, a, b: x - a @ b,
        (3, 2),
        K,
        (2, 4, 2),
    ),
    "inner": (lambda a, b: a.inner(b), np.inner, K, (5, 4)),
    "inner-vectors": (lambda a, b: a.inner(b), np.inner, (4,), (4,)),
    "inner-number": (lambda a, b: a.inner(b), np.inner, K, ()),
    "vdot": (lambda a, b: a.vdot(b), np.vdot, M, (4, 3)),
    "tensordot": (lambda a, b: a.tensordot(b, 1), lambda a, b: np.tensordot(a, b, 1), K, N),
    "einsum": (
        lambda a, b: autograd.einsum("ij,jk->ki", a, b),
        lambda a, b: np.einsum("ij,jk->ki", a, b),
        M,
        N,
    ),
    "kron": (lambda a, b: a.kron(b), np.kron, M, (2, 3)),
    "kron-ranks": (lambda a, b: a.kron(b), np.kron, (3,), (2, 1, 2)),
    "cross": (lambda a, b: a.cross(b), np.cross, (2, 3), (2, 3)),
    "cross-axis": (
        lambda a, b: autograd.cross(a, b, 1),
        lambda a, b: np.cross(a, b, axis=1),
        (2, 3, 4),
        (1, 3, 4),
    ),
    "block_diag": (autograd.block_diag, blocks, M, (2, 1), (3,)),
    "normalize": (lambda x: x.normalize(), lambda x: normalized(x, 2, 1), K),
    "normalize-1": (lambda x: x.normalize(1, -1), lambda x: normalized(x, 1, -1), K),
    "normalize-eps": (lambda x: x.normalize(2, 0, 100), lambda x: x / 100, M),
    "pairwise_distance": (
        lambda a, b: autograd.pairwise_distance(a, b),
        lambda a, b: np.linalg.norm(a - b + 1e-6, 2, -1),
        K,
        (4,),
    ),
    "pairwise_distance-3": (
        lambda a, b: autograd.pairwise_distance(a, b, 3, 0, True),
        lambda a, b: np.linalg.norm(a - b, 3, -1, True),
        M,
        M,
    ),
    "cdist": (lambda a, b: autograd.cdist(a, b), lambda a, b: distances(a, b, 2), K, (5, 4)),
    "cdist-1": (lambda a, b: autograd.cdist(a, b, 1), lambda a, b: distances(a, b, 1), M, (2, 4)),
    "addmv": (
        lambda x, a, b: x.addmv(a, b, alpha=2),
        lambda x, a, b: x + 2 * a @ b,
        (1,),
        M,
        (4,),
    ),
    "addr": (
        lambda x, a, b: x.addr(a, b, 0.5, -1),
        lambda x, a, b: 0.5 * x - np.outer(a, b),
        (2,),
        (3,),
        (2,),
    ),
    "addbmm": (
        lambda x, a, b: x.addbmm(a, b, 2),
        lambda x, a, b: 2 * x + (a @ b).sum(0),
        (3, 1),
        K,
        (2, 4, 2),
    ),
    **{
        f"matrix_power-{n}": (
            lambda x, n=n: x.matrix_power(n),
            lambda x, n=n: np.linalg.matrix_power(x, n),
            (2, 3, 3),
        )
        for n in (1, 2, 5, 6)
    },
    "multi_dot": (
        lambda *xs: autograd.multi_dot(xs),
        lambda *xs: np.linalg.multi_dot(xs),
        (3, 7),
        (7, 2),
        (2, 5),
        (5, 4),
    ),
    "multi_dot-vectors": (
        lambda *xs: autograd.multi_dot(xs),
        lambda *xs: np.linalg.multi_dot(xs),
        (7,),
        (7, 2),
        (2,),
    ),
    "multi_dot-two": (lambda a, b: autograd.multi_dot([a, b]), np.matmul, M, (4,)),
    "pdist": (lambda x: autograd.pdist(x), lambda x: pairs(x, 2), (5, 3)),
    "pdist-1": (lambda x: autograd.pdist(x, 1), lambda x: pairs(x, 1), (4, 3)),
    "linear": (autograd.linear, lambda x, w, b: x @ w.T + b, K, (3, 4), (3,)),
    "linear-plain": (autograd.linear, lambda x, w: x @ w.T, (4,), (3, 4)),
    "bilinear": (autograd.bilinear, bilinear, (2, 3), (2, 4), (5, 3, 4), (5,)),
}
for _name, (_tensors, _arrays, *_shapes) in CASES.items():
    table.add(_name, _tensors, _arrays, *_shapes, step=5e-5, tolerance=2e-6, scale=2)
for _name, _shapes in {"bmm": ((0, 2, 3), (0, 3, 1)), "kron": ((0, 2), (2, 3))}.items():
    _of = getattr(autograd, _name)
    table.add(
        f"{_name}-one",
        _of,
        np.matmul if _name == "bmm" else np.kron,
        (1, 2, 3),
        (1, 3, 1),
        empty=_shapes,
    )


def of(*shape):
    return Tensor(shape)


REFUSED = {
    "mv: got shapes": (ShapeError, lambda: of(2, 3).mv(of(3, 1))),
    "mm: got shapes": (ShapeError, lambda: of(2, 3).mm(of(3))),
    "bmm: got shapes": (ShapeError, lambda: of(2, 3, 4).bmm(of(3, 4, 5))),
    "addmm: got shape": (ShapeError, lambda: of(3, 2, 2).addmm(of(2, 3), of(3, 2))),
    "inner: got shapes": (ShapeError, lambda: of(2, 3).inner(of(2))),
    "vdot: got shapes": (ShapeError, lambda: of(2, 3).vdot(of(2))),
    "cross: got shapes": (ShapeError, lambda: of(2, 4).cross(of(2, 4))),
    "block_diag: got shapes": (ShapeError, lambda: autograd.block_diag(of(1, 2, 3))),
    "normalize: p": (TypeError, lambda: of(2, 3).normalize("fro")),
    "normalize: got axes": (ValueError, lambda: of(3).normalize()),
    "pairwise_distance: got shapes": (ShapeError, lambda: autograd.pairwise_distance(of(), of())),
    "cdist: got shapes": (ShapeError, lambda: autograd.cdist(of(2, 3), of(2, 4))),
    "linear: got shapes": (ShapeError, lambda: autograd.linear(of(2, 3), of(3, 2))),
    "linear: got a bias": (ShapeError, lambda: autograd.linear(of(2, 3), of(4, 3), of(3))),
    "bilinear: got shapes": (ShapeError, lambda: autograd.bilinear(of(2, 3), of(2, 3), of(3, 3))),
    "addmv: got shapes": (ShapeError, lambda: of(2).addmv(of(2, 3), of(3, 1))),
    "addr: got shapes": (ShapeError, lambda: of(2).addr(of(2, 3), of(3))),
    "addbmm: got shapes": (ShapeError, lambda: of(2).addbmm(of(2, 3, 2), of(1, 2, 2))),
    "matrix_power: got shape": (ShapeError, lambda: of(2, 3).matrix_power(2)),
    "inv: got a singular matrix": (ValueError, lambda: of(2, 2).matrix_power(-1)),
    "multi_dot: got shapes .* at least": (ShapeError, lambda: autograd.multi_dot([of(2, 2)])),
    "multi_dot: got shapes .* fit": (ShapeError, lambda: autograd.multi_dot([of(2, 2), of(3, 2)])),
    "pdist: got shape": (ShapeError, lambda: autograd.pdist(of(2))),
    "einsum: got 3": (TypeError, lambda: autograd.einsum(3, of(2))),
}

EXACT = {
    "matrix_power-0": (lambda: of(2, 3, 3).matrix_power(0), lambda: np.eye(3)[None].repeat(2, 0)),
    "pdist-one": (lambda: autograd.pdist(of(1, 3)), lambda: np.zeros(0)),
}
