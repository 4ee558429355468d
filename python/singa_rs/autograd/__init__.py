# ruff: noqa: F401 - the names of other files are public here
"""Automatic differentiation: recorded operations, and gradients of their results.

`autograd.training` is read and assigned like a plain global, False by default: while it is True
operations are recorded, dropout drops and batch normalisation uses the batch. Within a module's
call the calling thread sees the value of that call.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from .. import elsewhere as _elsewhere
from .. import tensor as _tensor
from ..tensor import Tensor as _Tensor
from ..tensor import to_numpy

# isort: off - what the rows of these files give, before submodules of the same names
from . import (
    activations,
    adaptive,
    aliases,
    along,
    angles,
    arrange,
    assigning,
    attention,
    axes,
    bags,
    bins,
    by_axes,
    channels,
    classification,
    contract,
    convolution,
    ctc,
    distance,
    divergence,
    extremes,
    factors,
    finite,
    folding,
    functions,
    grid,
    lengths,
    likelihood,
    likes,
    loss,
    margins,
    math,
    methods,
    nans,
    nn,
    norm,
    pairs,
    parametrised,
    parts,
    pieces,
    pooling,
    positions,
    powers,
    products,
    putting,
    quantiles,
    recurrent,
    repeat,
    resize,
    rnn_handle,
    running,
    sampling,
    scan,
    scattering,
    searching,
    sorting,
    special,
    statistics,
    systems,
    unary,
)

# isort: on
from .binary import Binary
from .engine import Gradients
from .keywords import ctensor2numpy
from .keywords import in_both_spellings as _in_both_spellings
from .mode import mode as _mode
from .mode import no_grad, set_training
from .mode import training_scope as _training_scope
from .rule import Rule
from .table import FUNCTIONS, METHODS, OF_TENSOR
from .tape import Dummy, Operator
from .views import Select

#: SINGA's older name for Operator.
Operation = Operator

globals().update(FUNCTIONS)
globals().update(_in_both_spellings(FUNCTIONS))
vars(_tensor).update(OF_TENSOR)
for _name, _method in METHODS.items():
    setattr(_Tensor, _name, _method)

#: Layers that SINGA's programs also import from here.
_LAYERS = (
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm2d",
    "Conv2d",
    "LSTM",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "Pooling2d",
    "RNN",
    "RNN_Base",
    "SeparableConv2d",
)

#: What stands beside the rows of the table.
_BESIDE = (
    "Binary", "Dummy", "Gradients", "Operation", "Operator", "Rule", "Select", "ctensor2numpy",
    "no_grad", "set_training", "to_numpy",
)  # fmt: skip
__all__ = sorted({*(name for name in FUNCTIONS if name[0] != "_"), *_BESIDE, *_LAYERS})
_tensor.__all__ = sorted({*_tensor.__all__, *OF_TENSOR})


_absent = _elsewhere.absent(__name__)


class _Autograd(types.ModuleType):
    """The module's own type, so that `autograd.training = True` reaches the tape."""

    #: The module that layers come from.
    _layers = "singa_rs.layer"

    def __getattr__(self, name: str) -> Any:
        if name in _LAYERS:
            return getattr(importlib.import_module(self._layers), name)
        return _absent(name)

    def __dir__(self) -> list[str]:
        return sorted([*self.__dict__["__all__"], "training"])

    @property
    def training(self) -> bool:
        """Whether operations are recorded and layers behave as in training."""
        return _mode.training

    @training.setter
    def training(self, value: bool) -> None:
        set_training(value)


sys.modules[__name__].__class__ = _Autograd
