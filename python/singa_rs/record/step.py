"""Steps that were read from files."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from .. import _core, files, viz
from .._core import Device, DType
from ..device import get_default_device
from ..errors import CheckpointError
from ..tensor import Placeholder, Tensor
from .call import staged


class StepTensor(NamedTuple):
    """An argument or a result of a step."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


class Step:
    """A recorded step that `Module.save_step` wrote. It runs without the code of its model.

        step = singa_rs.Step.load("step.srs")
        out, loss = step.run(x, y)

    A step of training updates its states as the model's calls do, to the bit on the same machine:
    parameters, moments, averages, counters, learning rates and the state of its own random
    generator. Rewriting, planning and packing happen when it is loaded, so that a file moves
    between machines.
    """

    def __init__(self, step: _core.Step, device: Device) -> None:
        self._step, self.device = step, device
        #: What it takes and what it returns, in order.
        self.arguments = [StepTensor(*one) for one in step.arguments()]
        self.results = [StepTensor(*one) for one in step.results()]

    @classmethod
    def load(cls, path: str | PathLike[str], device: Device | None = None) -> Step:
        """Reads and plans a step.

        Everything is checked before it is used: sizes against the file's, so that a damaged file
        takes no more memory than a sound one; each operation as when it is recorded; the contents
        by a checksum.

        Raises:
            CheckpointError: the file is missing, truncated, damaged, or of another kind or version.
            OutOfMemoryError, MemoryBudgetError: there is not enough memory.
            TypeError: `path` is not a path, `device` not a device.
        """
        path = files.path_of("Step.load", path)
        device = get_default_device() if device is None else device
        if not isinstance(device, Device):
            raise TypeError(f"Step.load: got {device!r} for device, want a Device")
        with files.reading("Step.load", path) as file:
            try:
                step = _core.Step(file, os.fstat(file.fileno()).st_size, device)
            except CheckpointError as error:
                reason = str(error).partition(": ")[2]  # without the engine's name of the call
                raise CheckpointError(f"Step.load: {path}: {reason}") from None
        return cls(step, device)

    @property
    def states(self) -> dict[str, Tensor]:
        """What is kept from run to run, by name: tensors that show the latest run, and that can be
        written. Parameters and states have the model's names, moments those of
        `Optimizer.get_named_states` after the optimizer's attribute, and `generator` is the key and
        the position of the random generator."""
        found = dict(self._step.states())
        for name, state in found.items():
            state.requires_grad, state._name = False, name
        return found

    @property
    def graph(self) -> viz.Graph:
        """The graph that a run replays, as `Module.graphs` lists them: `summary()`, `layers()`,
        `profile()`, `to_html(path)`."""
        names = {state.block_id: name for name, state in self.states.items()}
        arguments = [one.name for one in self.arguments]
        return viz.Graph(self._step.graph(), repr(self), names, arguments, is_ours=False)

    def run(self, *args: Any) -> tuple[Tensor, ...]:
        """Runs the step once; returns its results, each a new tensor.

        Args:
            args: a tensor or an array for each of `arguments`, of its shape and dtype.

        Raises:
            ShapeError, DTypeError, TypeError: an argument that does not fit, by name.
            GraphError: an argument has no value.
        """
        if len(args) != len(self.arguments):
            names = ", ".join(one.name for one in self.arguments)
            raise TypeError(f"Step.run: got {len(args)} arguments, want {names or 'none'}")
        given = zip(self.arguments, args, strict=True)
        results = self._step.run([self._admitted(one, value) for one, value in given])
        for result in results:
            result.requires_grad = False
        return tuple(results)

    def _admitted(self, argument: StepTensor, value: Any) -> Tensor:
        if isinstance(value, np.ndarray):
            return staged(value, self.device)
        if isinstance(value, Placeholder):
            raise _core.GraphError(f"Step.run: {argument.name}: got an unfilled {value!r}")
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"Step.run: {argument.name}: got {kind}, want a tensor or an array")
        return value

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the step with its present states; an existing file is replaced atomically.

        Raises:
            CheckpointError: the path is a directory, a pipe or a device.
            OSError: the file cannot be written.
            TypeError: not a path.
        """
        path = files.path_of("Step.save", path)
        with files.replacing("Step.save", path) as file:
            self._step.write(file)

    def __repr__(self) -> str:
        arguments = ", ".join(one.name for one in self.arguments)
        results = ", ".join(one.name for one in self.results)
        return f"Step({arguments} -> {results})"
