"""Functions of one tensor, element by element, that have parameters."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..tensor import Tensor
from ..tensor.numbers import real, whole
from . import ops
from .index import where
from .rule import function
from .unary import Unary


class _Parametrised(Unary):
    """A function with parameters, which are attributes of the instance."""

    tag: str
    #: The derivative, by what the gradient saves; None where that is constant in pieces.
    slope: Any = None

    def __getstate__(self) -> dict[str, Any]:
        made = ("op", "grad_op", "saves")
        return {k: v for k, v in super().__getstate__().items() if k not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._prepare(**{k: v for k, v in state.items() if not k.startswith("_")})

    def _prepare(self, **params: float | None) -> None:
        numbers = tuple((k, _parameter(self.tag, k, v)) for k, v in params.items())
        self.__dict__.update(numbers)
        self.op = ops.unary_op("unary", self.tag, numbers)
        self.grad_op = ops.unary_op("unary_grad", self.tag, numbers)
        self.saves = _core.unary_saves(self.op)


def _parameter(tag: str, name: str, value: Any) -> float | None:
    """A parameter as a float, which must be exactly the number that was given."""
    made = None if value is None else real(value, f"{tag}: {name}")
    if isinstance(value, int) and made != value:
        raise ValueError(f"{tag}: {name}: got {value}, want a number that float64 holds")
    return made


def _exp_below(x: Tensor) -> Tensor:
    """`e**x` where x is negative, else 1, which does not overflow."""
    return x.clip(None, 0.0).exp()


class LeakyRelu(_Parametrised):
    """`x` where it is positive, else `a * x` (ONNX LeakyRelu)."""

    tag = "leakyrelu"

    def __init__(self, a: float = 0.01) -> None:
        self._prepare(a=a)


class Elu(_Parametrised):
    """`x` where it is positive, else `alpha * (exp(x) - 1)` (ONNX Elu)."""

    tag = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        self._prepare(alpha=alpha)

    def slope(self, saved: Tensor) -> Tensor:
        return where(saved <= 0, _exp_below(saved) * self.alpha, 1.0)


class SeLU(_Parametrised):
    """`gamma * x` where it is positive, else `gamma * alpha * (exp(x) - 1)` (ONNX Selu)."""

    tag = "selu"

    def __init__(self, alpha: float = 1.67326, gamma: float = 1.0507) -> None:
        self._prepare(alpha=alpha, gamma=gamma)

    def slope(self, saved: Tensor) -> Tensor:
        below = _exp_below(saved) * (self.gamma * self.alpha)
        return where(saved <= 0, below, self.gamma)


class HardSigmoid(_Parametrised):
    """`min(max(alpha * x + gamma, 0), 1)` (ONNX HardSigmoid); no gradient at both ends."""

    tag = "hardsigmoid"

    def __init__(self, alpha: float = 0.2, gamma: float = 0.5) -> None:
        self._prepare(alpha=alpha, gamma=gamma)


class Clip(_Parametrised):
    """`min(max(x, min), max)`; a bound that is None does not bind (ONNX Clip)."""

    tag = "clip"

    def __init__(self, min: float | None = None, max: float | None = None) -> None:
        self._prepare(min=min, max=max)


class Polygamma(_Parametrised):
    """Derivative `n` of the digamma function (PyTorch polygamma), from 1 to 100; infinite at 0
    and at the negative integers."""

    tag = "polygamma"

    def __init__(self, n: int) -> None:
        self._prepare(n=whole(n, "polygamma: n"))

    def slope(self, saved: Tensor) -> Tensor:
        return saved.polygamma(int(self.n) + 1)


_OF_THE_TENSOR_FIRST = (LeakyRelu, Elu, SeLU, HardSigmoid, Clip)
for _rule in _OF_THE_TENSOR_FIRST:
    function(_rule, _rule.tag, methods=_rule.tag)
#: By the engine's names.
PARAMETRISED = {rule.tag: rule for rule in (*_OF_THE_TENSOR_FIRST, Polygamma)}
