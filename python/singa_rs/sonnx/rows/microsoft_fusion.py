"""onnxruntime's operators for activations, products and convolutions that its optimizer has joined
with what stands next to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import autograd
from ...tensor import Tensor
from ..table import reader, reads
from .convolution import conv
from .elementwise import swish
from .microsoft_domain import DOMAIN
from .products import gemm

#: Activations that follow a product, and the names of their attributes, in the order in which
#: `activation_params` has them.
_ACTIVATIONS = {
    "": (),
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Elu": ("alpha",),
    "LeakyRelu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    "Clip": ("min", "max"),
}
#: The opset whose activations these are.
_OPSET = 10


def _activated(op: str, x: Tensor, activation: str, given: dict[str, float]) -> Tensor:
    """What an activation makes of the result of `op`; it needs all of its attributes."""
    if activation not in _ACTIVATIONS:
        want = ", ".join(name for name in _ACTIVATIONS if name)
        raise NotImplementedError(f"{op}: got activation {activation!r}, want one of {want}")
    if given.keys() != set(_ACTIVATIONS[activation]):
        want = ", ".join(_ACTIVATIONS[activation]) or "none"
        got = ", ".join(given) or "none"
        raise ValueError(f"{op}: got parameters {got} of activation {activation!r}, want {want}")
    return reader("", activation, _OPSET).run(x, **given) if activation else x


# ---- activations ---------------------------------------------------------------------------------


@reads("Gelu", domain=DOMAIN)
def gelu(x: Tensor) -> Tensor:
    """`x` times the normal distribution function."""
    return autograd.gelu(x)


@reads("BiasGelu", domain=DOMAIN)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """`gelu(x + bias)`."""
    return autograd.gelu(x + bias)


@reads("FastGelu", domain=DOMAIN)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """An approximation of `gelu(x + bias)` by tanh."""
    return autograd.gelu_tanh(x if bias is None else x + bias)


@reads("QuickGelu", domain=DOMAIN)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    """`x sigmoid(alpha x)`."""
    return swish(x, alpha=alpha)


@reads("BiasAdd", domain=DOMAIN)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    """`x + bias + skip`."""
    return x + bias + skip


# ---- products ------------------------------------------------------------------------------------


def _turned(x: Tensor, is_transposed: int, has_rows_first: int) -> Tensor:
    """A matrix for each place of the leading axes, of `x` (rows, ..., columns) if its rows stand
    first, transposed if wanted; vectors are left as they are."""
    if x.rank < 2:
        return x
    if has_rows_first:
        x = autograd.moveaxis(x, 0, -2)
    return autograd.swapaxes(x, -1, -2) if is_transposed else x


@reads("TransposeMatMul", domain=DOMAIN)
@reads("FusedMatMul", domain=DOMAIN)
def fused_matmul(
    a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
    transBatchA: int = 0, transBatchB: int = 0,
) -> Tensor:  # fmt: skip
    """`alpha a b` of the last two axes, transposed before if wanted."""
    made = autograd.matmul(_turned(a, transA, transBatchA), _turned(b, transB, transBatchB))
    return made if alpha == 1 else made * alpha


@reads("FusedGemm", domain=DOMAIN)
def fused_gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, activation: str = "", **attributes: Any
) -> Tensor:
    """An activation of `alpha a b + beta c`, whose attributes are named `activation_alpha` etc."""
    prefix = "activation_"
    names = [name for name in attributes if name.startswith(prefix)]
    given = {name.removeprefix(prefix): attributes.pop(name) for name in names}
    return _activated("FusedGemm", gemm(a, b, c, **attributes), activation, given)


@reads("FusedConv", domain=DOMAIN)
def fused_conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, z: Tensor | None = None, *,
    activation: str = "", activation_params: Sequence[float] = (), **attributes: Any,
) -> Tensor:  # fmt: skip
    """An activation of a convolution, to which `z` is added."""
    made = conv(x, w, b, **attributes)
    names = _ACTIVATIONS.get(activation, ())
    if len(activation_params) != len(names):
        got, want = tuple(activation_params), len(names)
        raise ValueError(f"FusedConv: got activation_params {got}, want {want} for {activation!r}")
    given = dict(zip(names, activation_params, strict=True))
    return _activated("FusedConv", made if z is None else made + z, activation, given)
