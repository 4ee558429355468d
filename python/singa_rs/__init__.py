"""singa_rs: a deep-learning training engine in Rust with Apache SINGA's Python interface."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from . import _core, autograd, device, elsewhere, errors, record, tensor
from .compat import recording as _of_singa  # noqa: F401 - gives devices SINGA's methods
from .errors import (
    CheckpointError,
    DeviceError,
    DistError,
    DTypeError,
    GraphError,
    MemoryBudgetError,
    OutOfMemoryError,
    ShapeError,
)
from .record import Step
from .seeds import set_seed
from .tensor import (
    Placeholder,
    Tensor,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

if TYPE_CHECKING:
    from types import ModuleType

    from . import (
        data,
        dist,
        image_tool,
        initializer,
        layer,
        linalg,
        loss,
        metric,
        model,
        module,
        opt,
        singa_wrap,
        snapshot,
        sonnx,
        viz,
    )

__version__: str = _core.__version__
_absent = elsewhere.absent(__name__)
_core.set_package(os.path.dirname(__file__))

_LAZY = (
    "data", "dist", "image_tool", "initializer", "layer", "linalg", "loss", "metric", "model",
    "module", "opt", "singa_wrap", "snapshot", "sonnx", "viz",
)  # fmt: skip

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "DistError",
    "GraphError",
    "MemoryBudgetError",
    "OutOfMemoryError",
    "Placeholder",
    "ShapeError",
    "Step",
    "Tensor",
    "autograd",
    "bfloat16",
    "bool_",
    "data",
    "device",
    "dist",
    "errors",
    "float16",
    "float32",
    "float64",
    "image_tool",
    "initializer",
    "int16",
    "int32",
    "int64",
    "int8",
    "layer",
    "linalg",
    "loss",
    "metric",
    "model",
    "module",
    "opt",
    "record",
    "set_seed",
    "singa_wrap",
    "snapshot",
    "sonnx",
    "tensor",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "viz",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # so that checkers refuse what the package does not have

    def __getattr__(name: str) -> ModuleType | _core.DType:
        """Imports the other modules of the package on first use. `bool` is a dtype, as its repr
        says, but not public: `import *` would hide Python's."""
        if name == "bool":
            return bool_
        if name in _LAZY:
            return importlib.import_module(f"{__name__}.{name}")
        return _absent(name)
