"""Recurrent networks: one node a layer and direction, which takes the product of its input, too."""

from __future__ import annotations

import numpy as np

from ..program import Step
from ..table import writes
from ..writing import Writer

#: ONNX's operators, and attributes, by the engine's cells.
_CELLS = {
    "tanh": ("RNN", {"activations": ["Tanh"]}),
    "relu": ("RNN", {"activations": ["Relu"]}),
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
    "linear_gru": ("GRU", {"linear_before_reset": 1}),
}


@writes("recurrent")
def recurrent(w: Writer, step: Step) -> tuple[str, ...]:
    """A recurrence over steps. Its gates stand in ONNX's order."""
    a = step.attrs
    if a["projection"]:
        raise NotImplementedError("export: recurrent networks with projections")
    kind, attrs = _CELLS[a["cell"]]
    parts = dict(zip(_parts(a), step.inputs, strict=True))
    units, columns = w.shape(parts["weight"])
    inputs = _inputs(w, parts, int(units), int(columns))
    while not inputs[-1]:
        inputs.pop()
    direction = "reverse" if a["reverse"] else "forward"
    count = 3 if kind == "LSTM" else 2
    made = w.node(kind, inputs, count, hidden_size=int(units), direction=direction, **attrs)
    axes = [w.constant([axis], "int64") for axis in (1, 0, 0)]
    return tuple(w.node("Squeeze", [y, axis]) for y, axis in zip(made, axes, strict=False))


def _parts(attrs: dict[str, object]) -> list[str]:
    """The inputs of a recurrence, in order."""
    cell = attrs["cell"]
    found = ["given", "weight", "state"]
    found += ["cell"] if cell == "lstm" else []
    found += ["bias"] if cell == "linear_gru" else []
    return [*found, *(name for name in ("peepholes", "lengths") if attrs[name])]


def _inputs(w: Writer, parts: dict[str, int], units: int, columns: int) -> list[str]:
    """ONNX's inputs, empty where there is none."""
    x, weight, bias = _product(w, parts["given"], columns)
    dtype = w.meta(parts["given"]).dtype
    later = w.constant(np.zeros(columns - units if "bias" in parts else columns), dtype)
    more = [later, w.name(parts["bias"])] if "bias" in parts else [later]
    of = {name: w.name(value) for name, value in parts.items() if name != "given"}
    return [
        x,
        _front(w, w.node("Transpose", [weight], perm=[1, 0])),
        _front(w, w.node("Transpose", [of["weight"]], perm=[1, 0])),
        _front(w, w.node("Concat", [bias, *more], axis=0)),
        w.cast(of["lengths"], "int32") if "lengths" in of else "",
        _front(w, of["state"]),
        _front(w, of["cell"]) if "cell" in of else "",
        _front(w, of["peepholes"]) if "peepholes" in of else "",
    ]


def _front(w: Writer, name: str) -> str:
    """With an axis for the direction."""
    return w.node("Unsqueeze", [name, w.constant([0], "int64")])


def _product(w: Writer, given: int, columns: int) -> tuple[str, str, str]:
    """The input of which `given` is the product, the weights and the bias; `given` itself and the
    identity where it is something else."""
    dtype = w.meta(given).dtype
    made, bias = _maker(w, given), w.constant(np.zeros(columns), dtype)
    if made is not None and made.name == "binary" and made.attrs["f"] == "add":
        value, added = made.inputs
        if w.shape(added) == (columns,):
            made, bias = _maker(w, value), w.name(added)
    if made is not None and made.name == "matmul" and len(w.shape(made.inputs[1])) == 2:
        source, shape = w.source(made.inputs[0])
        if len(shape) == 3 and shape[:2] == w.shape(given)[:2]:
            return source, w.name(made.inputs[1]), bias
    zero = w.constant(np.zeros(columns), dtype)
    return w.name(given), w.constant(np.eye(columns), dtype), zero


def _maker(w: Writer, value: int) -> Step | None:
    """What made a value, but for its shape."""
    made = w.makers.get(value)
    while made is not None and made.name == "view_reshape":
        made = w.makers.get(made.inputs[0])
    return made
