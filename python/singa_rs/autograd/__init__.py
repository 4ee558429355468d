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

from .. import errors
from ..tensor import to_numpy

from . import binary, methods, unary  # isort: skip - all submodules, before functions of their names
from .binary import Binary
from .casting import Cast, cast
from .classification import nll_loss, softmax_cross_entropy
from .ctc import ctc_loss
from .distance import (
    cosine_embedding_loss,
    cosine_similarity,
    huber_loss,
    l1_loss,
    smooth_l1_loss,
    triplet_margin_loss,
)
from .divergence import binary_cross_entropy_with_logits, kl_div
from .engine import Gradients, backward, gradients
from .index import Embedding, Gather, Where, embedding, gather, where
from .loss import (
    BinaryCrossEntropy,
    CrossEntropy,
    Loss,
    MeanSquareError,
    RankingLoss,
    SoftMaxCrossEntropy,
    binary_cross_entropy,
    cross_entropy,
    mse_loss,
    ranking_loss,
)
from .math import CosSim, Max, Mean, Min, PRelu, Sum, add_all, cossim, max, mean, min, prelu, sum
from .matmul import AddBias, Gemm, Matmul, add_bias, gemm, matmul
from .mode import mode as _mode
from .mode import no_grad, set_training
from .mode import training_scope as _training_scope
from .nn import (
    ConvHandle,
    Dropout,
    GlobalAveragePool,
    PoolingHandle,
    _Conv2d,
    _Pooling2d,
    conv2d,
    dropout,
    globalaveragepool,
    pooling_2d,
)
from .norm import BatchNormHandle, _BatchNorm2d, batchnorm_2d
from .ops import axis_helper, back_broadcast
from .positions import (
    ConstantOfShape,
    NonZero,
    OneHot,
    ScatterElements,
    Shape,
    constant_of_shape,
    nonzero,
    onehot,
    scatter_elements,
    shape,
)
from .reduce import (
    LogSoftMax,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    SoftMax,
    argmax,
    argmin,
    log_softmax,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    softmax,
)
from .repeat import (
    DepthToSpace,
    Pad,
    Repeat,
    SpaceToDepth,
    Tile,
    UpSample,
    depth_to_space,
    pad,
    repeat,
    space_to_depth,
    tile,
    upsample,
)
from .rule import Rule
from .shape import (
    Concat,
    Split,
    cat,
    clone,
    expand,
    flatten,
    identity,
    reshape,
    slice,
    split,
    squeeze,
    stack,
    transpose,
    unsqueeze,
)
from .tape import Dummy, Operator
from .views import Expand, Flatten, Identity, Reshape, Select, Slice, Squeeze, Transpose, Unsqueeze

#: SINGA's name for `tensor.to_numpy`.
ctensor2numpy = to_numpy
#: SINGA's older name for Operator.
Operation = Operator

globals().update(unary.FUNCTIONS)
globals().update(binary.FUNCTIONS)
globals().update(unary.CLASSES)
globals().update(binary.CLASSES)


# Backward functions call user code; functions of the tables are fast and name themselves in errors.
_QUIET = {"backward", "gradients", "set_training", *unary.TABLE, *binary.FUNCTIONS}
errors.name_functions(globals(), _QUIET)

#: Layers that SINGA's programs also import from here.
_LAYERS = (
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm2d",
    "Conv2d",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "Pooling2d",
    "SeparableConv2d",
)


class _Autograd(types.ModuleType):
    """The module's own type, so that `autograd.training = True` reaches the tape."""

    def __getattr__(self, name: str) -> Any:
        if name in _LAYERS:
            return getattr(importlib.import_module("singa_rs.layer"), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    @property
    def training(self) -> bool:
        """Whether operations are recorded and layers behave as in training."""
        return _mode.training

    @training.setter
    def training(self, value: bool) -> None:
        set_training(value)


sys.modules[__name__].__class__ = _Autograd
