"""Linear systems: solutions, inverses, determinants, ranks, least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import ShapeError, float64, int64
from ..tensor import Tensor
from ..tensor.numbers import real
from . import ops
from .arrange import Triangle
from .casting import cast, floating, promoted
from .factors import linalg, svdvals
from .factors import triangular as _triangular
from .matmul import matmul
from .reduce import reduce_max, reduce_sum
from .results import LeastSquares, SlogdetResult
from .rule import Rule
from .shape import expand, plain_reshape, transpose
from .table import public


class Solve(Rule):
    """X with A X = B, of stacks of as many matrices."""

    keeps = ("x0", "y0")

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return ops.op("solve")(a, b)

    def across(self, a: Tensor, dy: Tensor) -> Tensor:
        """`A^-T dX`."""
        return ops.op("solve")(ops.swap(a), dy)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, ...]:
        """`dB = A^-T dX`, and `-dB X^T`."""
        a, x = self.load(0), self.load(1)
        db = self.across(a, dys[0])
        return self.within(ops.neg(ops.matmul(db, ops.swap(x)))), db

    def within(self, da: Tensor) -> Tensor:
        """The part of the gradient of A of which A's elements are read."""
        return da


class TriangularSolve(Solve):
    """X with A X = B of triangular matrices, of which the other triangle is not read."""

    def __init__(self, upper: bool, unit: bool) -> None:
        self.upper, self.unit = bool(upper), bool(unit)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return _triangular(a, b, not self.upper, self.unit)

    def across(self, a: Tensor, dy: Tensor) -> Tensor:
        return _triangular(ops.swap(a), dy, self.upper, self.unit)

    def within(self, da: Tensor) -> Tensor:
        return Triangle(self.upper, (1 if self.upper else -1) * self.unit).forward(da)


class Inverse(Rule):
    """The inverses of matrices."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> Tensor:
        return linalg("inv")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`-Y^T dY Y^T`."""
        across = ops.swap(self.load(0))
        return (ops.neg(ops.matmul(ops.matmul(across, dys[0]), across)),)


class Det(Rule):
    """The determinants of matrices."""

    keeps = ("xs", "ys")

    def forward(self, x: Tensor) -> Tensor:
        return linalg("det")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dy y X^-T`."""
        x, y = self.load(0), self.load(1)
        return (ops.mul(_as_matrices(ops.mul(dys[0], y)), ops.swap(linalg("inv")(x))),)


class Slogdet(Rule):
    """The signs of determinants, and the logarithms of their magnitudes."""

    keeps = ("xs",)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        sign, log = linalg("slogdet")(x)
        sign.requires_grad = False
        return sign, log

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`dlog X^-T`."""
        return (ops.mul(_as_matrices(dys[1]), ops.swap(linalg("inv")(self.load(0)))),)


class PseudoInverse(Rule):
    """The pseudo-inverses of matrices, without the singular values up to a share of the largest,
    and all singular values, which have no gradient."""

    keeps = ("x0", "y0")

    def __init__(self, share: float) -> None:
        self.share = share

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        u, s, vt = linalg("svd")(x)
        s.requires_grad = False
        return self._inverse(u, s, vt), s

    def _inverse(self, u: Tensor, s: Tensor, vt: Tensor) -> Tensor:
        if not s.numel:
            return ops.full((*s.shape[:-1], vt.shape[-1], u.shape[-2]), 0, s)
        least = ops.scale(ops.reduce_op("max", (s.rank - 1,), True)(s), self.share)
        counts = ops.op("binary", f="gt")(s, least)
        inverse = ops.op("unary", f="reciprocal")(ops.where(counts, s, ops.full((), 1, s)))
        inverse = ops.where(counts, inverse, ops.full((), 0, s))
        scaled = ops.mul(ops.swap(vt), ops.reshape(inverse, (*s.shape[:-1], 1, s.shape[-1])))
        return ops.matmul(scaled, ops.swap(u))

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """Golub and Pereyra (1973), for matrices whose rank stays as it is: `-Y^T dY Y^T`, and what
        the pseudo-inverse leaves out of rows and columns."""
        x, y = self.load(0), self.load(1)
        across, dt = ops.swap(y), ops.swap(dys[0])
        made = ops.neg(ops.matmul(ops.matmul(across, dys[0]), across))
        left = ops.sub(dt, ops.matmul(x, ops.matmul(y, dt)))
        made = ops.add(made, ops.matmul(ops.matmul(left, y), across))
        right = ops.sub(dt, ops.matmul(ops.matmul(dt, y), x))
        return (ops.add(made, ops.matmul(across, ops.matmul(y, right))),)


def _as_matrices(x: Tensor) -> Tensor:
    """Numbers as matrices of one element."""
    return ops.reshape(x, (*x.shape, 1, 1))


def _paired(op: str, a: Any, b: Any) -> tuple[Tensor, Tensor, bool]:
    """Matrices and right-hand sides in one dtype and one stack, and whether these are vectors."""
    a, b = map(floating, promoted((a, b)))
    is_vector = b.rank == 1
    right = b.unsqueeze(1) if is_vector else b
    fits = a.rank > 1 and right.rank > 1 and a.shape[-1] == a.shape[-2] == right.shape[-2]
    want = "square matrices, and right-hand sides of as many rows"
    if not fits:
        raise ShapeError(f"{op}: got shapes {a.shape}, {b.shape}, want {want}")
    try:
        stack = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    except ValueError:
        raise ShapeError(
            f"{op}: got shapes {a.shape}, {b.shape}, want stacks that broadcast"
        ) from None
    a, right = (expand(t, (*stack, *t.shape[-2:])) for t in (a, right))
    return a, right, is_vector


def _unpaired(x: Tensor, is_vector: bool) -> Tensor:
    return plain_reshape(x, x.shape[:-1]) if is_vector else x


@public(precision="wide")
def solve(a: Tensor, b: Any) -> Tensor:
    """The solutions x of `a @ x = b` (NumPy linalg.solve, PyTorch linalg.solve), by LU factors with
    partial pivoting.

    Args:
        a: (..., n, n), of float32 or float64; integers become float32.
        b: (n,), or (..., n, k); stacks broadcast.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a singular matrix; the message has its index.
    """
    a, b, is_vector = _paired("solve", a, b)
    return _unpaired(Solve()(a, b)[0], is_vector)


@public(precision="wide")
def solve_triangular(
    a: Tensor, b: Any, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The solutions x of `a @ x = b` for triangular matrices, of which the other triangle is not
    read (PyTorch linalg.solve_triangular).

    Args:
        a: (..., n, n), of float32 or float64; integers become float32.
        b: (n,), or (..., n, k); stacks broadcast.
        upper: whether the upper triangle is read, or the lower one.
        left: whether `a` stands on the left; if not, x solves `x @ a = b`, b of (..., k, n).
        unitriangular: whether the diagonal counts as ones, and is not read either.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a singular matrix; the message has its index.
    """
    if not left:
        a, b = map(floating, promoted((a, b)))
        if a.rank < 2 or b.rank < 2:
            shapes = f"{a.shape}, {b.shape}"
            raise ShapeError(f"solve_triangular: got shapes {shapes}, want matrices")
        made = solve_triangular(_across(a), _across(b), not upper, unitriangular=unitriangular)
        return _across(made)
    a, b, is_vector = _paired("solve_triangular", a, b)
    return _unpaired(TriangularSolve(upper, unitriangular)(a, b)[0], is_vector)


def _across(x: Tensor) -> Tensor:
    return transpose(x, (*range(x.rank - 2), -1, -2))


@public(methods="inv inverse", precision="wide")
def inv(x: Tensor) -> Tensor:
    """The inverses of matrices (NumPy linalg.inv, PyTorch linalg.inv). `solve` is faster, and more
    accurate, where an inverse is only multiplied with.

    Args:
        x: (..., n, n), of float32 or float64; integers become float32.

    Raises:
        ShapeError: matrices that are not square.
        ValueError: a singular matrix; the message has its index.
    """
    return Inverse()(floating(x))[0]


@public(methods="det", precision="wide")
def det(x: Tensor) -> Tensor:
    """The determinants of matrices (ONNX Det, NumPy linalg.det, PyTorch linalg.det): (..., n, n)
    gives (...).

    The gradient of a singular matrix is refused by name (ValueError).

    Args:
        x: (..., n, n), of float32 or float64; integers become float32.

    Raises:
        ShapeError: matrices that are not square.
    """
    return Det()(floating(x))[0]


@public(methods="slogdet", precision="wide")
def slogdet(x: Tensor) -> SlogdetResult:
    """The signs of determinants and the logarithms of their magnitudes, which neither overflow nor
    underflow (NumPy linalg.slogdet, PyTorch linalg.slogdet): 0 and minus infinity for a singular
    matrix, whose gradient is refused by name. Arguments and errors are as in `det`."""
    return SlogdetResult(*Slogdet()(floating(x)))


def _share(op: str, rcond: Any, x: Tensor) -> float:
    """Up to which share of the largest one singular values count as 0."""
    if rcond is not None:
        return real(rcond, f"{op}: rcond")
    if x.rank < 2:
        raise ShapeError(f"{op}: got shape {x.shape}, want matrices in the last two dimensions")
    eps = np.finfo("float64" if x.dtype == float64 else "float32").eps
    return max(x.shape[-2:]) * float(eps)


@public(methods="pinv pinverse", precision="wide")
def pinv(x: Tensor, rcond: float | None = None) -> Tensor:
    """The pseudo-inverses of matrices, by singular values (NumPy linalg.pinv, PyTorch
    linalg.pinv): (..., m, n) gives (..., n, m). The gradient is that for matrices whose rank stays
    as it is.

    Args:
        x: (..., m, n), of float32 or float64; integers become float32.
        rcond: singular values up to this share of the largest count as 0; by default the larger
            extent times the dtype's epsilon.

    Raises:
        ShapeError: fewer than two dimensions.
        ValueError: a matrix with NaN or infinities; the message has its index.
    """
    given = floating(x)
    return PseudoInverse(_share("pinv", rcond, given))(given)[0]


@public(methods="matrix_rank", precision="wide")
def matrix_rank(x: Tensor, *, rcond: float | None = None) -> Tensor:
    """The ranks of matrices, int64: how many singular values count (NumPy linalg.matrix_rank,
    PyTorch linalg.matrix_rank). Arguments and errors are as in `pinv`."""
    given = floating(x).detach()
    share = _share("matrix_rank", rcond, given)
    return _rank(svdvals(given), share)


def _rank(s: Tensor, share: float) -> Tensor:
    """How many singular values are more than a share of the largest."""
    if not s.shape[-1]:
        return reduce_sum(cast(s, int64), -1, False)
    return reduce_sum(cast(s > reduce_max(s, -1, True) * share, int64), -1, False)


@public(precision="wide")
def lstsq(a: Tensor, b: Any, rcond: float | None = None) -> LeastSquares:
    """The x of least `|a @ x - b|`, and of those the smallest (NumPy linalg.lstsq, PyTorch
    linalg.lstsq), by the pseudo-inverse; the sums of squares of `a @ x - b`, whatever the rank; the
    ranks and singular values of `a`. Gradients flow through the solution and the sums.

    Args:
        a: (..., m, n), of float32 or float64; integers become float32.
        b: (m,), or (..., m, k); stacks broadcast.
        rcond: as in `pinv`.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: a matrix with NaN or infinities; the message has its index.
    """
    a, b = map(floating, promoted((a, b)))
    right = b.unsqueeze(1) if b.rank == 1 else b
    if a.rank < 2 or right.rank < 2 or a.shape[-2] != right.shape[-2]:
        raise ShapeError(f"lstsq: got shapes {a.shape}, {b.shape}, want as many rows")
    share = _share("lstsq", rcond, a)
    inverse, values = PseudoInverse(share)(a)
    x = matmul(inverse, right)
    off = matmul(a, x) - right
    residuals = reduce_sum(off * off, -2, False)
    if b.rank == 1:
        residuals = plain_reshape(residuals, residuals.shape[:-1])
    return LeastSquares(_unpaired(x, b.rank == 1), residuals, _rank(values, share), values)
