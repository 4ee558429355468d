"""The ONNX file of a checkpoint: the model, with its parameters and states as initialisers.

Elements go from the tensors to the file one tensor after another. A message of the `onnx` package
would hold copies of all of them, and another one when it is serialised; so the messages that hold
them, the model, its graph and the initialisers, are put together here, of parts that the package
has serialised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

import numpy as np

from ...tensor import Tensor
from .onnx_reading import CONSTANTS, DTYPES, GRAPH_INITIALIZER, MODEL_GRAPH, TENSOR_RAW
from .stored import elements
from .wire import field

if TYPE_CHECKING:
    import onnx

#: The most bytes of elements that the model's own file holds, since protobuf reads 2 GiB at most.
EMBEDDED = 2_000_000_000
#: Elements in a file of their own begin at multiples of this, as ONNX recommends for mapping.
_ALIGNMENT = 4096
_IR, _OPSET = 10, 21
_TYPES = {dtype: number for number, dtype in DTYPES.items()}


def tensors_only() -> onnx.ModelProto:
    """A model of no operations: what can be written of one whose forward has no ONNX form."""
    import onnx

    model = onnx.ModelProto(ir_version=_IR, producer_name="singa_rs")
    model.opset_import.add(domain="", version=_OPSET)
    model.graph.name = "tensors"
    return model


def needs_data_file(states: Mapping[str, Tensor]) -> bool:
    """Whether the elements of states exceed what a model's own file may hold."""
    return sum(one.nbytes for one in states.values()) > EMBEDDED


def write(
    file: IO[bytes],
    model: onnx.ModelProto,
    states: Mapping[str, Tensor],
    data: IO[bytes] | None = None,
    location: str = "",
) -> None:
    """Writes a model with states as initialisers by their names, in the place of those that it has
    by these names; others that it has are noted as constants. The states' elements are in the file
    itself, or in `data`, which `location` names."""
    constants = [one for one in model.graph.initializer if one.name not in states]
    model.metadata_props.add(key=CONSTANTS, value="\n".join(one.name for one in constants))
    del model.graph.initializer[:]
    model.graph.initializer.extend(constants)
    places = None if data is None else _write_data(data, location, states)
    begins = {
        name: _begin(name, one, None if places is None else places[name])
        for name, one in states.items()
    }
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    own = 0 if places is not None else sum(one.nbytes for one in states.values())
    length = len(graph) + sum(map(len, begins.values())) + own
    file.write(model.SerializeToString() + field(MODEL_GRAPH, length) + graph)
    for name, one in states.items():
        file.write(begins[name])
        if places is None:
            file.write(_bytes(one))


def _write_data(
    file: IO[bytes], location: str, states: Mapping[str, Tensor]
) -> dict[str, dict[str, str]]:
    """Writes the elements of states; returns where those of each are, as ONNX tells it."""
    places = {}
    for name, one in states.items():
        file.seek(-(-file.tell() // _ALIGNMENT) * _ALIGNMENT)
        offset, length = file.tell(), one.nbytes
        places[name] = {"location": location, "offset": str(offset), "length": str(length)}
        file.write(_bytes(one))
    file.truncate()
    return places


def _begin(name: str, state: Tensor, place: Mapping[str, str] | None) -> bytes:
    """An initialiser up to its elements."""
    from onnx import TensorProto

    made = TensorProto(name=name, dims=state.shape, data_type=_TYPES[state.dtype])
    if place is not None:
        made.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            made.external_data.add(key=key, value=value)
        head = made.SerializeToString()
        return field(GRAPH_INITIALIZER, len(head)) + head
    count = state.nbytes
    head = made.SerializeToString() + field(TENSOR_RAW, count)
    return field(GRAPH_INITIALIZER, len(head) + count) + head


def _bytes(state: Tensor) -> np.ndarray:
    return elements(state).reshape(-1).view(np.uint8)
