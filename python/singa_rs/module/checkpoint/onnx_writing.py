"""The ONNX file of a checkpoint: the model, with its parameters and states as initialisers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from ... import tensor
from .onnx_reading import DTYPES
from .stored import elements

if TYPE_CHECKING:
    import onnx

#: The most bytes of elements that the model's own file holds, since protobuf reads 2 GiB at most.
EMBEDDED = 2_000_000_000
#: Elements in a file of their own begin at multiples of this, as ONNX recommends for mapping.
_ALIGNMENT = 4096
_IR, _OPSET = 10, 21
_TYPES = {dtype: number for number, dtype in DTYPES.items()}


def tensors_only(states: Mapping[str, tensor.Tensor]) -> onnx.ModelProto:
    """A model of no operations that keeps these tensors: what can be saved of one whose forward
    has no ONNX form."""
    import onnx

    model = onnx.ModelProto(ir_version=_IR, producer_name="singa_rs")
    model.opset_import.add(domain="", version=_OPSET)
    model.graph.name = "tensors"
    for name, one in states.items():
        kept = model.graph.initializer.add(name=name, dims=one.shape, data_type=_TYPES[one.dtype])
        kept.raw_data = elements(one).tobytes()
    return model


def needs_data_file(model: onnx.ModelProto) -> bool:
    """Whether a model's elements exceed what its own file may hold."""
    return sum(len(one.raw_data) for one in model.graph.initializer) > EMBEDDED


def move_out(model: onnx.ModelProto, file: IO[bytes], location: str) -> None:
    """Moves the elements of a model's initialisers to a file, which `location` names."""
    from onnx import TensorProto

    for one in model.graph.initializer:
        file.seek(-(-file.tell() // _ALIGNMENT) * _ALIGNMENT)
        place = {"location": location, "offset": file.tell(), "length": len(one.raw_data)}
        file.write(one.raw_data)
        one.ClearField("raw_data")
        one.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            one.external_data.add(key=key, value=str(value))
    file.truncate()
