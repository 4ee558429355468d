"""SINGA's `autograd`: `singa_rs.autograd`, with the rules of `compat.rules`."""

import sys

from ... import autograd as _autograd
from .names import names_of

globals().update(names_of(_autograd))

from ..dependency import infer_dependency  # noqa: E402, F401
from ..rules import (  # noqa: E402, F401 - in place of those above
    SoftMax,
    Tile,
    back_broadcast,
    max,
    mean,
    min,
    softmax,
    sum,
    tile,
    where,
)


class _Autograd(type(_autograd)):  # type: ignore[misc]
    """The module's own type: `training` is that of `singa_rs.autograd`, layers are SINGA's."""

    _layers = "singa_rs.compat.singa.layer"

    def __dir__(self) -> list[str]:
        return sorted({*_autograd.__all__, *vars(self), "training"})


sys.modules[__name__].__class__ = _Autograd
