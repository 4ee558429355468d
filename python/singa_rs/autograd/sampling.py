"""Random numbers within a step: replays of a recording draw new ones, as eager steps do."""

from __future__ import annotations

import math

from .. import _core
from .._core import ShapeError, int64
from ..refusals import strict_flag
from ..tensor import Tensor
from ..tensor.numbers import real, whole, within
from . import ops
from .arrange import flip
from .casting import cast, floating
from .classification import checked
from .index import where
from .mode import mode
from .reduce import as_axes, softmax
from .scan import cumsum, of_scalars
from .sorting import topk
from .table import public
from .terms import wide
from .unary import FUNCTIONS as UNARY


def uniform(like: Tensor, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Numbers drawn from [low, high), in float32 at least, from the stream of steps."""
    name = like.dtype.name if like.dtype.itemsize > 2 else "float32"
    draw = _core.Op("random", dist={"uniform": {"low": low, "high": high}}, shape=shape, dtype=name)
    made = draw(_core.random_state(like.device, "step"))
    made.requires_grad = False
    return made


def _gumbel(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Numbers of the standard Gumbel distribution."""
    drawn = 1.0 - uniform(like, shape)  # never 0
    tiny = 2.0**-64 if drawn.dtype.itemsize > 4 else 2.0**-26
    # Of drawn 1 the logarithm is 0, and half a step below 1 stands in its place.
    first = ops.scalar_op("maximum", tiny)(ops.neg(ops.op("unary", f="log")(drawn)))
    made = ops.neg(ops.op("unary", f="log")(first))
    made.requires_grad = False
    return made


@public()
@of_scalars
def gumbel_softmax(x: Tensor, tau: float = 1.0, hard: bool = False, axis: int = -1) -> Tensor:
    """Softmax of logits with random numbers of the Gumbel distribution, a sample that has a
    gradient (Jang et al., 2017; PyTorch gumbel_softmax).

    Args:
        x: unnormalised log probabilities; integers become float32.
        tau: the temperature, above 0.
        hard: whether the result is 1 at the greatest element and 0 elsewhere; the gradient is that
            of the softmax all the same.
        axis: the axis of the classes.

    Raises:
        ValueError: a temperature that is not positive; an axis that `x` does not have.
    """
    x, is_hard = floating(x), strict_flag(hard, "gumbel_softmax: hard")
    (along,) = as_axes(whole(axis, "gumbel_softmax: axis"), x.rank, "gumbel_softmax")
    heat = within(tau, "gumbel_softmax: tau", 0)
    if not heat:
        raise ValueError("gumbel_softmax: got tau 0, want a positive number")
    soft = softmax((wide(x) + _gumbel(x, x.shape)) / heat, along)
    if is_hard:
        place = ops.reduce_op("argmax", (along,), True)(soft)
        every = ops.op(
            "arange", device=x.device, start=0, step=1, count=x.shape[along], dtype="int64"
        )()
        every = ops.reshape(every, (x.shape[along],) + (1,) * (x.rank - along - 1))
        hit = ops.cast(ops.op("binary", f="eq")(place, every), soft.dtype)
        hit.requires_grad = False
        soft = hit - soft.detach() + soft
    return cast(soft, x.dtype)


@public()
def rrelu(x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3) -> Tensor:
    """`x` where it is positive, else times a slope: in training drawn from [lower, upper) for each
    element, otherwise their mean (Xu et al., 2015; PyTorch rrelu).

    Args:
        x: of any shape; integers become float32.
        lower, upper: numbers in order.

    Raises:
        ValueError: bounds in the wrong order.
    """
    x, low, high = floating(x), real(lower, "rrelu: lower"), real(upper, "rrelu: upper")
    if not -math.inf < low <= high < math.inf:
        raise ValueError(f"rrelu: got slopes from {lower} to {upper}, want finite ones in order")
    if mode.training and low < high:
        slope = cast(uniform(x, x.shape, low, high), x.dtype)
        slope.requires_grad = False
    else:
        slope = (low + high) / 2
    return where(x.detach() < 0, x * slope, x)


@public(methods="multinomial")
def multinomial(x: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Classes drawn with given weights, int64 (PyTorch multinomial): (..., C) to
    (..., num_samples). Without replacement each class is drawn once at most.

    Args:
        x: weights from 0, (C,) or (N, C), whose sum need not be 1; a class of weight 0 is drawn
            only where no other is left.
        num_samples: from 1.
        replacement: whether a class may be drawn again.

    Raises:
        ShapeError: another number of axes; no classes.
        ValueError: fewer classes than draws without replacement; a weight that is negative, NaN or
            infinite, or none above 0, when it is used.
    """
    count = whole(num_samples, "multinomial: num_samples")
    again = strict_flag(replacement, "multinomial")
    if x.rank not in (1, 2) or not x.shape[-1]:
        raise ShapeError(f"multinomial: got shape {x.shape}, want (C,) or (N, C) with classes")
    if count < 1 or (count > x.shape[-1] and not again):
        got = f"{count} samples of {x.shape[-1]} classes"
        raise ValueError(
            f"multinomial: got {got}, want 1 at least, and no more without replacement"
        )
    weights = wide(floating(x)).detach()
    if not again:
        made = topk(UNARY["log"](weights) + _gumbel(weights, weights.shape), count)[1]
    else:
        made = _drawn_again(weights, count)
    made = ops.add(made, _flaws(weights))
    made.requires_grad = False
    return made


def _drawn_again(weights: Tensor, count: int) -> Tensor:
    """Classes whose shares of the sum of weights hold random places in it, found by halving."""
    ends = cumsum(weights, -1)
    # A class of weight 0 ends where the one before does, however the sums are rounded.
    ends = ops.where(ops.scalar_op("gt", 0)(weights), ends, ops.full((), 0, ends))
    ends = ops.greatest_so_far(ends.rank - 1)(ends)
    total = flip(ends, -1)[..., :1]
    drawn = uniform(weights, (*weights.shape[:-1], count)) * total
    # No place is beyond the last class with a weight, as none is beyond NaN.
    ends = ops.where(ops.op("binary", f="lt")(ends, total), ends, ops.full((), math.nan, ends))
    made = ops.op("fill", device=drawn.device, value=0, shape=drawn.shape, dtype="int64")()
    step = 1 << (ends.shape[-1].bit_length() - 1)
    while step:
        ahead = ops.scalar_op("add", step)(made)
        at = ops.scalar_op("minimum", ends.shape[-1] - 1)(ops.scalar_op("sub", 1)(ahead))
        end = ops.op("gather_elements", axis=ends.rank - 1)(ends, at)
        made = ops.where(ops.op("binary", f="le")(end, drawn), ahead, made)
        step >>= 1
    return made


def _flaws(weights: Tensor) -> Tensor:
    """0, which can only be computed if all weights can be: an index that is checked."""
    is_bad = ops.op("unary", f="not")(ops.scalar_op("ge", 0)(weights))
    is_bad = ops.op("binary", f="or")(is_bad, ops.scalar_op("eq", math.inf)(weights))
    is_none = ops.op("unary", f="not")(ops.reduce_op("any", (weights.rank - 1,), True)(weights))
    found = ops.reduce_op("any", (), False)(ops.op("binary", f="or")(is_bad, is_none))
    try:
        return checked("multinomial", ops.cast(found, int64), 1)
    except ValueError:
        raise ValueError(
            "multinomial: got a weight below 0, NaN or infinite, or no weight above 0 at all, want "
            "finite weights from 0"
        ) from None


@public()
def bernoulli(x: Tensor) -> Tensor:
    """1 with the probability that each element is, else 0, of the dtype of `x` (PyTorch bernoulli,
    ONNX Bernoulli). `tensor.bernoulli` has SINGA's arguments.

    Args:
        x: probabilities, of a float dtype; of those below 0 the result is 0, above 1 it is 1,
            and of NaN it is NaN: values are not checked.
    """
    x = floating(x).detach()
    apart = ops.op("unary", f="sign")(ops.sub(wide(x), uniform(x, x.shape)))
    made = ops.cast(ops.scalar_op("maximum", 0)(apart), x.dtype)
    made.requires_grad = False
    return made
