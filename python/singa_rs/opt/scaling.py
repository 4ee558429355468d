"""Updates by gradients of a scaled loss: mixed precision in float16."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local

from .. import autograd, tensor
from ..autograd.precision import Scale, current, precision_scope
from ..tensor import Tensor
from .exchange import Pair

#: The factor is halved after an update that was skipped, and doubled after so many that were not.
_INTERVAL = 2000
#: The factor stays within these.
_LEAST, _GREATEST = 2.0**-24, 2.0**24


@contextmanager
def full_precision() -> Iterator[Scale | None]:
    """A context in which an optimizer computes in the types of its tensors; gives the scale of the
    loss, if there is one."""
    precision = current()
    with precision_scope(None):
        yield None if precision is None else precision.scale


def backward(loss: Tensor, scale: Scale | None) -> Iterable[Pair]:
    """Parameters and their gradients, through a loss that is scaled meanwhile."""
    return autograd.backward(loss) if scale is None else _unscaled(loss, scale.factor)


class _Parts(local):
    """Of how many parts of a batch the losses of a thread are averaged."""

    count = 1


_parts = _Parts()


@contextmanager
def averaged_over(parts: int) -> Iterator[None]:
    """A context in which a loss is the mean over one of so many parts of a batch, over which
    gradients are averaged. They are smaller then on their way by the least power of two that is not
    below their number, so that they are infinite no sooner than those of the whole batch."""
    before, _parts.count = _parts.count, 1 << (parts - 1).bit_length()
    try:
        yield
    finally:
        _parts.count = before


def _unscaled(loss: Tensor, factor: Tensor) -> Iterator[Pair]:
    factor = factor.reshape(())  # beside which every gradient keeps its shape
    if _parts.count > 1:
        with autograd.no_grad():
            factor = factor / _parts.count
    seed = autograd.cast(factor.reshape(loss.shape), loss.dtype)
    for param, grad in autograd.backward(loss, seed):
        with autograd.no_grad():
            # The factor may be beyond a 16-bit type.
            wide = tensor.float32 if grad.dtype.itemsize < 4 else grad.dtype
            small = autograd.cast(grad, wide) / autograd.cast(factor, wide)
            ready = [(param, autograd.cast(small, grad.dtype))]
        del param, grad
        yield ready.pop()


def are_finite(pairs: list[Pair], scale: Scale, on_all: Callable[[Tensor], Tensor]) -> Tensor:
    """Whether all gradients are finite, a bool; the scale is adjusted to it. `on_all` tells whether
    a condition that holds here, as its argument says, holds on all ranks."""
    with autograd.no_grad():
        grads = [grad for _, grad in pairs] or [scale.factor]  # which is finite
        found = [autograd.all(autograd.isfinite(grad)) for grad in grads]
        is_finite = on_all(autograd.all(autograd.stack(found)))
        _adjust(scale, is_finite)
    return is_finite


def zero_unless(is_finite: Tensor, grad: Tensor) -> Tensor:
    """A gradient, or zeros in an update that is skipped: what an optimizer makes of it then may be
    the first value of what it keeps."""
    with autograd.no_grad():
        return autograd.where(is_finite, grad, 0.0)


def _adjust(scale: Scale, is_finite: Tensor) -> None:
    count = scale.updates + 1
    is_grown = count >= _INTERVAL
    grown = autograd.where(is_grown, scale.factor * 2.0, scale.factor)
    made = autograd.where(is_finite, grown, scale.factor * 0.5)
    scale.factor.copy_from(made.clip(_LEAST, _GREATEST))
    zero = tensor.zeros_like(count)
    scale.updates.copy_from(autograd.where(is_finite & ~is_grown, count, zero))


#: A context that changes nothing.
_ALWAYS = nullcontext()


def only_if(
    condition: Tensor | None, written: Callable[[], Mapping[Hashable, Tensor]]
) -> AbstractContextManager[None]:
    """A context after which the tensors that `written()` names have the elements of those that it
    named before, unless the condition holds, which None does. Further ones are zeros then, but for
    those under paths, whose first values are theirs.

    Raises:
        ValueError: a tensor under a path has another shape than before.
    """
    return _ALWAYS if condition is None else _if(condition, written)


@contextmanager
def _if(condition: Tensor, written: Callable[[], Mapping[Hashable, Tensor]]) -> Iterator[None]:
    with autograd.no_grad():
        before = {key: one.clone() for key, one in written().items()}
    yield
    with autograd.no_grad():
        for key, one in written().items():
            old = before.get(key)
            if old is None and isinstance(key, str):
                continue
            if old is not None and old.shape != one.shape:
                raise ValueError(
                    f"optimizer: got shape {one.shape} for {key}, want {old.shape} as before: an "
                    "update may be skipped, after which everything is as it was"
                )
            old = tensor.zeros_like(one) if old is None else old
            one.copy_from(autograd.where(condition, one, old))
