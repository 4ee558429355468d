"""ONNX's interface of backends, which its own test suite runs (SINGA SingaBackend)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep

from .. import device as devices
from ..device import Device
from ..layer.check import flag
from ..tensor import Tensor
from ..tensor.creation import copied
from .arrays import packaged
from .body import Node
from .declared import as_array, elements
from .imported import SONNXModel
from .table import READERS
from .values import is_plain, is_text, to_array, to_tensor


class SingaRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: SONNXModel, device: Device) -> None:
        self.model, self.device = model, device
        #: Whether `run` always returns tensors; else it does if it is given any, arrays if not.
        self.is_graph = False

    @property
    def layers(self) -> Iterator[tuple[onnx.NodeProto, Node]]:
        """The nodes, each with what runs it."""
        return ((node.proto, node) for node in self.model._body.nodes)

    def run(
        self, inputs: Any, last_layers: int | None = None, aux_output: Iterable[str] = (), **_: Any
    ) -> list[Any]:
        """The outputs for these inputs, a list in their order, without those that the file has
        values for, or all that it lists; recorded and replayed, but not for all, unless
        `autograd.training` is set."""
        given = inputs if isinstance(inputs, Sequence) else (inputs,)
        wanted = chain(self.model._wanted_of(len(given)), repeat(("", 0)))
        args = [self._input(x, *one) for x, one in zip(given, wanted, strict=False)]
        found = self.model.outputs(args, last_layers, aux_output)
        if self.is_graph or any([isinstance(x, Tensor) for x in given]):
            return list(map(self._tensor, found))
        return [packaged(to_array(one)) for one in found]

    def _tensor(self, value: Any) -> Any:
        """A value on the host as a tensor, if it can be one."""
        is_numbers = isinstance(value, np.ndarray) and not is_text(value)
        return to_tensor(value, self.device) if is_numbers else value

    def _input(self, x: Any, name: str = "", element: int = 0) -> Any:
        """A value of the graph for an argument, of which the graph may declare the element type."""
        if is_plain(x, element):
            return copied(x, self.device)
        x = elements(as_array(name, x, element), element)
        if isinstance(x, (list, tuple)):
            return list(map(self._input, x))
        is_ready = x is None or isinstance(x, (Tensor, dict)) or is_text(x)
        return x if is_ready else to_tensor(x, self.device)


class SingaBackend(Backend):
    """Runs ONNX's models on this package's devices."""

    #: The operators that are imported, as SINGA has them.
    _rename_operators = {name: name for domain, name in READERS if not domain}

    @classmethod
    def prepare(cls, model: Any, device: Any = "CPU", exact: bool = False, **_: Any) -> SingaRep:
        """A model that is ready to run, on a device or the one of this name.

        Args:
            exact: whether replays equal the nodes run one by one to the bit; if not, batch
                normalisation goes into the weights before it, which rounds differently
                (`Module.compile`).
        """
        to = device if isinstance(device, Device) else _device(device)
        made = SONNXModel(model, to)
        made.record_parts(flag(exact, "sonnx: exact"))
        return SingaRep(made, to)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None,
        **kwargs: Any,
    ) -> list[Any]:  # fmt: skip
        """The outputs of one node."""
        return cls._prepared(node, device, kwargs.get("opset_version")).run(inputs)

    @classmethod
    def _prepared(cls, node: onnx.NodeProto, device: Any, opset: int | None) -> SingaRep:
        """One node that is ready to run, as a model."""
        empty = helper.make_empty_tensor_value_info
        graph = helper.make_graph(
            [node],
            "node",
            [empty(x) for x in node.input if x],
            [empty(y) for y in node.output if y],
        )
        version = onnx.defs.onnx_opset_version() if opset is None else opset
        opsets = [helper.make_opsetid(node.domain, version)]
        return cls.prepare(helper.make_model(graph, opset_imports=opsets), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device: "CPU"."""
        return device == "CPU"


def _device(name: str) -> Device:
    if not SingaBackend.supports_device(name):
        raise ValueError(f"sonnx: got device {name!r}, want 'CPU' or a device")
    return devices.get_default_device()


prepare = SingaBackend.prepare
