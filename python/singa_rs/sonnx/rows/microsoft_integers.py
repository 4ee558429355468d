"""onnxruntime's products of quantised matrices whose results are floats, as its optimizer and its
quantiser write them."""

from __future__ import annotations

import math
from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, float32, int32
from ..table import reads
from .microsoft_attention import FILTER, _self_attention
from .microsoft_domain import DOMAIN, refuse
from .quantization import Stored, _product, dynamic_quantize_linear


@reads("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(
    a: Stored, b: Tensor, a_scale: Any, b_scale: Tensor, a_zero: Stored | None = None,
    b_zero: Tensor | None = None, bias: Tensor | None = None, *, op: str = "MatMulIntegerToFloat",
) -> Tensor:  # fmt: skip
    """`(a - a_zero) a_scale (b - b_zero) b_scale + bias`, with scales and zero points of `b` for
    all, or for each column."""
    if math.prod(a_scale.shape) != 1:
        raise NotImplementedError(f"{op}: got scales {a_scale.shape} of a, want one")
    scale = a_scale.reshape(()) * (b_scale if math.prod(b_scale.shape) > 1 else b_scale.reshape(()))
    made = cast(cast(_product(a, b, a_zero, b_zero), int32), float32) * scale
    return made if bias is None else made + bias


@reads("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """The same of `a` in uint8, with the scale and the zero point of its values."""
    made, scale, zero = dynamic_quantize_linear(a)
    op = "DynamicQuantizeMatMul"
    return matmul_integer_to_float(made, b, scale, b_scale, zero, b_zero, bias, op=op)


@reads("QAttention", domain=DOMAIN)
def qattention(
    x: Tensor, weights: Tensor, bias: Tensor, x_scale: Tensor, weight_scale: Tensor,
    mask_index: Tensor | None = None, x_zero: Tensor | None = None,
    weight_zero: Tensor | None = None, past: Tensor | None = None, *, num_heads: int,
    scale: float = 0.0, unidirectional: int = 0, mask_filter_value: float = FILTER,
    do_rotary: int = 0, past_present_share_buffer: int = 0, outputs: int,
) -> tuple[Any, ...]:  # fmt: skip
    """Self-attention with projections by quantised numbers, and the keys and the values of all
    positions."""
    op, shared = "QAttention", past_present_share_buffer
    refuse(op, do_rotary=do_rotary, past_present_share_buffer=shared)
    given = x, weights, x_scale, weight_scale, x_zero, weight_zero, bias
    return _self_attention(
        op, matmul_integer_to_float(*given, op=op), mask_index, past, None, num_heads=num_heads,
        unidirectional=unidirectional, scale=scale, fill=mask_filter_value, outputs=outputs,
    )  # fmt: skip


@reads("MatMulNBits", domain=DOMAIN)
def matmul_nbits(
    a: Tensor, b: Tensor, scales: Tensor, zeros: Tensor | None = None, g_idx: Tensor | None = None,
    bias: Tensor | None = None, *, K: int, N: int, block_size: int, bits: int = 4,
    accuracy_level: int = 0, weight_prepacked: int = 0,
) -> Tensor:  # fmt: skip
    """The product of `a` (..., K) and the transpose of a matrix (N, K) of a few bits an element,
    with scales and zero points for each block of columns; `accuracy_level` is the least that
    onnxruntime has to compute in, and floats are more."""
    op = "MatMulNBits"
    refuse(op, g_idx=g_idx, weight_prepacked=weight_prepacked)
    if bits not in (2, 4, 8) or not b.numel:
        raise NotImplementedError(f"{op}: got bits {bits}, B {b.shape}, want bits 2, 4 or 8")
    codes = _unpacked(b.reshape((N, -1)), bits).reshape((N, -1, block_size))
    blocks = codes.shape[1]
    if zeros is None:
        moved = codes - 2 ** (bits - 1)
    else:
        packed = zeros.reshape((N, -1))
        each = packed if zeros.dtype.is_float else _unpacked(packed, bits)[:, :blocks]
        moved = cast(codes, each.dtype) - each.reshape((N, blocks, 1))
    weights = (cast(moved, a.dtype) * scales.reshape((N, blocks, 1))).reshape((N, -1))[:, :K]
    made = autograd.matmul(a, autograd.transpose(weights, (1, 0)))
    return made if bias is None else made + bias


def _unpacked(x: Tensor, bits: int) -> Tensor:
    """The numbers (rows, n) of a few bits in bytes (rows, m), the lowest bits first, int32."""
    wide, count = cast(x, int32), 2**bits
    parts = [
        autograd.remainder(autograd.floor_divide(wide, count**i), count) for i in range(8 // bits)
    ]
    return autograd.stack(parts, -1).reshape((x.shape[0], -1))
