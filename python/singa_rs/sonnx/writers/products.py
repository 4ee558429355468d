"""Products, convolutions and pooling."""

from __future__ import annotations

from typing import Any

from ..program import Step
from ..table import writes
from ..writing import Writer


@writes("matmul")
def matmul(w: Writer, step: Step) -> str:
    """A product of matrices."""
    return w.node("MatMul", [w.name(one) for one in step.inputs])


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
    least = [
        (have[i] - 1) * a["stride"][i] + (kernel[i] - 1) * a["dilation"][i] + 1
        - a["padding"][i] - a["padding"][rank + i]
        for i in range(rank)
    ] if all(isinstance(n, int) for n in have) else None  # fmt: skip
    if least is None:
        raise NotImplementedError("export: a transposed convolution of images of any size")
    more = [n - m for n, m in zip(a["size"], least, strict=True)]
    names = [w.name(x), w.name(filters)]
    attrs = {**_window(a), "group": a["groups"], "output_padding": more if any(more) else None}
    return w.node("ConvTranspose", names, **attrs)


@writes("max_pool")
def max_pool(w: Writer, step: Step) -> tuple[str | None, ...]:
    """The greatest element of each window; where it is, is not written."""
    made = w.node(
        "MaxPool",
        [w.name(step.inputs[0])],
        kernel_shape=step.attrs["kernel"],
        **_window(step.attrs),
    )
    return (made, None)


@writes("avg_pool")
def avg_pool(w: Writer, step: Step) -> str:
    """The mean of each window."""
    a = step.attrs
    if a.get("divisor") is not None:
        raise NotImplementedError("export: average pooling with a divisor of its own")
    return w.node(
        "AveragePool",
        [w.name(step.inputs[0])],
        kernel_shape=a["kernel"],
        count_include_pad=int(a["count_include_pad"]),
        **_window(a),
    )
