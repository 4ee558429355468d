"""Layers that multiply by a matrix."""

from __future__ import annotations

from typing import Any

from .. import autograd, initializer
from ..tensor import Tensor
from . import activation as activations
from .base import Layer
from .check import count, features, float_input, number
from .parameters import normal, parameter


class Linear(Layer):
    """`x @ W + b`, with W (in, out) and b (out,). SINGA's Linear."""

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
        if len(args) > 2:
            raise TypeError(f"Linear: got {len(args) + 1} arguments in order, want at most 3")
        if args:
            in_features, out_features = out_features, args[0]
            bias = args[1] if len(args) > 1 else bias
        self.out_features = count(out_features, "Linear: out_features")
        if in_features is not None:
            in_features = count(in_features, "Linear: in_features")
        self.in_features = in_features
        self.bias = bool(bias)
        self.activation = activations.get(activation, "Linear: activation")
        self.kernel_init = kernel_init and initializer.get(kernel_init, "Linear: kernel_init")
        self.bias_init = initializer.get(bias_init, "Linear: bias_init")

    def initialize(self, x: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        float_input(x, "Linear")
        self.in_features = features(x, "Linear", -1, self.in_features)
        spread = 2.0 / max(1, self.in_features + self.out_features)
        shape = (self.in_features, self.out_features)
        self.W = parameter(shape, x, self.kernel_init or normal(spread), "Linear: kernel_init")
        if self.bias:
            self.b = parameter((self.out_features,), x, self.bias_init, "Linear: bias_init")

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out).

        Raises:
            ShapeError: fewer than 2 axes, or a last axis of a different size.
        """
        features(x, "Linear", -1, self.in_features)
        y = autograd.matmul(x, self.W)
        if self.bias:
            y = autograd.add_bias(y, self.b) if len(y.shape) == 2 else autograd.add(y, self.b)
        return y if self.activation is None else self.activation(y)


class Gemm(Layer):
    """`alpha * op(x) @ op(W) + beta * b`, ONNX's Gemm: W is (out, in) with `transB`, b (1, out)."""

    def __init__(
        self,
        nb_kernels: int,
        alpha: float = 1.0,
        beta: float = 1.0,
        transA: bool = False,  # noqa: N803 - ONNX's names
        transB: bool = True,  # noqa: N803
        bias: bool = True,
        bias_shape: tuple[int, ...] | None = None,
        kernel_init: Any = None,
        bias_init: Any = "zeros",
    ) -> None:
        """`bias_shape` must broadcast to (rows, nb_kernels).

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.nb_kernels = count(nb_kernels, "Gemm: nb_kernels")
        self.alpha = number(alpha, "Gemm: alpha")
        self.beta = number(beta, "Gemm: beta")
        self.transA = int(bool(transA))
        self.transB = int(bool(transB))
        self.bias = bool(bias)
        shape = (1, self.nb_kernels) if bias_shape is None else bias_shape
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
        if self.bias:
            self.b = parameter(self.bias_shape, x, self.bias_init, "Gemm: bias_init")

    def forward(self, x: Tensor) -> Tensor:
        """(rows, in), or (in, rows) with `transA`, -> (rows, out)."""
        features(x, "Gemm", 0 if self.transA else -1, self.in_features)
        b = self.b if self.bias else None
        return autograd.gemm(x, self.W, b, self.alpha, self.beta, self.transA, self.transB)
