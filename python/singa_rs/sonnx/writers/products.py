"""Products, convolutions and pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd.windows import extents
from ..extents import plus, times
from ..program import Step
from ..table import writes
from ..writing import Writer
from .arithmetic import typed


@writes("matmul")
def matmul(w: Writer, step: Step) -> str:
    """A product of matrices."""
    given = [w.name(one) for one in step.inputs]
    return typed(w, "MatMul", given, w.meta(step.inputs[0]).dtype)


@writes("linalg")
def linalg(w: Writer, step: Step) -> str:
    """A determinant, the one decomposition that ONNX has."""
    f = step.attrs["f"]
    if f != "det":
        raise NotImplementedError(f"export: linalg: {f}: ONNX has no such function")
    return w.node("Det", [w.name(step.inputs[0])])


def _window(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes of windows as ONNX has them."""
    found = {
        "strides": attrs["stride"],
        "pads": attrs["padding"],
        "dilations": attrs.get("dilation"),
    }
    if attrs.get("ceil_mode"):
        found["ceil_mode"] = 1
    return found


@writes("conv")
def conv(w: Writer, step: Step) -> str:
    """A convolution, with a bias or without."""
    given = [w.name(one) for one in step.inputs]
    return w.node("Conv", given, group=step.attrs["groups"], **_window(step.attrs))


@writes("conv_grad_input")
def conv_transpose(w: Writer, step: Step) -> str:
    """A transposed convolution, whose size is given."""
    a, (x, filters) = step.attrs, step.inputs
    rank = len(a["stride"])
    have, kernel = w.shape(x)[2:], w.shape(filters)[2:]
    more = []
    for i, (size, n) in enumerate(zip(a["size"], have, strict=True)):
        around = a["padding"][i] + a["padding"][rank + i]
        reach = (kernel[i] - 1) * a["dilation"][i] + 1
        least = plus(times(plus(n, -1), a["stride"][i]), reach - around)
        more.append(plus(size, times(least, -1)))
    if not all(isinstance(n, int) for n in more):
        raise NotImplementedError(
            "export: a transposed convolution whose size does not follow from that of its images"
        )
    names = [w.name(x), w.name(filters)]
    attrs = {**_window(a), "group": a["groups"], "output_padding": more if any(more) else None}
    return w.node("ConvTranspose", names, **attrs)


@writes("max_pool")
def max_pool(w: Writer, step: Step) -> tuple[str | None, ...]:
    """The greatest element of each window, and where it is, if that is used."""
    x, dtype = w.name(step.inputs[0]), w.meta(step.inputs[0]).dtype
    x = w.cast(x, "float64") if dtype == "int32" else x  # which ONNX does not take
    places, is_wanted = None, step.outputs[1] in w.used
    if _is_global(w, step):
        made = w.node("GlobalMaxPool", [x])
        places = _greatest(w, step, x) if is_wanted else None
    else:
        window = {"kernel_shape": step.attrs["kernel"], **_window(step.attrs)}
        found = w.node("MaxPool", [x], 1 + is_wanted, **window)
        made, places = (found[0], _in_windows(w, step, found[1])) if is_wanted else (found, None)
    return (w.cast(made, dtype) if dtype == "int32" else made, places)


def _in_windows(w: Writer, step: Step, places: str) -> str:
    """Positions among the elements of all images as those within their windows."""
    a, size, counts = step.attrs, w.shape(step.inputs[0])[2:], w.shape(step.outputs[0])[2:]
    if not all(isinstance(n, int) for n in (*size, *counts)):
        raise NotImplementedError(
            "export: max_pool: where the greatest elements are, in images of any size"
        )
    gaps, width, made = a.get("dilation") or (1,) * len(size), 1, None
    for d in reversed(range(len(size))):
        starts = np.arange(counts[d]) * a["stride"][d] - a["padding"][d]
        starts = starts.reshape(-1, *(1,) * (len(size) - 1 - d))
        extent = w.constant(size[d], "int64")
        at = w.node("Sub", [w.node("Mod", [places, extent]), w.constant(starts, "int64")])
        at = w.node("Mul", [w.node("Div", [at, w.constant(gaps[d], "int64")]),
                            w.constant(width, "int64")])  # fmt: skip
        made = at if made is None else w.node("Add", [made, at])
        places, width = w.node("Div", [places, extent]), width * a["kernel"][d]
    return _as_declared(w, step, made)


def _greatest(w: Writer, step: Step, x: str) -> str:
    """The position of the greatest element of each image."""
    flat = w.node("Reshape", [x, w.constant([0, 0, -1], "int64")])
    found = w.node("ArgMax", [flat], axis=2, keepdims=0)
    return _as_declared(w, step, w.node("Reshape", [found, w.ints(w.shape(step.outputs[1]))]))


def _as_declared(w: Writer, step: Step, places: str) -> str:
    dtype = w.meta(step.outputs[1]).dtype
    return places if dtype == "int64" else w.cast(places, dtype)


@writes("avg_pool")
def avg_pool(w: Writer, step: Step) -> str:
    """The mean of each window."""
    a, divisor = step.attrs, step.attrs.get("divisor")
    if _is_global(w, step) and divisor is None:
        return w.node("GlobalAveragePool", [w.name(step.inputs[0])])
    x, window = w.name(step.inputs[0]), _window(a)
    if divisor is not None and a.get("ceil_mode"):
        # ONNX divides by the elements of a window that are within the padding.
        x = _padded(w, step)
        window = {"strides": a["stride"], "dilations": a.get("dilation")}
    made = w.node(
        "AveragePool",
        [x],
        kernel_shape=a["kernel"],
        count_include_pad=int(a["count_include_pad"] or divisor is not None),
        **window,
    )
    if divisor is None:
        return made
    share = math.prod(a["kernel"]) / divisor
    return w.node("Mul", [made, w.constant(share, w.meta(step.inputs[0]).dtype)])


def _is_global(w: Writer, step: Step) -> bool:
    """Whether the only window is an image of any size, which ONNX has operators of their own for.

    Raises:
        NotImplementedError: other windows whose extents are not known.
    """
    a, have = step.attrs, w.shape(step.inputs[0])[2:]
    if all(isinstance(n, int) for n in (*a["kernel"], *a["stride"], *a["padding"])):
        return False
    if tuple(a["kernel"]) == tuple(have) and not any(a["padding"]):
        return True
    raise NotImplementedError("export: pooling by windows that depend on the size of an image")


def _padded(w: Writer, step: Step) -> str:
    """The input with zeros around it, up to where the last windows end."""
    a, (x,) = step.attrs, step.inputs
    have, count = w.shape(x), w.shape(step.outputs[0])
    if not all(isinstance(n, int) for n in (*have[2:], *count[2:])):
        raise NotImplementedError(
            "export: average pooling with ceil_mode and a divisor, of images of any size"
        )
    axes = len(a["stride"])
    before = a["padding"][:axes]
    reach = extents(a["kernel"], a.get("dilation"))
    ends = [(n - 1) * s + r for n, s, r in zip(count[2:], a["stride"], reach, strict=True)]
    after = [max(0, end - b - n) for end, b, n in zip(ends, before, have[2:], strict=True)]
    return w.node("Pad", [w.name(x), w.ints([0, 0, *before, 0, 0, *after])])


@writes("softmax_cross_entropy")
def softmax_cross_entropy(w: Writer, step: Step) -> tuple[str | None, ...]:
    """The mean over rows of the cross entropy of logits, with classes or with weights of them."""
    x, target = step.inputs
    (rows, classes), dtype = w.shape(x), w.meta(x).dtype
    if w.shape(target) != (rows, classes):
        labels = w.reshape(w.cast(w.name(target), "int64"), w.shape(target), (rows,))
        ignored = step.attrs.get("ignored")
        more = {} if ignored is None else {"ignore_index": ignored}
        made = w.node("SoftmaxCrossEntropyLoss", [w.name(x), labels], **more)
        return (w.node("Reshape", [made, w.constant([1], "int64")]), None)
    axis, log = w.constant([1], "int64"), w.node("LogSoftmax", [w.name(x)], axis=1)
    total = w.node("ReduceSum", [w.name(target), axis])
    shares = w.node("Div", [w.name(target), total])
    each = w.node("ReduceSum", [w.node("Mul", [shares, log]), axis])
    mean = w.node("ReduceMean", [each, w.constant([0, 1], "int64")], keepdims=0)
    negative = w.node("Mul", [mean, w.constant(-1, dtype)])
    return (w.node("Reshape", [negative, w.constant([1], "int64")]), None)
