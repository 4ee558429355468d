"""Clipping: gradients no larger than a limit, which may be a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import autograd, tensor
from ..layer.check import tensors
from ..refusals import is_real
from ..tensor import Tensor
from .exchange import Pair
from .schedule import number

#: Added to the norm, so that no division is by zero (PyTorch clip_grad_norm_).
_TINY = 1e-6


def _limit(value: Any, argument: str) -> Tensor | float:
    """A number above 0, or a tensor of one element, without axes."""
    if isinstance(value, Tensor):
        if value.numel != 1:
            raise ValueError(f"{argument}: got shape {value.shape}, want one element")
        return value.reshape(())
    if not is_real(value) or number(value, argument) > 0:
        return number(value, argument)
    raise ValueError(f"{argument}: got {value!r}, want a number above 0")


def clip_grad_value(
    pairs: Iterable[tuple[Tensor, Tensor]], clip_value: float | Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of parameter and gradient, as from `autograd.backward`, with each element of the
    gradients within `-clip_value` and `clip_value` (PyTorch clip_grad_value_). NaN stays.

    Args:
        pairs: taken one by one, as the results are asked for.
        clip_value: a number above 0, or a tensor of one element, whose value a recorded step reads
            each time.

    Raises:
        TypeError, ValueError: anything else.
    """
    limit = _limit(clip_value, "clip_grad_value: clip_value")
    return _clipped_values(_iterable(pairs, "clip_grad_value"), limit)


def _iterable(pairs: Any, name: str) -> Iterator[Any]:
    try:
        return iter(pairs)
    except TypeError:
        got = type(pairs).__name__
        raise TypeError(f"{name}: got {got}, want pairs of tensors") from None


def _pair(value: Any, name: str) -> Pair:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name}: got {value!r:.80}, want pairs of tensors")
    tensors(value, name)
    return value[0], value[1]


def _clipped_values(pairs: Iterable[Pair], limit: Tensor | float) -> Iterator[Pair]:
    for pair in pairs:
        param, grad = _pair(pair, "clip_grad_value")
        with autograd.no_grad():
            least = autograd.maximum(grad, -limit)
            ready = [(param, autograd.minimum(least, limit).as_type(grad.dtype))]
        del pair, grad, least  # so that their memory is free for the next one
        yield ready.pop()


def clip_grad_norm(
    pairs: Iterable[tuple[Tensor, Tensor]], max_norm: float | Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Pairs of parameter and gradient, as from `autograd.backward`, with all gradients multiplied
    by `max_norm / norm` where the Euclidean norm of all of them together is above `max_norm`
    (Pascanu et al., 2013; PyTorch clip_grad_norm_).

    The norm needs all gradients first, which are in memory at once. It is computed in float32, or
    float64 where a gradient is; a NaN makes all of them NaN.

    Args:
        max_norm: a number above 0, or a tensor of one element, whose value a recorded step reads
            each time.

    Raises:
        TypeError, ValueError: anything else.
    """
    return clipped_norms(pairs, max_norm)


def clipped_norms(
    pairs: Iterable[Pair],
    max_norm: float | Tensor,
    whole_square: Callable[[Tensor], Tensor] = lambda square: square,
) -> list[Pair]:
    """`clip_grad_norm`, where `whole_square` turns the squared norm of the given gradients into
    that of all."""
    name, limit = "clip_grad_norm", _limit(max_norm, "clip_grad_norm: max_norm")
    found = [_pair(pair, name) for pair in _iterable(pairs, name)]
    if not found:
        return found
    with autograd.no_grad():
        squares = [_square(grad) for _, grad in found]
        norm = autograd.sqrt(whole_square(autograd.add_all(*squares)))
        factor = autograd.minimum(limit / (norm + _TINY), 1.0)
        return [(p, (g * factor).as_type(g.dtype)) for p, g in found]


def _square(grad: Tensor) -> Tensor:
    wide = grad if grad.dtype.itemsize > 2 else grad.as_type(tensor.float32)
    return autograd.reduce_sum(wide * wide, None, 0)
