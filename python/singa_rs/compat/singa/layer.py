"""SINGA's `layer`: `singa_rs.layer`, with SINGA's rules for softmax, batch normalisation, and for
keywords that a constructor does not know."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from ... import layer as _layer
from ...tensor import Tensor
from .. import layer as _named
from . import autograd
from .names import names_of

# The layers of SINGA 1.x's nets have names of their own, except for a few.
globals().update({**names_of(_named), **names_of(_layer)})


def _without_further(layer: type, given: dict[str, Any]) -> dict[str, Any]:
    """The keywords that a layer's constructor knows; SINGA's constructors ignore all others."""
    known = inspect.signature(layer.__init__).parameters  # type: ignore[misc]
    further = [name for name in given if name not in known]
    if further:
        message = f"{layer.__name__}: ignores {', '.join(further)}, as SINGA does"
        warnings.warn(message, stacklevel=4)
    return {name: value for name, value in given.items() if name in known}


class Linear(_layer.Linear):
    """`singa_rs.layer.Linear`; further keywords are ignored, with a warning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `singa_rs.layer.Linear`."""
        super().__init__(*args, **_without_further(_layer.Linear, kwargs))


class Conv2d(_layer.Conv2d):
    """`singa_rs.layer.Conv2d`; further keywords are ignored, with a warning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As `singa_rs.layer.Conv2d`."""
        super().__init__(*args, **_without_further(_layer.Conv2d, kwargs))


class BatchNorm2d(_layer.BatchNorm2d):
    """Batch normalisation of (N, C) or (N, C, H, W). The weight of the new batch in the
    running averages is 0.9 by default, as in SINGA."""

    def __init__(self, *args: Any, momentum: float = 0.9, eps: float = 1e-5) -> None:
        """As `singa_rs.layer.BatchNorm2d`."""
        super().__init__(*args, momentum=momentum, eps=eps)


class SoftMax(_layer.SoftMax):
    """Softmax over the axes from `axis` on together (SINGA SoftMax)."""

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape that has the axis."""
        return autograd.softmax(x, self.axis)


class Dropout(_layer.Dropout):
    """`singa_rs.layer.Dropout`; that of SINGA 1.x's nets if a name is given first."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A layer of the one kind or the other."""
        return super().__new__(_named.Dropout if _is_name(args) else cls)


class Flatten(_layer.Flatten):
    """`singa_rs.layer.Flatten`; that of SINGA 1.x's nets if a name is given first."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A layer of the one kind or the other."""
        return super().__new__(_named.Flatten if _is_name(args) else cls)


def _is_name(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], str)


#: SINGA's name for the class of layer classes.
LayerMeta = type(_layer.Layer)
