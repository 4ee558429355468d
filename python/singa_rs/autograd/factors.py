"""Factors of matrices: Cholesky, QR, singular values, eigenvalues. Gradients are those of Giles,
"Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008), and of Seeger et al., "Auto-differentiating linear algebra" (2017)."""

from __future__ import annotations

from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from . import ops
from .arrange import Triangle
from .casting import floating
from .results import EighResult, QRResult, SVDResult
from .rule import Rule
from .shape import transpose
from .table import public


def linalg(f: str) -> Any:
    """The engine's function of matrices."""
    return ops.op("linalg", f=f)


def triangular(a: Tensor, b: Tensor, lower: bool, unit: bool = False) -> Tensor:
    """X with A X = B, by the engine."""
    return ops.op("triangular_solve", lower=lower, unit=unit)(a, b)


def _lower(x: Tensor, k: int = 0) -> Tensor:
    return Triangle(False, k).forward(x)


def _mirrored(x: Tensor) -> Tensor:
    """The symmetric part of matrices."""
    return ops.scale(ops.add(x, ops.swap(x)), 0.5)


def _columns(x: Tensor) -> Tensor:
    """Vectors as the factors of columns: (..., k) as (..., 1, k)."""
    return ops.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _rows(x: Tensor) -> Tensor:
    """Vectors as the factors of rows: (..., k) as (..., k, 1)."""
    return ops.reshape(x, (*x.shape, 1))


def _over_gaps(x: Tensor, of: Tensor) -> Tensor:
    """Matrices divided by the differences `of[j] - of[i]`, 0 where there is none: on the diagonal,
    and for equal values, between which vectors may turn."""
    gaps = ops.sub(_columns(of), _rows(of))
    none, nil = ops.scalar_op("eq", 0)(gaps), ops.full((), 0, gaps)
    return ops.where(none, nil, ops.div(x, ops.where(none, ops.full((), 1, gaps), gaps)))


def _over(x: Tensor, by: Tensor) -> Tensor:
    """`x / by`, 0 where both are 0."""
    is_zero = ops.scalar_op("eq", 0)
    none = ops.op("binary", f="and")(is_zero(x), is_zero(by))
    return ops.div(x, ops.where(none, ops.full((), 1, by), by))


class Cholesky(Rule):
    """The lower triangular factor L of matrices L L^T."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> Tensor:
        return linalg("cholesky")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The symmetric part of `L^-T P(L^T dL) L^-1`, where P takes the lower triangle and half of
        the diagonal."""
        factor = self.load(0)
        across = ops.swap(factor)
        inner = ops.matmul(across, _lower(dys[0]))
        part = ops.scale(ops.add(_lower(inner), _lower(inner, -1)), 0.5)
        left = triangular(across, part, lower=False)
        return (_mirrored(triangular(across, ops.swap(left), lower=False)),)


class QR(Rule):
    """Orthonormal columns Q and the upper triangular R of matrices Q R."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return linalg("qr")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`(dQ + Q C) R^-T` with `C` the lower triangle of `R dR^T - dQ^T Q`, mirrored."""
        (dq, dr), q, r = dys, self.load(0), self.load(1)
        few, columns = r.shape[-2:]
        if few < columns:
            raise ShapeError(
                f"qr: got {few} rows and {columns} columns, want as many rows for gradients"
            )
        dr = Triangle(True, 0).forward(dr)
        inner = ops.sub(ops.matmul(r, ops.swap(dr)), ops.matmul(ops.swap(dq), q))
        mirrored = ops.add(_lower(inner), ops.swap(_lower(inner, -1)))
        outer = ops.add(dq, ops.matmul(q, mirrored))
        return (ops.swap(triangular(r, ops.swap(outer), lower=False)),)


class SVD(Rule):
    """U, the singular values and V^T of matrices U S V^T."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return linalg("svd")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """`U (dS + F(U^T dU) S + S F(V^T dV)) V^T`, where F divides the antisymmetric part by
        differences of squares; and what of dU and dV is orthogonal to U and V."""
        (du, ds, dvt), (u, s, vt) = dys, (self.load(i) for i in range(3))
        v, dv = ops.swap(vt), ops.swap(dvt)
        turns = [self._turn(u, du, s), self._turn(v, dv, s)]
        inner = ops.add(ops.mul(turns[0], _columns(s)), ops.mul(turns[1], _rows(s)))
        inner = ops.add(inner, _diagonal(ds))
        made = ops.matmul(ops.matmul(u, inner), vt)
        if u.shape[-2] > u.shape[-1]:
            made = ops.add(made, ops.matmul(_over(_apart(u, du), _columns(s)), vt))
        if v.shape[-2] > v.shape[-1]:
            right = _over(_apart(v, dv), _columns(s))
            made = ops.add(made, ops.matmul(u, ops.swap(right)))
        return (made,)

    @staticmethod
    def _turn(u: Tensor, du: Tensor, s: Tensor) -> Tensor:
        product = ops.matmul(ops.swap(u), du)
        turn = _over_gaps(ops.sub(product, ops.swap(product)), s)
        return _over(turn, ops.add(_columns(s), _rows(s)))  # squares might overflow


def _apart(u: Tensor, du: Tensor) -> Tensor:
    """What of `du` is orthogonal to the columns of `u`."""
    return ops.sub(du, ops.matmul(u, ops.matmul(ops.swap(u), du)))


def _diagonal(x: Tensor) -> Tensor:
    """Vectors as the diagonals of matrices."""
    k = x.shape[-1]
    places = ops.arange(k, x)
    same = ops.op("binary", f="eq")(places, ops.reshape(places, (k, 1)))
    return ops.where(same, _columns(x), ops.full((), 0, x))


class Eigh(Rule):
    """The eigenvalues and eigenvectors of symmetric matrices."""

    keeps = ("ys",)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return linalg("eigh")(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The symmetric part of `V (dW + V^T dV / differences of W) V^T`."""
        (dw, dv), w, v = dys, self.load(0), self.load(1)
        across = ops.swap(v)
        inner = ops.add(_over_gaps(ops.matmul(across, dv), w), _diagonal(dw))
        return (_mirrored(ops.matmul(ops.matmul(v, inner), across)),)


@public(methods="cholesky", precision="wide")
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular matrices L with `x = L @ L.T` (NumPy linalg.cholesky, PyTorch
    linalg.cholesky), of the lower triangles of `x`.

    Args:
        x: (..., n, n), positive definite, of float32 or float64; integers become float32.
        upper: whether to give the upper triangular `L.T` instead.

    Raises:
        ShapeError: matrices that are not square.
        ValueError: a matrix that is not positive definite; the message has its index.
    """
    made = Cholesky()(floating(x))[0]
    return transpose(made, (*range(made.rank - 2), -1, -2)) if upper else made


@public(methods="qr", precision="wide")
def qr(x: Tensor) -> QRResult:
    """Q with orthonormal columns and the upper triangular R with `x = Q @ R` (NumPy linalg.qr,
    PyTorch linalg.qr): (..., m, k) and (..., k, n), k the smaller of m and n. The diagonal of R is
    not negative.

    The gradient exists where m >= n and the columns are independent.

    Args:
        x: (..., m, n), of float32 or float64; integers become float32.

    Raises:
        ShapeError: fewer than two dimensions.
    """
    return QRResult(*QR()(floating(x)))


@public(methods="svd", precision="wide")
def svd(x: Tensor) -> SVDResult:
    """U, the singular values S in descending order and Vh with `x = U @ diag(S) @ Vh` (NumPy
    linalg.svd with full_matrices=False, PyTorch linalg.svd): (..., m, k), (..., k) and (..., k, n),
    k the smaller of m and n.

    The gradient through U and Vh is defined for results that do not depend on the signs of their
    columns and rows, nor on how those of equal singular values are turned; it is infinite or NaN
    where it comes through the column or row of a singular value that is 0, unless x is square. That
    through S alone is finite.

    Args:
        x: (..., m, n), of float32 or float64; integers become float32.

    Raises:
        ShapeError: fewer than two dimensions.
        ValueError: a matrix with NaN or infinities; the message has its index.
    """
    return SVDResult(*SVD()(floating(x)))


@public(methods="svdvals", precision="wide")
def svdvals(x: Tensor) -> Tensor:
    """The singular values of matrices in descending order (PyTorch linalg.svdvals). Arguments and
    errors are as in `svd`."""
    return svd(x).S


@public(methods="eigh", precision="wide")
def eigh(x: Tensor) -> EighResult:
    """The eigenvalues in ascending order, (..., n), and the eigenvectors, the columns of (..., n,
    n), of symmetric matrices, of which the lower triangle is read (NumPy linalg.eigh, PyTorch
    linalg.eigh).

    The gradient through the eigenvectors is defined for results that do not depend on their signs,
    nor on how those of equal eigenvalues are turned. It is symmetric.

    Args:
        x: (..., n, n), of float32 or float64; integers become float32.

    Raises:
        ShapeError: matrices that are not square.
        ValueError: a matrix with NaN or infinities; the message has its index.
    """
    return EighResult(*Eigh()(floating(x)))


@public(methods="eigvalsh", precision="wide")
def eigvalsh(x: Tensor) -> Tensor:
    """The eigenvalues of symmetric matrices in ascending order (NumPy linalg.eigvalsh, PyTorch
    linalg.eigvalsh). Arguments and errors are as in `eigh`."""
    return eigh(x).eigenvalues
