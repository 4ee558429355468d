"""Runs a program in one way, and records all that can be observed of it."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any

import numpy as np
from singa_rs import autograd, device
from singa_rs.module import Module
from singa_rs.tensor import Tensor

from .program import Program

CPU = device.get_default_device()
DEVICE = device.create_cuda_gpu() if "SINGA_RS_DEVICE" in os.environ else CPU
#: What distinguishes the engine's warning of its own fault from other warnings.
OWN_FAULT = ("report", "bug in")


class Seen:
    """What a run showed: (label, value) pairs. Values are arrays, scalars or names of errors."""

    def __init__(self) -> None:
        self.items: list[tuple[str, Any]] = []
        self.held: list[Tensor] = []
        self.models: list[Any] = []
        self.error: BaseException | None = None
        self.replays = 0
        #: Whether Python code runs in every step, so that attributes it counts in are compared.
        self.counts = True

    def see(self, *values: Any, keep: bool = True) -> None:
        """Records what a session shows; tensors are read again at the end."""
        self.note(f"see {len(self.items)}", values, keep)

    def note(self, label: str, value: Any, keep: bool = False) -> None:
        """Records a tree of values."""
        if isinstance(value, Tensor):
            self.items.append((label, value.to_numpy()))
            if keep:
                self.held.append(value)
        elif isinstance(value, (tuple, list)):
            for i, one in enumerate(value):
                self.note(f"{label}[{i}]", one, keep)
        elif isinstance(value, dict):
            for name, one in value.items():
                self.note(f"{label}.{name}", one, keep)
        elif value is None or isinstance(value, (bool, int, float, str)):
            self.items.append((label, value))

    def look(self, model: Any, numbers: bool = True) -> None:
        """Records parameters, states, gradients, states of optimizers, and values of attributes."""
        for name, state in model.get_states().items():
            self.note(name, state)
            if state.grad is not None:
                self.note(f"{name}.grad", state.grad)
        for name, value in model.__dict__.items():
            if name.startswith("_"):
                continue
            if hasattr(value, "step_counter"):
                self.note(f"{name}.states", value.get_states())
                self.note(f"{name}.lr", value.lr_value)
            elif numbers or isinstance(value, Tensor):
                self.note(name, value)

    def end(self) -> None:
        """Records the final state of models and results."""
        for i, model in enumerate(self.models):
            self.items.append((f"model {i}", None))
            self.look(model, self.counts)
            self.note("training", bool(model.training))
        for i, tensor in enumerate(self.held):
            self.note(f"held {i}", tensor)


@cache
def _preamble(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "preamble", "exec"), names)
    return names


def fresh(program: Program) -> dict[str, Any]:
    """The names of a program's preamble."""
    return dict(_preamble(program.preamble()))


def code_of(program: Program) -> Any:
    """The compiled text, to be run in several ways."""
    return compile(program.source(), f"program-{program.seed}.py", "exec")


def seed() -> None:
    """Begins the random numbers of the CPU, and of the device that programs run on."""
    for one in (CPU, DEVICE):
        one.set_seed(0)


def reset(threads: int) -> None:
    """Everything global is as in a new process."""
    autograd.training, Module._told = False, None
    CPU.set_num_threads(threads)
    seed()


def run(program: Program, code: Any, way: Any) -> Seen:
    """The session of a program in one way, up to the first error."""
    seen = Seen()
    reset(way.threads)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            names = fresh(program)
            names["see"], names["seen"] = seen.see, seen
            exec(code, names)
            names["first"] = [names[f"{name}0"] for name in (*program.inputs.split(", "), "y")]
            way.prepare(names, seen)
            way.session(names, seen)
        except Exception as error:
            seen.error = error
            seen.items.append(("raises", type(error).__name__))
        else:
            seen.end()
        finally:
            seen.replays = sum(replays(model) for model in seen.models)
    for one in told:
        text = str(one.message)
        if any(word in text for word in OWN_FAULT):
            seen.items.append(("warns", text))
    return seen


def replays(model: Any) -> int:
    """How many steps of a model were replays."""
    graphs = model._graphs
    return sum(e.runs for f in graphs.all() for e in f.entries) if graphs is not None else 0


def is_finite(array: Any) -> bool:
    """Whether a value holds no NaN and no infinity."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return True
    return bool(np.isfinite(array).all())
