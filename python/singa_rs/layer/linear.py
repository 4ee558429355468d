"""Layers that multiply by a matrix, or look up its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import autograd, initializer, tensor
from ..errors import ShapeError
from ..shown import shown
from ..tensor import Tensor
from . import activation as activations
from .base import Layer
from .check import at_most, count, count_or_none, features, flag, float_input, number
from .parameters import normal, parameter

if TYPE_CHECKING:
    from .typed import Activation, Fill


class Linear(Layer):
    """`x @ W + b`, with W (in, out) and b (out,). SINGA's Linear."""

    @overload
    def __init__(
        self,
        out_features: int,
        *,
        in_features: int | None = None,
        bias: bool = True,
        activation: Activation = "NOTSET",
        kernel_init: Fill = None,
        bias_init: Fill = "zeros",
    ) -> None: ...
    @overload
    def __init__(
        self,
        in_features: int,
        out_features: int,
        /,
        bias: bool = True,
        *,
        activation: Activation = "NOTSET",
        kernel_init: Fill = None,
        bias_init: Fill = "zeros",
    ) -> None: ...
    def __init__(
        self,
        out_features: int,
        *args: Any,
        in_features: int | None = None,
        bias: bool = True,
        activation: Any = "NOTSET",
        kernel_init: Any = None,
        bias_init: Any = "zeros",
    ) -> None:
        """`Linear(out)`, `Linear(in, out)` or `Linear(in, out, bias)`.

        Initialisers are names or callables; the default for W is normal with the variance
        2 / (in + out).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        at_most("Linear", len(args) + 1, 3)
        if args:
            in_features, out_features = out_features, args[0]
            bias = args[1] if len(args) > 1 else bias
        self.out_features = count(out_features, "Linear: out_features")
        self.in_features = count_or_none(in_features, "Linear: in_features")
        self.bias = flag(bias, "Linear: bias")
        activations.get(activation, "Linear: activation")
        self.activation = activation
        self.kernel_init = kernel_init and initializer.get(kernel_init, "Linear: kernel_init")
        self.bias_init = initializer.get(bias_init, "Linear: bias_init")

    def initialize(self, x: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        float_input(x, "Linear")
        self.in_features = features(x, "Linear", -1, self.in_features, 1)
        spread = 2.0 / max(1, self.in_features + self.out_features)
        shape = (self.in_features, self.out_features)
        self.W = parameter(shape, x, self.kernel_init or normal(spread), "Linear: kernel_init")
        self.b: Any = None
        if self.bias:
            self.b = parameter((self.out_features,), x, self.bias_init, "Linear: bias_init")

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out).

        Raises:
            ShapeError: no axis, or a last axis of a different size.
        """
        features(x, "Linear", -1, self.in_features, 1)
        y = autograd.matmul(x, self.W)
        if self.bias:
            b = autograd.cast(self.b, y.dtype)
            y = autograd.add_bias(y, b) if len(y.shape) == 2 else autograd.add(y, b)
        activation = activations.get(self.activation, "Linear: activation")
        return y if activation is None else activation(y)


class Gemm(Layer):
    """`alpha * op(x) @ op(W) + beta * b`, ONNX's Gemm: W is (out, in) with `transB`, b (1, out)."""

    def __init__(
        self,
        nb_kernels: int,
        alpha: float = 1.0,
        beta: float = 1.0,
        transA: bool = False,  # ONNX's names
        transB: bool = True,
        bias: bool = True,
        bias_shape: tuple[int, ...] | None = None,
        kernel_init: Fill = None,
        bias_init: Fill = "zeros",
    ) -> None:
        """`bias_shape` must broadcast to (rows, nb_kernels).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.nb_kernels = count(nb_kernels, "Gemm: nb_kernels")
        self.alpha = number(alpha, "Gemm: alpha")
        self.beta = number(beta, "Gemm: beta")
        self.transA = int(flag(transA, "Gemm: transA"))
        self.transB = int(flag(transB, "Gemm: transB"))
        self.bias = flag(bias, "Gemm: bias")
        shape = (1, self.nb_kernels) if bias_shape is None else bias_shape
        if not isinstance(shape, (tuple, list)):
            raise TypeError(f"Gemm: bias_shape: got {shown(shape)}, want a shape")
        self.bias_shape = tuple(count(n, "Gemm: bias_shape") for n in shape)
        self.kernel_init = kernel_init and initializer.get(kernel_init, "Gemm: kernel_init")
        self.bias_init = initializer.get(bias_init, "Gemm: bias_init")

    def initialize(self, x: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        float_input(x, "Gemm")
        self.in_features = features(x, "Gemm", 0 if self.transA else -1, None)
        shape = (self.in_features, self.nb_kernels)
        spread = 2.0 / max(1, sum(shape))
        fill = self.kernel_init or normal(spread)
        self.W = parameter(shape[::-1] if self.transB else shape, x, fill, "Gemm: kernel_init")
        self.b: Any = None
        if self.bias:
            self.b = parameter(self.bias_shape, x, self.bias_init, "Gemm: bias_init")

    def forward(self, x: Tensor) -> Tensor:
        """(rows, in), or (in, rows) with `transA`, -> (rows, out)."""
        features(x, "Gemm", 0 if self.transA else -1, self.in_features)
        b = self.b if self.bias else None
        return autograd.gemm(x, self.W, b, self.alpha, self.beta, self.transA, self.transB)


class Embedding(Layer):
    """Rows of W (input_dim, output_dim) by integer indices. SINGA's Embedding."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        initializer: Fill = "gaussian",
        padding_idx: int | None = None,
    ) -> None:
        """`initializer`: "gaussian" (mean 0, deviation 1), "uniform" (-1 to 1), another name of
        `singa_rs.initializer`, or a callable. `padding_idx`: the row for padding, which starts as
        zeros and gets no gradient (PyTorch Embedding); negative counts from the end.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.input_dim = count(input_dim, "Embedding: input_dim")
        self.output_dim = count(output_dim, "Embedding: output_dim")
        self.initializer = initializer_of(initializer)
        self.padding_idx = None
        if padding_idx is not None:
            row = count(padding_idx, "Embedding: padding_idx", -self.input_dim)
            if row >= self.input_dim:
                raise ValueError(f"Embedding: padding_idx: got {row}, want below {input_dim}")
            self.padding_idx = row % self.input_dim

    def initialize(self, x: Tensor) -> None:
        """Makes W, on the indices' device."""
        shape = (self.input_dim, self.output_dim)
        floats = Tensor((0,), x.device, tensor.float32)
        self.W = parameter(shape, floats, self._fill, "Embedding: initializer")

    def _fill(self, t: Tensor) -> None:
        self.initializer(t)
        if self.padding_idx is not None:
            t[self.padding_idx] = 0.0

    def from_pretrained(self, W: Any, freeze: bool = True) -> None:  # SINGA's name
        """Copies W, a tensor or array (input_dim, output_dim); `freeze` keeps it from training.

        Raises:
            ShapeError: a different shape.
        """
        if not isinstance(W, (np.ndarray, Tensor)):
            raise TypeError(f"Embedding: got {type(W).__name__} for W, want a Tensor or an array")
        if tuple(W.shape) != (self.input_dim, self.output_dim):
            want = (self.input_dim, self.output_dim)
            raise ShapeError(f"Embedding: got W of shape {tuple(W.shape)}, want {want}")
        device = W.device if isinstance(W, Tensor) else None
        like = self.W if self._initialized else Tensor((0,), device, tensor.float32)
        values = like.fitting(W, "Embedding: W", {})
        if not self._initialized:
            self.initialize(like)
        self.W.copy_from(values)
        self.W.requires_grad = not freeze

    def forward(self, x: Tensor) -> Tensor:
        """Indices of any shape and integer dtype -> that shape + (output_dim,)."""
        rows = autograd.embedding(x, self.W)
        if self.padding_idx is None or not autograd.training:
            return rows
        indices = autograd.unsqueeze(x, -1)
        padding = (indices == self.padding_idx) | (indices == self.padding_idx - self.input_dim)
        return autograd.where(padding, rows.detach(), rows)


def _gaussian(t: Tensor) -> Tensor:
    return t.gaussian(0.0, 1.0)


def _uniform(t: Tensor) -> Tensor:
    return t.uniform(-1.0, 1.0)


def initializer_of(name: Any) -> initializer.Initializer:
    """The initializer of an embedding, given by its name or itself."""
    if isinstance(name, str) and name in ("gaussian", "uniform"):
        return _gaussian if name == "gaussian" else _uniform
    return initializer.get(name, "Embedding: initializer")
