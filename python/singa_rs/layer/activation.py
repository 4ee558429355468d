"""Activations as layers, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import autograd
from ..tensor import Tensor
from .base import Layer
from .check import count, number, one_of

Activation = Callable[[Tensor], Tensor]


class ReLU(Layer):
    """max(x, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.relu(x)


class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.sigmoid(x)


class Tanh(Layer):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.tanh(x)


class GELU(Layer):
    """x times the normal distribution function of x (Hendrycks and Gimpel, 2016; ONNX Gelu)."""

    def __init__(self, approximate: str = "none") -> None:
        """`approximate`: "none" for the exact function, "tanh" for the one that a tanh gives."""
        super().__init__()
        self.approximate = one_of(approximate, "GELU: approximate", ("none", "tanh"))

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.gelu(x) if self.approximate == "none" else autograd.gelu_tanh(x)


class SiLU(Layer):
    """x * sigmoid(x) (Elfwing et al., 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.silu(x)


class Mish(Layer):
    """x * tanh(softplus(x)) (Misra, 2019; ONNX Mish)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.mish(x)


class Hardswish(Layer):
    """x * max(0, min(1, x / 6 + 0.5)) (Howard et al., 2019; ONNX HardSwish)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.hardswish(x)


class LeakyReLU(Layer):
    """x above 0, a * x below."""

    def __init__(self, a: float = 0.01) -> None:
        super().__init__()
        self.a = number(a, "LeakyReLU: a")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.leakyrelu(x, self.a)


class ELU(Layer):
    """x above 0, alpha * (exp(x) - 1) below (Clevert et al., 2015)."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = number(alpha, "ELU: alpha")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.elu(x, self.alpha)


class SELU(Layer):
    """gamma * (x above 0, alpha * (exp(x) - 1) below) (Klambauer et al., 2017)."""

    def __init__(self, alpha: float = 1.67326, gamma: float = 1.0507) -> None:
        super().__init__()
        self.alpha = number(alpha, "SELU: alpha")
        self.gamma = number(gamma, "SELU: gamma")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.selu(x, self.alpha, self.gamma)


class HardSigmoid(Layer):
    """max(0, min(1, alpha * x + gamma)), ONNX's HardSigmoid."""

    def __init__(self, alpha: float = 0.2, gamma: float = 0.5) -> None:
        super().__init__()
        self.alpha = number(alpha, "HardSigmoid: alpha")
        self.gamma = number(gamma, "HardSigmoid: gamma")

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.hardsigmoid(x, self.alpha, self.gamma)


class SoftPlus(Layer):
    """log(1 + exp(x))."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.softplus(x)


class SoftSign(Layer):
    """x / (1 + |x|)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return autograd.softsign(x)


class SoftMax(Layer):
    """exp(x) over its sum along an axis."""

    def __init__(self, axis: int = 1) -> None:
        super().__init__()
        self.axis = count(axis, "SoftMax: axis", -64)

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.softmax(x, self.axis)


class _Named:
    """An activation that is copied and pickled by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, x: Tensor) -> Tensor:
        return getattr(autograd, self.name.lower())(x)

    def __reduce__(self) -> Any:
        return get, (self.name, "activation")

    def __repr__(self) -> str:
        return self.name


_BY_NAME: dict[str, Activation] = {
    name: _Named(name)
    for name in (
        "RELU", "SIGMOID", "TANH", "GELU", "SILU", "ELU", "SELU", "LEAKYRELU", "HARDSIGMOID",
        "SOFTPLUS", "SOFTSIGN", "GELU_TANH", "MISH", "HARDSWISH",
    )
}  # fmt: skip


def get(name: Any, argument: str) -> Activation | None:
    """The activation with a name (in any case), a callable itself, None for "NOTSET" or None.

    Raises:
        ValueError: an unknown name; the message names `argument`.
        TypeError: neither a name nor a callable.
    """
    if name is None or name == "NOTSET":
        return None
    if callable(name):
        return name
    if not isinstance(name, str):
        raise TypeError(f"{argument}: got {name!r}, want a name or a callable")
    if name.upper() not in _BY_NAME:
        raise ValueError(f"{argument}: got {name!r}, want one of NOTSET, {', '.join(_BY_NAME)}")
    return _BY_NAME[name.upper()]
