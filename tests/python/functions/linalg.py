"""Linear algebra: gradients through all results, compositions, singular and odd matrices."""

import numpy as np
from singa_rs import ShapeError, autograd, linalg, tensor
from singa_rs.tensor import Tensor

from .base import Table, plain, slopes

table = Table()
M, TALL, FLAT = (2, 3, 3), (2, 4, 3), (2, 3, 4)


def across(x):
    return np.swapaxes(x, -1, -2)


def eye(x):
    return tensor.eye(x.shape[-1], dtype=x.dtype)


def regular(x):
    return x + 4 * (eye(x) if isinstance(x, Tensor) else np.eye(x.shape[-1]))


def symmetric(x):
    """With eigenvalues apart from each other."""
    spread = np.diag(4.0 * np.arange(x.shape[-1]))
    if isinstance(x, Tensor):
        return x + x.transpose((0, 2, 1)) + plain(spread, x.dtype)
    return x + across(x) + spread


def polar(x):
    """The orthogonal factor: the same whatever the signs of singular vectors."""
    u, s, vh = (autograd if isinstance(x, Tensor) else np.linalg).svd(
        x, **({} if isinstance(x, Tensor) else {"full_matrices": False})
    )
    return u @ vh, s


def projector(x):
    """Onto the first eigenvectors, and the eigenvalues."""
    w, v = (autograd if isinstance(x, Tensor) else np.linalg).eigh(symmetric(x))
    part = v[..., :2]
    return part @ (part.transpose((0, 2, 1)) if isinstance(x, Tensor) else across(part)), w


def parts(x):
    """Q and R by Gram and Schmidt, which the sign of no library decides."""
    if isinstance(x, Tensor):
        return autograd.qr(x)
    q, r = np.linalg.qr(x)
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return q * signs[..., None, :], r * signs[..., None]


def lstsq(a, b):
    made = [np.linalg.lstsq(*pair, rcond=None)[0] for pair in zip(a, b, strict=True)]
    return np.stack(made), ((a @ np.stack(made) - b) ** 2).sum(-2)


def solved(a, b):
    """NumPy's solution for matrices `b`, which before 2.0 it takes for vectors if `a` has one axis
    more."""
    return np.linalg.solve(a, np.broadcast_to(b, (*a.shape[:-2], *b.shape[-2:])))


def signed(x):
    return tuple(np.linalg.slogdet(regular(x)))


CASES = {
    "inv": (lambda x: regular(x).inv(), lambda x: np.linalg.inv(regular(x)), M),
    "inverse": (lambda x: regular(x).inverse(), lambda x: np.linalg.inv(regular(x)), (3, 3)),
    "det": (lambda x: regular(x).det(), lambda x: np.linalg.det(regular(x)), (2, 2, 3, 3)),
    "slogdet": (lambda x: regular(x).slogdet(), signed, M),
    "solve": (
        lambda a, b: linalg.solve(regular(a), b),
        lambda a, b: np.linalg.solve(regular(a), b),
        M,
        TALL[:1] + (3, 2),
    ),
    "solve-vector": (
        lambda a, b: linalg.solve(regular(a), b),
        lambda a, b: solved(regular(a), b[:, None])[..., 0],
        M,
        (3,),
    ),
    "solve-stacks": (
        lambda a, b: linalg.solve(regular(a), b),
        lambda a, b: np.linalg.solve(regular(a), b),
        (3, 3),
        (2, 3, 1),
    ),
    "solve_triangular": (
        lambda a, b: linalg.solve_triangular(regular(a), b, True),
        lambda a, b: solved(np.triu(regular(a)), b),
        M,
        (3, 2),
    ),
    "solve_triangular-right": (
        lambda a, b: linalg.solve_triangular(regular(a), b, False, left=False, unitriangular=True),
        lambda a, b: b @ np.linalg.inv(np.tril(a, -1) + np.eye(3)),
        M,
        (2, 3),
    ),
    "cholesky-upper": (
        lambda x: autograd.cholesky(x @ x.transpose((0, 2, 1)) + eye(x), upper=True),
        lambda x: across(np.linalg.cholesky(x @ across(x) + np.eye(3))),
        M,
    ),
    "qr": (parts, parts, TALL),
    "svd": (polar, polar, TALL),
    "svd-flat": (polar, polar, FLAT),
    "svdvals": (lambda x: x.svdvals(), lambda x: np.linalg.svd(x, compute_uv=False), FLAT),
    "eigh": (projector, projector, M),
    "eigvalsh": (
        lambda x: symmetric(x).eigvalsh(),
        lambda x: np.linalg.eigvalsh(symmetric(x)),
        M,
    ),
    "pinv": (lambda x: x.pinv(), np.linalg.pinv, TALL),
    "pinv-flat": (lambda x: x.pinverse(), np.linalg.pinv, FLAT),
    "pinv-of-rank-1": (
        lambda a, b: autograd.pinv(a.unsqueeze(1) * b, 1e-3),
        lambda a, b: np.linalg.pinv(np.outer(a, b), 1e-3),
        (4,),
        (3,),
    ),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[:2], lstsq, TALL, (2, 4, 2)),
    "matrix_power--2": (
        lambda x: regular(x).matrix_power(-2),
        lambda x: np.linalg.matrix_power(regular(x), -2),
        M,
    ),
}
for _name, (_tensors, _arrays, *_shapes) in CASES.items():
    table.add(_name, _tensors, _arrays, *_shapes, tolerance=2e-6, scale=4, wide=True)


def of(*shape):
    return Tensor(shape)


def stack(*matrices):
    return plain(np.array(matrices), "float64")


ZERO, ONE, LESS = np.zeros((2, 2)), np.eye(2), -np.eye(2)
NAN = np.full((2, 2), np.nan)
REFUSED = {
    "inv: got a singular matrix at index 1": (ValueError, lambda: stack(ONE, ZERO).inv()),
    r"inv: got a singular matrix at index \[1, 0\]": (
        ValueError,
        lambda: stack([ONE], [ZERO]).inv(),
    ),
    "inv: got a singular matrix, want": (ValueError, lambda: of(2, 2).inv()),
    "^solve: got a singular matrix": (ValueError, lambda: linalg.solve(of(2, 2), of(2))),
    "triangular_solve: got a singular": (
        ValueError,
        lambda: linalg.solve_triangular(of(2, 2), of(2), True),
    ),
    "cholesky: got a matrix that is not positive definite at index 2": (
        ValueError,
        lambda: stack(ONE, ONE, LESS).cholesky(),
    ),
    "svd: got a matrix with NaN": (ValueError, lambda: stack(ONE, NAN).svd()),
    "eigh: got a matrix with NaN": (ValueError, lambda: stack(NAN).eigh()),
    "matrix_rank: got shape": (ShapeError, lambda: linalg.matrix_rank(of(3))),
    "^solve: got shapes": (ShapeError, lambda: linalg.solve(of(2, 3), of(2))),
    "^solve: got shapes .* broadcast": (
        ShapeError,
        lambda: linalg.solve(of(2, 3, 3), of(4, 3, 1)),
    ),
    "solve_triangular: got shapes": (
        ShapeError,
        lambda: linalg.solve_triangular(of(2, 2), of(2), True, left=False),
    ),
    "lstsq: got shapes": (ShapeError, lambda: linalg.lstsq(of(2, 3), of(3))),
}

DEGENERATE = np.diag([2.0, 2.0, 0.0])
#: Of rank 1, with the singular value 5, and the vectors that belong to it.
LEFT, RIGHT = np.array([0.6, 0.8, 0.0]), np.array([0.0, 1.0])
RANK_1 = 5 * np.outer(LEFT, RIGHT)
RATES = np.arange(9.0).reshape(3, 3)


def onto_first(x):
    """The entries of the projector onto the first left singular vector, weighted."""
    u = x.svd().U[:, :1]
    return (u @ u.T) * plain(RATES, "float64")


def slope_onto_first():
    beside = np.eye(3) - np.outer(LEFT, LEFT)
    return [beside @ (RATES + RATES.T) @ np.outer(LEFT, RIGHT) / 5]


EXACT = {
    "norm-of-rank-1": (
        lambda: [
            slopes(lambda x: linalg.norm(x, 2), a)[0]
            for a in (RANK_1, RANK_1.T, 1e200 * RANK_1, np.zeros((3, 2)) + RANK_1 * 1e-200)
        ],
        lambda: [np.outer(LEFT, RIGHT), np.outer(RIGHT, LEFT), *[np.outer(LEFT, RIGHT)] * 2],
    ),
    "norm-of-rank-1-is-finite": (
        lambda: [
            slopes(f, a)[0].isfinite()
            for a in (RANK_1, RANK_1.T, np.zeros((2, 3)))
            for f in (lambda x: linalg.norm(x, "nuc"), lambda x: linalg.norm(x, -2))
        ],
        lambda: [np.ones(s, bool) for s in ((3, 2), (2, 3), (2, 3)) for _ in range(2)],
    ),
    "norm-of-nothing": (
        lambda: [
            linalg.norm(of(*s), p) for s in ((17, 0), (0, 3)) for p in (1, 2, np.inf, "nuc", "fro")
        ],
        lambda: [np.float32(0)] * 10,
    ),
    "svd-through-the-first-vector": (lambda: slopes(onto_first, RANK_1), slope_onto_first),
    "det-of-integers": (
        lambda: plain([[1, 2], [3, 4]]).det(),
        lambda: np.float32(-2.0),
    ),
    "det-of-nothing": (lambda: of(0, 0).det(), lambda: np.float32(1)),
    "slogdet-singular": (
        lambda: stack(ZERO, ONE, LESS).slogdet(),
        lambda: (np.array([0.0, 1.0, 1.0]), np.array([-np.inf, 0.0, 0.0])),
    ),
    "solve-nan": (
        lambda: linalg.solve(stack(NAN), stack(ONE)),
        lambda: NAN[None],
    ),
    "eigh-of-the-lower-triangle": (
        lambda: plain([[1.0, np.nan], [0.0, 3.0]], "float64").eigvalsh(),
        lambda: np.array([1.0, 3.0]),
    ),
    "svd-of-nothing": (
        lambda: of(2, 0, 3).svd(),
        lambda: np.linalg.svd(np.zeros((2, 0, 3), np.float32), full_matrices=False),
    ),
    "pinv-of-nothing": (lambda: of(0, 3).pinv(), lambda: np.zeros((3, 0), np.float32)),
    "pinv-of-zeros": (lambda: of(2, 3).pinv(), lambda: np.zeros((3, 2), np.float32)),
    "matrix_rank": (
        lambda: linalg.matrix_rank(stack(DEGENERATE, np.eye(3), np.zeros((3, 3)))),
        lambda: np.array([2, 3, 0]),
    ),
    "matrix_rank-of-nothing": (lambda: linalg.matrix_rank(of(2, 0, 3)), lambda: np.zeros(2, int)),
    "lstsq-rank": (
        lambda: linalg.lstsq(stack(DEGENERATE), stack(np.eye(3)))[2:],
        lambda: (np.array([2]), np.array([[2.0, 2.0, 0.0]])),
    ),
}
