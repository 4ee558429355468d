"""onnxruntime's operators on quantised numbers, as its quantiser writes them: what ONNX's operators
make of the numbers that are meant, quantised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, float32, float64
from ..table import reader, reads
from ..values import element_of
from .microsoft_domain import DOMAIN
from .quantization import (
    Stored,
    _centred,
    _integers,
    _rounded,
    dequantize_linear,
    quantize_linear,
)

for _name, _run in (("QuantizeLinear", quantize_linear), ("DequantizeLinear", dequantize_linear)):
    reads(_name, domain=DOMAIN, takes_codes=True)(_run)


def _of_one(op: str) -> Callable[..., Stored]:
    """An operator of one tensor."""

    def run(
        x: Tensor, x_scale: Tensor, x_zero: Tensor, y_scale: Tensor, y_zero: Tensor, *,
        channels_last: int = 0, opset: int = 19, **attributes: Any,
    ) -> Stored:  # fmt: skip
        if channels_last:
            raise NotImplementedError(f"QLinear{op}: got channels_last {channels_last}, want 0")
        made = reader("", op, opset).run(dequantize_linear(x, x_scale, x_zero), **attributes)
        return quantize_linear(made, y_scale, y_zero)

    return run


for _name in ("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax"):
    reads(f"QLinear{_name}", domain=DOMAIN)(_of_one(_name))


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Stored]:
    """A function of two tensors, element by element."""

    def run(
        a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
        y_scale: Tensor, y_zero: Tensor,
    ) -> Stored:  # fmt: skip
        left, right = dequantize_linear(a, a_scale, a_zero), dequantize_linear(b, b_scale, b_zero)
        return quantize_linear(function(left, right), y_scale, y_zero)

    return run


reads("QLinearAdd", domain=DOMAIN)(_of_two(lambda a, b: a + b))
reads("QLinearMul", domain=DOMAIN)(_of_two(lambda a, b: a * b))


@reads("QLinearWhere", domain=DOMAIN)
def qlinear_where(condition: Tensor, *given: Tensor) -> Stored:
    """Elements of two quantised tensors, quantised."""
    return _of_two(lambda x, y: autograd.where(condition, x, y))(*given)


@reads("QLinearConcat", domain=DOMAIN)
def qlinear_concat(y_scale: Tensor, y_zero: Tensor, *parts: Tensor, axis: int) -> Stored:
    """Quantised tensors one after another, each followed by its scale and its zero point."""
    groups = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    made = autograd.cat([dequantize_linear(*one) for one in groups], axis)
    return quantize_linear(made, y_scale, y_zero)


@reads("QGemm", domain=DOMAIN)
def qgemm(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
    c: Tensor | None = None, y_scale: Tensor | None = None, y_zero: Tensor | None = None, *,
    alpha: float = 1.0, transA: int = 0, transB: int = 0,
) -> Stored:  # fmt: skip
    """The product of quantised matrices and a bias in int32, quantised if there is a scale."""
    left, right = (x.transpose() if turn else x for x, turn in ((a, transA), (b, transB)))
    sums = autograd.matmul(_centred(left, a_zero, -2), _centred(right, b_zero, -1))
    sums = cast(sums if c is None else sums + _integers(c), float64)
    made = sums * (cast(a_scale, float64) * cast(b_scale, float64) * alpha)
    if y_scale is None or y_zero is None:
        return cast(made, float32)
    return _rounded(made / cast(y_scale, float64), _integers(y_zero), element_of(y_zero))
