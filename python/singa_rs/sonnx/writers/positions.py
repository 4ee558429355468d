"""Operations that take elements at positions, or put them in order."""

from __future__ import annotations

import numpy as np

from ..arrays import from_array
from ..program import Step
from ..table import writes
from ..values import ELEMENTS
from ..writing import Writer


@writes("gather")
def gather(w: Writer, step: Step) -> str:
    """Entries at indices along an axis."""
    x, places = (w.name(one) for one in step.inputs)
    if w.meta(step.inputs[1]).dtype not in ("int32", "int64"):
        places = w.cast(places, "int64")
    return w.node("Gather", [x, places], axis=step.attrs["axis"])


@writes("gather_grad")
def scatter_add(w: Writer, step: Step) -> str:
    """Sums of slices at indices along an axis, zeros elsewhere."""
    axis, (value, indices) = step.attrs["axis"], step.inputs
    shape, kept = w.shape(step.outputs[0]), len(w.shape(indices))
    rest = [*shape[:axis], *shape[axis + 1 :]]
    zeros = w.constant(np.zeros((1,) * len(shape)), w.meta(value).dtype)
    zeros = w.node("Expand", [zeros, w.ints([shape[axis], *rest])])
    places = w.node("Unsqueeze", [w.name(indices), w.constant([-1], "int64")])
    front = [*range(axis, axis + kept), *range(axis), *range(axis + kept, len(rest) + kept)]
    updates = w.name(value) if not axis else w.node("Transpose", [w.name(value)], perm=front)
    made = w.node("ScatterND", [zeros, places, updates], reduction="add")
    back = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
    return w.node("Transpose", [made], perm=back) if axis else made


@writes("scatter")
def scatter(w: Writer, step: Step) -> str:
    """Elements at places along an axis, which updates replace, or are joined with."""
    a, inputs = step.attrs, [w.name(one) for one in step.inputs]
    return w.node("ScatterElements", inputs, axis=a["axis"], reduction=a["join"])


@writes("gather_elements")
def gather_elements(w: Writer, step: Step) -> str:
    """Elements at indices of each row."""
    return w.node("GatherElements", [w.name(one) for one in step.inputs], axis=step.attrs["axis"])


@writes("places")
def places(w: Writer, step: Step) -> str:
    """Indices that have been checked, as int64; negative ones count from the end."""
    (value,), x = step.inputs, w.name(step.inputs[0])
    x = x if w.meta(value).dtype == "int64" else w.cast(x, "int64")
    size = step.attrs["size"]
    if not step.attrs["wraps"] or size is None:
        return x
    is_negative = w.node("Less", [x, w.constant(0, "int64")])
    return w.node("Where", [is_negative, w.node("Add", [x, w.scalar(size, "int64")]), x])


@writes("sort")
def sort(w: Writer, step: Step) -> tuple[str, ...]:
    """Elements in order, and where they were."""
    a, (value,) = step.attrs, step.inputs
    count = w.shape(value)[a["axis"]] if a.get("count") is None else a["count"]
    is_bool, x = w.meta(value).dtype == "bool", w.name(value)
    given = [w.cast(x, "int32") if is_bool else x, w.ints([count])]
    found, places = w.node("TopK", given, 2, axis=a["axis"], largest=int(a["descending"]))
    return (w.cast(found, "bool") if is_bool else found), places


@writes("random")
def random(w: Writer, step: Step) -> str:
    """Random numbers, which are others than the engine's."""
    ((kind, params),) = step.attrs["dist"].items()
    value = step.outputs[0]
    shape = w.node("ConstantOfShape", [w.ints(w.shape(value))])
    element = ELEMENTS[w.meta(value).dtype]
    if kind == "normal":
        mean, scale = params["mean"], params["std"]
        return w.node("RandomNormalLike", [shape], dtype=element, mean=mean, scale=scale)
    if kind == "uniform":
        low, high = params["low"], params["high"]
        return w.node("RandomUniformLike", [shape], dtype=element, low=low, high=high)
    raise NotImplementedError(f"export: random numbers: got {kind}, want normal or uniform ones")


# ---- rules that read values, or run on the host --------------------------------------------------


@writes("rule NonZero")
def nonzero(w: Writer, step: Step) -> str:
    """The positions of elements."""
    return _as_declared(w, step, w.node("NonZero", [w.name(step.inputs[0])]))


@writes("rule Shape")
def shape(w: Writer, step: Step) -> str:
    """The extents."""
    return _as_declared(w, step, w.node("Shape", [w.name(step.inputs[0])]))


def _as_declared(w: Writer, step: Step, made: str) -> str:
    """A vector of int64 in the dtype that it has here."""
    dtype = w.meta(step.outputs[0]).dtype
    return made if dtype == "int64" else w.cast(made, dtype)


@writes("rule ConstantOfShape")
def constant_of_shape(w: Writer, step: Step) -> str:
    """One value in a shape that is computed."""
    value = np.array([step.attrs["value"]], w.meta(step.outputs[0]).dtype)
    sizes = w.cast(w.name(step.inputs[0]), "int64")
    return w.node("ConstantOfShape", [sizes], value=from_array(value))
