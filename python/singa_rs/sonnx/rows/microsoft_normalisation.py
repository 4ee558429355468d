"""onnxruntime's operators that normalise rows of sums, as its optimizer joins them."""

from __future__ import annotations

from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, arange, int32, int64, zeros
from ..body import Node
from ..table import reads
from .microsoft_domain import DOMAIN, refuse
from .normalisation import layer_normalization, rms_normalization
from .quantization import dequantize_linear

#: What the mean and the inverse deviation are called, which onnxruntime keeps for training only.
_KEPT = ("mean", "inv_std_var")


@reads("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1,
    node: Node,
) -> Tensor:  # fmt: skip
    """Rows divided by their root mean square, which onnxruntime has in ONNX's own domain."""
    refuse("SimplifiedLayerNormalization", **_named(node, 1, _KEPT[1:]))
    return rms_normalization(x, scale, axis=axis, epsilon=epsilon)


def _named(node: Node, first: int, names: tuple[str, ...]) -> dict[str, str]:
    """The outputs of a node from a position on, by what they are called."""
    return dict(zip(names, node.outputs[first:], strict=False))


def _total(x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    return x + skip if bias is None else x + skip + bias


@reads("SkipLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None,
    *, epsilon: float = 1e-12, node: Node,
) -> tuple[Any, ...]:  # fmt: skip
    """The rows of `x + skip + bias` normalised; the sum as the fourth output."""
    refuse("SkipLayerNormalization", **_named(node, 1, _KEPT))
    total = _total(x, skip, bias)
    return layer_normalization(total, gamma, beta, epsilon=epsilon, outputs=1), None, None, total


@reads("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12,
    node: Node,
) -> tuple[Any, ...]:  # fmt: skip
    """The rows of `x + skip + bias` divided by their root mean squares; the sum as the fourth
    output."""
    refuse("SkipSimplifiedLayerNormalization", **_named(node, 1, _KEPT))
    total = _total(x, skip, bias)
    return rms_normalization(total, gamma, epsilon=epsilon), None, None, total


@reads("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_normalization(
    ids: Tensor, *given: Tensor | None, epsilon: float = 1e-12, mask_index_type: int = 1
) -> tuple[Any, ...]:
    """The normalised sums of the embeddings of words, positions and segments; how many words of
    each row the mask counts, 0 without one; the sums. After the words' `ids` come those of
    segments, the three tables, a scale, a bias, a mask and the positions."""
    if mask_index_type not in (0, 1):
        got = f"mask_index_type {mask_index_type}"
        raise NotImplementedError(f"EmbedLayerNormalization: got {got}, want 0 or 1")
    every = (*given, *(None,) * (8 - len(given)))
    segments, words, positions, kinds, gamma, beta, mask, position_ids = every
    if words is None or positions is None or gamma is None or beta is None:
        raise ValueError("EmbedLayerNormalization: got too few inputs, want tables, gamma and beta")
    if (segments is None) != (kinds is None):
        raise ValueError("EmbedLayerNormalization: got one of segments and their table, want both")
    if position_ids is None:
        position_ids = arange(ids.shape[1], device=ids.device, dtype=int64)
    total = autograd.gather(words, 0, ids) + autograd.gather(positions, 0, position_ids)
    if segments is not None and kinds is not None:
        total = total + autograd.gather(kinds, 0, segments)
    y = layer_normalization(total, gamma, beta, epsilon=epsilon, outputs=1)
    return y, _counted(mask, ids), total


def _counted(mask: Tensor | None, ids: Tensor) -> Tensor:
    """How many elements of each row of a mask are 1, int32."""
    if mask is None:
        return zeros((ids.shape[0],), ids.device, int32)
    return cast(autograd.reduce_sum(cast(mask == 1, int64), [1], 0), int32)


@reads("QEmbedLayerNormalization", domain=DOMAIN)
def qembed_layer_normalization(
    ids: Tensor, segments: Tensor | None, *given: Tensor | None, epsilon: float = 1e-12
) -> tuple[Any, ...]:
    """The same with quantised tables, scale and bias; after the mask come the five scales, then
    the five zero points."""
    triples = zip(given[:5], given[6:11], given[11:], strict=True)
    tables = (None if x is None else dequantize_linear(x, s, zero) for x, s, zero in triples)
    made = embed_layer_normalization(ids, segments, *tables, given[5], epsilon=epsilon)
    return made[:2]
