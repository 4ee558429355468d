"""ONNX: models that are imported, run and trained further, and models that are exported
(SINGA sonnx)."""

from __future__ import annotations

import os
from typing import IO, Any

import onnx
from onnx import ModelProto

from ..shown import shown
from . import rows
from .backend import SingaBackend, SingaRep, prepare
from .exporting import export, model_proto
from .imported import SONNXModel
from .taped import to_onnx

run_node = SingaBackend.run_node

__all__ = [
    "SONNXModel", "SingaBackend", "SingaRep", "export", "load", "model_proto", "prepare", "rows",
    "run_model", "run_node", "save", "to_onnx",
]  # fmt: skip


def load(
    f: str | os.PathLike[str] | IO[bytes],
    format: str | None = None,
    load_external_data: bool = True,
) -> ModelProto:
    """The model in a file (onnx.load).

    Raises:
        TypeError: neither a path nor an open file.
    """
    return onnx.load(_a_file("sonnx.load", f, "read"), format, load_external_data)


def save(
    proto: ModelProto | bytes,
    f: str | os.PathLike[str] | IO[bytes],
    format: str | None = None,
    **options: Any,
) -> None:
    """Writes a model into a file (onnx.save, which tells the options).

    Raises:
        TypeError: neither a path nor an open file.
    """
    onnx.save(proto, _a_file("sonnx.save", f, "write"), format, **options)


def _a_file(op: str, f: Any, method: str) -> Any:
    """A path or an open file; `open` also takes the number of one, and closes it."""
    if not isinstance(f, (str, bytes, os.PathLike)) and not hasattr(f, method):
        raise TypeError(f"{op}: got {shown(f)}, want a path or a file")
    return f


def run_model(model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
    """The outputs of a model for these inputs, run once (`onnx.backend.base.Backend.run_model`)."""
    return SingaBackend.run_model(model, inputs, device, **kwargs)


def __dir__() -> list[str]:
    return sorted(__all__)
