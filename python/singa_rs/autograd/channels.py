"""Channels: in other orders, as blocks of space, normalised by each other, dropped as a whole; and
dropout for SELU."""

from __future__ import annotations

import math
from typing import Any

from .._core import ShapeError
from ..tensor import Tensor
from ..tensor.numbers import real, whole, within
from . import ops
from .casting import cast, floating
from .index import where
from .mode import mode
from .pooling import avg_pool
from .repeat import depth_to_space, pad, space_to_depth
from .sampling import uniform
from .shape import apart, plain_reshape, transpose
from .table import public
from .terms import wide


@public()
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of groups in turn: the first of each group, then the second ... (Zhang et al., 2017;
    PyTorch channel_shuffle).

    Args:
        x: (N, C, ...).
        groups: a divisor of C.

    Raises:
        ShapeError: no channels, or channels that cannot be divided.
        ValueError: fewer than one group.
    """
    count = whole(groups, "channel_shuffle: groups")
    if count < 1:
        raise ValueError(f"channel_shuffle: got {count} groups, want at least 1")
    if x.rank < 2 or x.shape[1] % count:
        raise ShapeError(f"channel_shuffle: got shape {x.shape}, want a multiple of {count}")
    n, channels, *rest = x.shape
    split = plain_reshape(x, (n, count, channels // count, *rest))
    order = [0, 2, 1, *range(3, split.rank)]
    return apart(plain_reshape(transpose(split, order), x.shape), x)


def _images(op: str, x: Tensor, by: int) -> Tensor:
    if by < 1:
        raise ValueError(f"{op}: got factor {by}, want at least 1")
    if x.rank < 3:
        raise ShapeError(f"{op}: got shape {x.shape}, want (..., C, H, W)")
    return plain_reshape(x, (math.prod(x.shape[:-3]), *x.shape[-3:]))


@public()
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Channels to space, (..., C r**2, H, W) to (..., C, H r, W r) (Shi et al., 2016; PyTorch
    pixel_shuffle, ONNX DepthToSpace with mode "CRD").

    Raises:
        ShapeError: fewer than three axes, or channels that cannot be divided.
        ValueError: a factor below 1.
    """
    by = whole(upscale_factor, "pixel_shuffle: upscale_factor")
    made = depth_to_space(_images("pixel_shuffle", x, by), by, "CRD")
    return plain_reshape(made, (*x.shape[:-3], *made.shape[1:]))


@public()
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Space to channels, (..., C, H r, W r) to (..., C r**2, H, W): the inverse of `pixel_shuffle`
    (PyTorch pixel_unshuffle).

    Raises:
        ShapeError: fewer than three axes, or extents that cannot be divided.
        ValueError: a factor below 1.
    """
    by = whole(downscale_factor, "pixel_unshuffle: downscale_factor")
    made = space_to_depth(_images("pixel_unshuffle", x, by), by, "CRD")
    return plain_reshape(made, (*x.shape[:-3], *made.shape[1:]))


@public(precision="wide")
def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`x / (k + alpha * mean of the squares of size channels) ** beta` (Krizhevsky et al., 2012;
    PyTorch local_response_norm, ONNX LRN).

    The window has `size // 2` channels before its own (ONNX, for an even size: one less); zeros
    stand beyond the first and the last.

    Args:
        x: (N, C, ...); integers become float32.
        size: how many channels.
        alpha, beta, k: numbers.

    Raises:
        ShapeError: fewer than three axes.
        ValueError: a size below 1.
    """
    name = "local_response_norm"
    count, given = whole(size, f"{name}: size"), floating(x)
    numbers = [real(one, f"{name}: {what}") for one, what in ((alpha, "alpha"), (beta, "beta"))]
    least = real(k, f"{name}: k")
    if count < 1:
        raise ValueError(f"{name}: got size {count}, want at least 1")
    if x.rank < 3:
        raise ShapeError(f"{name}: got shape {x.shape}, want (N, C) and more axes")
    if not x.numel:
        return given
    made = wide(given)
    n, channels, *rest = x.shape
    squares = plain_reshape(made * made, (n, 1, channels, math.prod(rest)))
    before, after = count // 2, (count - 1) // 2
    squares = pad(squares, "constant", [0, 0, before, 0, 0, 0, after, 0])
    means = plain_reshape(avg_pool(squares, (count, 1), 1), x.shape)
    return cast(made / (means * numbers[0] + least) ** numbers[1], given.dtype)


# ---- dropout -------------------------------------------------------------------------------------

#: What SELU tends to for large negative inputs.
_SATURATED = -1.7580993408473766


def _share(op: str, ratio: Any) -> float:
    made = within(ratio, f"{op}: ratio", 0, 1)
    if made == 1:
        raise ValueError(f"{op}: got ratio 1, want 0 <= ratio < 1")
    return made


def _alpha_dropped(op: str, x: Tensor, ratio: Any, shape: tuple[int, ...]) -> Tensor:
    p, x = _share(op, ratio), floating(x)
    if not (mode.training and p):
        return x
    kept = ops.scalar_op("ge", p)(uniform(x, shape))
    kept.requires_grad = False
    scale = ((1 - p) * (1 + p * _SATURATED**2)) ** -0.5
    made = where(kept, wide(x), _SATURATED)
    return cast(made * scale - scale * _SATURATED * p, x.dtype)


@public()
def alpha_dropout(x: Tensor, ratio: float = 0.5) -> Tensor:
    """In training, elements replaced with probability `ratio` by what SELU tends to, and all scaled
    and moved so that mean and variance stay (Klambauer et al., 2017; PyTorch alpha_dropout).

    Args:
        x: of any shape; integers become float32.
        ratio: from 0 to below 1.

    Raises:
        ValueError: another ratio.
    """
    return _alpha_dropped("alpha_dropout", x, ratio, x.shape)


def _channels(op: str, x: Tensor) -> tuple[int, ...]:
    if x.rank < 2:
        raise ShapeError(f"{op}: got shape {x.shape}, want (N, C, ...)")
    return (*x.shape[:2], *(1,) * (x.rank - 2))


@public()
def feature_alpha_dropout(x: Tensor, ratio: float = 0.5) -> Tensor:
    """`alpha_dropout` of whole channels of (N, C, ...) (PyTorch feature_alpha_dropout).

    Raises:
        ShapeError: no channels.
        ValueError: a ratio that is not from 0 to below 1.
    """
    name = "feature_alpha_dropout"
    return _alpha_dropped(name, x, ratio, _channels(name, x))


@public()
def feature_dropout(x: Tensor, ratio: float = 0.5) -> Tensor:
    """In training, whole channels of (N, C, ...) set to zero with probability `ratio`, the others
    scaled by `1 / (1 - ratio)` (Tompson et al., 2015; PyTorch dropout2d).

    Raises:
        ShapeError: no channels.
        ValueError: a ratio that is not from 0 to below 1.
    """
    p, x = _share("feature_dropout", ratio), floating(x)
    shape = _channels("feature_dropout", x)
    if not (mode.training and p):
        return x
    kept = ops.scalar_op("ge", p)(uniform(x, shape))
    kept.requires_grad = False
    return where(kept, x * (1 / (1 - p)), 0.0)
