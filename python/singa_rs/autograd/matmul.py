"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

from .._core import ShapeError
from ..refusals import flag
from ..tensor import Tensor
from ..tensor.creation import as_operand, device_of
from ..tensor.dtypes import promote
from ..tensor.numbers import real
from . import ops
from .casting import cast
from .mode import mode
from .ops import Grads, Tensors
from .rule import Rule
from .table import public
from .tape import record


class Matmul(Rule):
    """Matrix products of stacks of matrices, broadcast as NumPy's matmul (ONNX MatMul). A vector is
    a row on the left and a column on the right, whose axis the product has not."""

    keeps = ("xs",)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        made = ops.matmul(_row(x), _column(w))
        if x.rank > 1 and w.rank > 1:
            return made
        shape = list(made.shape)
        if w.rank == 1:
            shape.pop()
        if x.rank == 1:
            shape.pop(-1 if w.rank == 1 else -2)
        return ops.reshape(made, tuple(shape))

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        x, w = xs
        self.saved = (x.saved(), w.saved())  # as `keeps` says, but faster

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """`dy @ w.T` and `x.T @ dy`, summed over broadcast axes."""
        (dy,), (x, w) = dys, (one.shape for one in self.saved)
        if len(x) == 1 or len(w) == 1:
            return self._of_vectors(dy, x, w, wanted)
        dx = ops.reduce_to(ops.matmul(dy, ops.swap(self.load(1))), x) if wanted[0] else None
        return dx, self._to_w(dy, self.load(0), w) if wanted[1] else None

    def _of_vectors(self, dy: Tensor, x: tuple[int, ...], w: tuple[int, ...], wanted: Any) -> Grads:
        """The gradients of matrices in the place of vectors, as vectors again; of operands of
        these shapes."""
        row, column = (1, *x) if len(x) == 1 else x, (*w, 1) if len(w) == 1 else w
        dy = ops.reshape(dy, (*(x if len(w) == 1 else w)[:-2], row[-2], column[-1]))
        dx = dw = None
        if wanted[0]:
            made = ops.matmul(dy, ops.swap(_column(self.load(1))))
            dx = ops.reshape(ops.reduce_to(made, row), x)
        if wanted[1]:
            dw = ops.reshape(self._to_w(dy, _row(self.load(0)), column), w)
        return dx, dw

    def _to_w(self, dy: Tensor, x: Tensor, w: tuple[int, ...]) -> Tensor:
        if len(w) == 2 and x.rank > 2:  # one product of tall matrices instead of many and a sum
            dy, x = (ops.reshape(t, (math.prod(t.shape[:-1]), t.shape[-1])) for t in (dy, x))
        return ops.reduce_to(ops.matmul(ops.swap(x), dy), w)


def _row(x: Tensor) -> Tensor:
    """A vector as a matrix of one row; other tensors as they are."""
    return ops.reshape(x, (1, x.numel)) if x.rank == 1 else x


def _column(w: Tensor) -> Tensor:
    """A vector as a matrix of one column; other tensors as they are."""
    return ops.reshape(w, (w.numel, 1)) if w.rank == 1 else w


@public(Matmul, methods="dot", precision="short")
def matmul(x: Tensor, w: Tensor) -> Tensor:
    """The matrix product, with NumPy's rules for one and for more than two dimensions (ONNX
    MatMul).

    Integers stay in their dtype, and wrap, as NumPy's do.

    Args:
        x: (..., n, k) or (k,).
        w: (..., k, m) or (k,).

    Raises:
        ShapeError: inner extents that differ, or a tensor without dimensions.
    """
    if type(x) is Tensor and type(w) is Tensor:
        try:
            y = ops.matmul(x, w)
        except (TypeError, ShapeError):
            return _unusual(x, w)
        if mode.tape:
            record(object.__new__(Matmul), (x, w), (y,))
        return y
    return _unusual(x, w)


def _unusual(x: Any, w: Any) -> Tensor:
    """The slow path, for operands that the engine does not multiply as they are."""
    dtypes = [t.dtype for t in (x, w) if isinstance(t, Tensor)]
    to = device_of((x, w))
    x, w = as_operand(x, dtypes, to), as_operand(w, dtypes, to)
    if x.dtype != w.dtype or x.dtype.name == "bool":
        want = promote(x.dtype, w.dtype)
        x, w = cast(x, want), cast(w, want)
    if 0 in (x.rank, w.rank):
        raise ShapeError(f"matmul: got shapes {x.shape}, {w.shape}, want at least one dimension")
    return Matmul()(x, w)[0]


class Gemm(Rule):
    """`alpha * A' @ B' + beta * C`, with A' and B' optionally transposed (ONNX Gemm)."""

    keeps = ("x0", "x1")

    def __init__(
        self, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
    ) -> None:
        self.alpha, self.beta = real(alpha, "gemm: alpha"), real(beta, "gemm: beta")
        self.transA = flag(transA, "gemm: transA")
        self.transB = flag(transB, "gemm: transB")

    def forward(self, A: Tensor, B: Tensor, C: Tensor | None = None) -> Tensor:
        for t in (A, B):
            if t.rank != 2:
                raise ShapeError(f"gemm: got shapes {A.shape}, {B.shape}, want two matrices")
        y = ops.matmul(self._a(A), self._b(B))
        if self.alpha != 1:
            ops.scalar_op("mul", self.alpha).into([y], [y])
        if C is not None and self.beta != 0:
            ops.add.into([y, ops.scale(C, self.beta)], [y])
        return y

    def _a(self, A: Tensor) -> Tensor:
        return ops.swap(A) if self.transA else A

    def _b(self, B: Tensor) -> Tensor:
        return ops.swap(B) if self.transB else B

    def keep(self, xs: tuple[Tensor, ...], ys: tuple[Tensor, ...]) -> None:
        self.save(*xs[:2])
        self.bias_shape = xs[2].shape if len(xs) == 3 else None

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor | None, ...]:
        """The gradients of A and B, and of C if it was given."""
        dy = ops.scale(dys[0], self.alpha)
        dA = ops.matmul(dy, ops.swap(self._b(self.load(1)))) if wanted[0] else None
        dB = ops.matmul(ops.swap(self._a(self.load(0))), dy) if wanted[1] else None
        made = (
            ops.swap(dA) if dA is not None and self.transA else dA,
            ops.swap(dB) if dB is not None and self.transB else dB,
        )
        return made if self.bias_shape is None else (*made, self._to_c(dys[0], wanted[2]))

    def _to_c(self, dy: Tensor, wanted: bool) -> Tensor | None:
        if not wanted:
            return None
        return ops.reduce_to(ops.scale(dy, self.beta), self.bias_shape)


@public(Gemm, precision="short")
def gemm(
    A: Tensor,
    B: Tensor,
    C: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """`alpha * A' @ B' + beta * C` of matrices; C broadcasts (ONNX Gemm)."""
    xs = (A, B) if C is None else (A, B, C)
    return Gemm(alpha, beta, transA, transB)(*xs)[0]


class AddBias(Rule):
    """A vector added to each row (axis 0) or each column (axis 1) of a matrix (SINGA AddBias)."""

    def __init__(self, axis: int = 0) -> None:
        if axis not in (0, 1):
            raise ValueError(f"add_bias: got axis {axis}, want 0 or 1")
        self.axis = axis

    def forward(self, x: Tensor, b: Tensor) -> Tensor:
        if x.rank != 2 or b.shape != (x.shape[1 - self.axis],):
            want = "a matrix and a vector as long as its rows (axis 0) or columns (axis 1)"
            raise ShapeError(f"add_bias: got shapes {x.shape}, {b.shape}, want {want}")
        return ops.add(x, ops.reshape(b, self._shape(b.numel)))

    def _shape(self, n: int) -> tuple[int, int]:
        return (1, n) if self.axis == 0 else (n, 1)

    def gradients(self, dys: Tensors, wanted: Any) -> Grads:
        """`dy`, and its sum over the other axis."""
        total = ops.op("reduce", f="sum", axes=(self.axis,), keepdims=False)
        return dys[0], total(dys[0]) if wanted[1] else None


@public(AddBias)
def add_bias(x: Tensor, b: Tensor, axis: int = 0) -> Tensor:
    """`x` (n, m) plus `b`: of shape (m,) for axis 0, (n,) for axis 1 (SINGA add_bias)."""
    return AddBias(axis)(x, b)[0]
