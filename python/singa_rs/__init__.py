"""singa_rs: a deep-learning training engine in Rust with Apache SINGA's Python interface."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from . import _core, autograd, device, record, tensor
from .errors import (
    CheckpointError,
    DeviceError,
    DTypeError,
    GraphError,
    MemoryBudgetError,
    OutOfMemoryError,
    ShapeError,
)
from .record import Step
from .tensor import Placeholder, Tensor

__version__: str = _core.__version__
_core.set_package(str(Path(__file__).parent))

_LAZY = (
    "data", "image_tool", "initializer", "layer", "linalg", "loss", "metric", "model", "module",
    "opt", "singa_wrap", "sonnx",
)  # fmt: skip

__all__ = [
    "CheckpointError",
    "DTypeError",
    "DeviceError",
    "GraphError",
    "MemoryBudgetError",
    "OutOfMemoryError",
    "Placeholder",
    "ShapeError",
    "Step",
    "Tensor",
    "autograd",
    "device",
    "record",
    "tensor",
]


def __getattr__(name: str) -> ModuleType:
    """Imports the other modules of the package on first use."""
    if name in _LAZY and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
