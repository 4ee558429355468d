"""Writing a program as a graph of ONNX: nodes, constants and the names of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from ..record import place
from ..tensor import Tensor
from .arrays import from_array
from .extents import Extent, Number, Quotient, Reciprocal, Scalar
from .program import Leaf, Meta, Program, Step
from .table import WRITERS
from .values import ELEMENTS, to_array

#: The oldest opset that is written: earlier operators mean something else, or have fewer types.
OLDEST = 20


class Writer:
    """A graph that is being written. Values are numbers of the program; names those in the file."""

    def __init__(self, program: Program, states: Mapping[str, Tensor] | None = None) -> None:
        self.program = program
        #: The model's names of its parameters and states, by place; all of them are written.
        self.states = {place(one): name for name, one in (states or {}).items()}
        #: The values that steps or the program's caller take.
        self.used = {one for step in program.steps for one in step.inputs} | {*program.results}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        #: Names by value.
        self.names: dict[int, str] = {}
        #: The steps that made values.
        self.makers: dict[int, Step] = {}
        #: For values that are other ones in another shape: the names of those, and their shapes.
        self.sources: dict[int, tuple[str, tuple[Number, ...]]] = {}
        #: Where the size of a dynamic axis is read: a value's name and its axis.
        self.axes: dict[str, tuple[str, int]] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[Any, str] = {}
        self._taken: set[str] = set(self.states.values())

    # ---- names ----------------------------------------------------------------------------------

    def claim(self, wanted: str) -> str:
        """A name that no other value has."""
        name, count = wanted, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def meta(self, value: int) -> Meta:
        """What is known of a value."""
        return self.program.metas[value]

    def shape(self, value: int) -> tuple[Number, ...]:
        """A value's shape."""
        return self.program.metas[value].shape

    def name(self, value: int) -> str:
        """A value's name; a constant is written when it is first asked for."""
        if value not in self.names:
            if value in self.makers:
                step = self.makers[value]
                which = step.outputs.index(value)
                raise NotImplementedError(f"export: {step.name}: its output {which} is not written")
            self.names[value] = self._leaf(self.program.leaves[value], self.meta(value))
        return self.names[value]

    def source(self, value: int) -> tuple[str, tuple[Number, ...]]:
        """A value whose elements these are, in order, and its shape."""
        return self.sources.get(value) or (self.name(value), self.shape(value))

    def _leaf(self, leaf: Leaf, meta: Meta) -> str:
        if isinstance(leaf, (Extent, Reciprocal)):
            return self.reshape(self.scalar(leaf, meta.dtype), (), meta.shape)
        if isinstance(leaf, np.ndarray):
            return self.constant(leaf)
        if place(leaf) in self.states:
            return self.write_state(leaf)
        wanted = leaf._name or leaf.__dict__.get("_path_name")
        if wanted is None:
            return self.constant(to_array(leaf))
        name = self.claim(wanted)
        self.initializers[name] = from_array(to_array(leaf), name)
        return name

    def write_state(self, state: Tensor) -> str:
        """Writes a state of the model, once; returns its name."""
        name = self.states[place(state)]
        if name not in self.initializers:
            self.initializers[name] = from_array(to_array(state), name)
        return name

    # ---- nodes ----------------------------------------------------------------------------------

    def node(
        self, kind: str, inputs: Sequence[str], count: int = 1, domain: str = "", **attrs: Any
    ) -> Any:
        """Adds a node; returns its output's name, or a tuple of them if there are several."""
        self._counts[kind] = number = self._counts.get(kind, 0) + 1
        base = f"{kind.lower()}_{number}"
        outputs = [self.claim(base if not i else f"{base}_{i}") for i in range(count)]
        given = {k: v for k, v in attrs.items() if v is not None}
        made = helper.make_node(kind, list(inputs), outputs, base, domain=domain, **given)
        self.nodes.append(made)
        return outputs[0] if count == 1 else tuple(outputs)

    def constant(self, array: Any, dtype: str | None = None) -> str:
        """The name of a constant; equal ones are one."""
        made = np.asarray(array, _numpy(dtype))
        key = (made.dtype.name, made.shape, made.tobytes())
        if key not in self._known:
            self._known[key] = self.node("Constant", [], value=from_array(made))
        return self._known[key]

    def cast(self, name: str, dtype: str) -> str:
        """A value in another dtype."""
        return self.node("Cast", [name], to=ELEMENTS[dtype])

    # ---- shapes ---------------------------------------------------------------------------------

    def ints(self, numbers: Sequence[Number]) -> str:
        """The name of a vector of int64, of which some may depend on sizes."""
        if all(isinstance(one, int) for one in numbers):
            return self.constant(np.array(numbers, np.int64))
        parts = [self._number(one) for one in numbers]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)

    def scalar(self, number: Scalar, dtype: str) -> str:
        """The name of a number, which may depend on sizes."""
        if isinstance(number, Reciprocal):  # rounded once, as numbers of Python are
            wide = [self.constant(number.sign, "float64"), self.scalar(number.of, "float64")]
            return self.cast(self.node("Div", wide), dtype)
        if not isinstance(number, Extent):
            return self.constant(float(number) if isinstance(number, str) else number, dtype)
        made = self.node("Squeeze", [self._number(number), self.constant([0], "int64")])
        return made if dtype == "int64" else self.cast(made, dtype)

    def _number(self, number: Number) -> str:
        """The name of a vector of one number."""
        if isinstance(number, int):
            return self.constant([number], "int64")
        if number not in self._known:
            terms = [self._term(names, factor) for names, factor in number.terms.items()]
            made = terms[0]
            for term in terms[1:]:
                made = self.node("Add", [made, term])
            self._known[number] = made
        return self._known[number]

    def _term(self, names: tuple[str | Quotient, ...], factor: int) -> str:
        made = None if factor != 1 and names or not names else self._size(names[0])
        if made is None:
            made, rest = self.constant([factor], "int64"), names
        else:
            rest = names[1:]
        for name in rest:
            made = self.node("Mul", [made, self._size(name)])
        return made

    def _size(self, axis: str | Quotient) -> str:
        """The size of a dynamic axis, or what is left of sizes that are divided."""
        key = ("size", axis)
        if key not in self._known:
            if isinstance(axis, Quotient):
                of, by = self._number(axis.of), self._number(axis.by)
                if min(axis.of.terms.values()) < 0:  # ONNX rounds negative quotients up
                    of = self.node("Sub", [of, self.node("Mod", [of, by])])
                made = self.node("Div", [of, by])
            else:
                value, at = self.axes[axis]
                made = self.node("Shape", [value], start=at, end=at + 1)
            self._known[key] = made
        return self._known[key]

    def reshape(self, name: str, have: Sequence[Number], want: Sequence[Number]) -> str:
        """A value in another shape, which is written as a constant where it can be: 0 keeps an
        extent, -1 takes what is left."""
        if tuple(have) == tuple(want):
            return name
        if any(one == 0 for one in want):
            return self.node("Reshape", [name, self.ints(want)], allowzero=1)
        kept = [i < len(have) and have[i] == one for i, one in enumerate(want)]
        found = [
            0 if is_kept and isinstance(one, Extent) else one
            for one, is_kept in zip(want, kept, strict=True)
        ]
        open_ones = [i for i, one in enumerate(found) if isinstance(one, Extent)]
        if len(open_ones) == 1:
            found[open_ones[0]] = -1
        return self.node("Reshape", [name, self.ints(found)])

    # ---- steps ----------------------------------------------------------------------------------

    def write(self, step: Step) -> None:
        """Writes a step.

        Raises:
            NotImplementedError: ONNX has nothing for it.
        """
        writer = WRITERS.get(step.name)
        if writer is None:
            raise NotImplementedError(f"export: {step.name}: ONNX is not given this operation")
        made = writer(self, step)
        found = made if isinstance(made, tuple) else (made,)
        self.makers.update(dict.fromkeys(step.outputs, step))
        for value, name in zip(step.outputs, found, strict=False):
            if name is not None:
                self.names[value] = name

    def live(self, outputs: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes that these outputs need."""
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        needed.update(self.states.values())
        self.initializers = {k: v for k, v in self.initializers.items() if k in needed}
        return kept[::-1]


def _numpy(dtype: str | None) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
