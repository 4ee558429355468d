"""SINGA's class of what writes ONNX."""

from __future__ import annotations

from typing import Any

import onnx

from ..sonnx import to_onnx


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
