"""SINGA's class that writes ONNX, and its function that computes one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from ..sonnx import SingaBackend, to_onnx


class SingaFrontend:
    """Writes what the tape has as ONNX (SINGA SingaFrontend); see `sonnx.to_onnx`."""

    @classmethod
    def singa_to_onnx_model(cls, inputs: Any, y: Any, model_name: str = "sonnx") -> onnx.ModelProto:
        """`to_onnx(inputs, y, model_name)`: the computation from `inputs` to the tensors `y`."""
        return to_onnx(inputs, y, model_name)

    @classmethod
    def singa_to_onnx_graph(cls, inputs: Any, y: Any, model_name: str = "sonnx") -> onnx.GraphProto:
        """The graph of that model."""
        return cls.singa_to_onnx_model(inputs, y, model_name).graph


def get_op(node: onnx.NodeProto, opset_version: int | None = None) -> Callable[..., Any]:
    """What computes a node: a function of its inputs, which returns a tuple of its outputs (SINGA
    get_op). Gradients flow through it while `autograd.training` is True.

    Args:
        opset_version: the newest that `onnx` knows by default.

    Raises:
        NotImplementedError: an operator that is not read.
    """
    rep = SingaBackend._prepared(node, "CPU", opset_version)
    rep.is_graph = True

    def run(*inputs: Any) -> tuple[Any, ...]:
        return tuple(rep.run(inputs))

    return run
