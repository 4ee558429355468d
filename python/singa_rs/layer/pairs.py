"""Layers of two inputs: distances, bilinear forms, and rows of a table in bags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from .. import autograd, tensor
from ..tensor import Tensor
from .base import Layer
from .check import count, count_or_none, exponent, features, flag, float_input, number, one_of
from .linear import initializer_of
from .parameters import normal, parameter

if TYPE_CHECKING:
    from .typed import Fill


class PairwiseDistance(Layer):
    """The norms of the differences of vectors (PyTorch PairwiseDistance;
    autograd.pairwise_distance)."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> None:
        """`p`: the order of the norm, from 1, or infinity. `eps`: what is added to differences."""
        super().__init__()
        self.p = exponent(p, "PairwiseDistance: p")
        self.eps = number(eps, "PairwiseDistance: eps")
        self.keepdims = flag(keepdims, "PairwiseDistance: keepdims")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Vectors on the last axes, which broadcast."""
        return autograd.pairwise_distance(x1, x2, self.p, self.eps, self.keepdims)


class Bilinear(Layer):
    """`x1 @ W[i] @ x2 + b[i]` (PyTorch Bilinear): W (out, in1, in2), b (out,)."""

    @overload
    def __init__(self, out_features: int, *, bias: bool = True) -> None: ...
    @overload
    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, /, bias: bool = True
    ) -> None: ...
    def __init__(self, out_features: int, *args: Any, bias: bool = True) -> None:
        """`Bilinear(out)`, `Bilinear(in1, in2, out)` or `Bilinear(in1, in2, out, bias)`. W is
        normal with the variance 1 / in1.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        given = (out_features, *args)
        if len(given) not in (1, 3, 4):
            got = f"{len(given)} arguments in order"
            raise TypeError(f"Bilinear: got {got}, want (out) or (in1, in2, out, bias)")
        sizes = given[:3] if len(given) > 1 else (None, None, out_features)
        self.in1_features, self.in2_features = (
            count_or_none(n, "Bilinear: in_features") for n in sizes[:2]
        )
        self.out_features = count(sizes[2], "Bilinear: out_features")
        self.bias = flag(given[3] if len(given) > 3 else bias, "Bilinear: bias")

    def initialize(self, x1: Tensor, x2: Tensor) -> None:
        """Makes W, and b where there is a bias."""
        for x in (x1, x2):
            float_input(x, "Bilinear")
        self.in1_features = features(x1, "Bilinear", -1, self.in1_features)
        self.in2_features = features(x2, "Bilinear", -1, self.in2_features)
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.W = parameter(shape, x1, normal(1 / max(1, shape[1])), "Bilinear: W")
        if self.bias:
            self.b = parameter((self.out_features,), x1, "zeros", "Bilinear: b")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """(..., in1) and (..., in2) -> (..., out)."""
        features(x1, "Bilinear", -1, self.in1_features)
        features(x2, "Bilinear", -1, self.in2_features)
        made = autograd.bilinear(x1, x2, self.W)
        return made + autograd.cast(self.b, made.dtype) if self.bias else made


class EmbeddingBag(Layer):
    """Means, sums or maxima of rows of W (input_dim, output_dim), in bags (PyTorch EmbeddingBag;
    autograd.embedding_bag)."""

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        mode: str = "mean",
        padding_idx: int | None = None,
        initializer: Fill = "gaussian",
    ) -> None:
        """`mode`: "mean", "sum" or "max". `padding_idx`: the row that does not count.
        `initializer`: as in `Embedding`.

        Raises:
            TypeError, ValueError: an argument of another type or out of its range.
        """
        super().__init__()
        self.input_dim = count(input_dim, "EmbeddingBag: input_dim")
        self.output_dim = count(output_dim, "EmbeddingBag: output_dim")
        self.mode = one_of(mode, "EmbeddingBag: mode", ("mean", "sum", "max"))
        self.initializer = initializer_of(initializer)
        self.padding_idx = padding_idx
        if padding_idx is not None:
            row = count(padding_idx, "EmbeddingBag: padding_idx", -self.input_dim)
            if row >= self.input_dim:
                raise ValueError(f"EmbeddingBag: padding_idx: got {row}, want below {input_dim}")

    def initialize(self, x: Tensor, *_: Any) -> None:
        """Makes W, on the indices' device."""
        shape = (self.input_dim, self.output_dim)
        floats = Tensor((0,), x.device, tensor.float32)
        self.W = parameter(shape, floats, self.initializer, "EmbeddingBag: initializer")

    def forward(self, x: Tensor, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        """Indices (bags, L), or (M,) and offsets (bags,) -> (bags, output_dim)."""
        own = (offsets, self.mode, per_sample_weights, self.padding_idx)
        return autograd.embedding_bag(x, self.W, *own)
