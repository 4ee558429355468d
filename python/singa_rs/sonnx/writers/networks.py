"""Normalisation, attention, dropout, padding and resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.resize import COORDINATES, Mode
from ..extents import Number
from ..program import Step
from ..table import writes
from ..writing import Writer


@writes("batch_norm_inference")
def batch_norm_inference(w: Writer, step: Step) -> str:
    """Batch normalisation by averages."""
    given = [w.name(one) for one in step.inputs]
    return w.node("BatchNormalization", given, epsilon=step.attrs["eps"])


@writes("batch_norm")
def batch_norm(w: Writer, step: Step) -> tuple[str | None, ...]:
    """Normalisation by the statistics of one image, as in group normalisation. ONNX wants one dtype
    for all inputs: 16-bit floats are normalised in that of the parameters."""
    if w.shape(step.inputs[0])[0] != 1:
        raise NotImplementedError("export: batch normalisation by a batch's own statistics")
    x, *rest = (w.name(one) for one in step.inputs)
    own, wide = (w.meta(one).dtype for one in step.inputs[:2])
    x = x if own == wide else w.cast(x, wide)
    made = w.node("InstanceNormalization", [x, *rest], epsilon=step.attrs["eps"])
    return (made if own == wide else w.cast(made, own), None, None)


def _normalised(w: Writer, step: Step, kind: str) -> tuple[str | None, ...]:
    """A normalisation of the last axis, which ONNX does for any shape: that of the tensor which was
    made a matrix for it, where there is one."""
    value, *rest = step.inputs
    source, shape = w.source(value)
    if shape[-1:] != w.shape(value)[-1:]:
        source, shape = w.name(value), w.shape(value)
    given = [source, *(w.name(one) for one in rest)]
    made = w.node(kind, given, axis=-1, epsilon=step.attrs["eps"])
    w.sources[step.outputs[0]] = made, shape
    return (w.reshape(made, shape, w.shape(value)), *(None for _ in step.outputs[1:]))


@writes("layer_norm")
def layer_norm(w: Writer, step: Step) -> tuple[str | None, ...]:
    """Layer normalisation of rows."""
    return _normalised(w, step, "LayerNormalization")


@writes("rms_norm")
def rms_norm(w: Writer, step: Step) -> tuple[str | None, ...]:
    """Normalisation of rows by their root mean square."""
    return _normalised(w, step, "RMSNormalization")


@writes("attention")
def attention(w: Writer, step: Step) -> tuple[str | None, ...]:
    """Attention, of which ONNX has that of four axes."""
    a = step.attrs
    if a["lengths"] or a["start"]:
        raise NotImplementedError("export: attention with lengths or positions")
    q, k, _ = shapes = [w.shape(one) for one in step.inputs[:3]]
    names, scale = [w.name(one) for one in step.inputs[:3]], a["scale"]
    given = [_of_four_axes(w, name, of) for name, of in zip(names, shapes, strict=True)]
    if w.meta(step.inputs[0]).dtype == "float64" and scale is not None:  # attributes are float32
        given[0], scale = w.node("Mul", [given[0], w.constant(scale, "float64")]), 1.0
    if a["mask"]:
        given.append(_whole_mask(w, step.inputs[3], q[:-3], (q[-2], k[-2])))
    made = w.node("Attention", given, is_causal=int(a["causal"]), scale=scale)
    return (_of_axes_again(w, made, w.shape(step.outputs[0])), None)


def _of_four_axes(w: Writer, x: str, shape: Sequence[Number]) -> str:
    """With more axes in front, or with those in front of the last three as one."""
    missing = 4 - len(shape)
    if missing > 0:
        return w.node("Unsqueeze", [x, w.ints(range(missing))])
    return w.node("Reshape", [x, w.ints([-1, *shape[-3:]])]) if missing else x


def _of_axes_again(w: Writer, made: str, shape: Sequence[Number]) -> str:
    """The reverse of `_of_four_axes`."""
    missing = 4 - len(shape)
    if missing > 0:
        return w.node("Squeeze", [made, w.ints(range(missing))])
    return w.node("Reshape", [made, w.ints(shape)]) if missing else made


def _whole_mask(w: Writer, value: int, front: Sequence[Number], last: tuple[Number, Number]) -> str:
    """A mask whose last two axes are not broadcast, which ONNX asks for; nor are those in front of
    the last three, where they become one."""
    have, name = w.shape(value), w.name(value)
    kept = [1] * (len(have) - 2)  # keeps what Expand is given
    if len(front) > 1 and len(have) > 3:
        name = w.node("Expand", [name, w.ints([*front, 1, *last])])
        return _of_four_axes(w, name, (*front, have[-3], *last))
    return name if tuple(have[-2:]) == last else w.node("Expand", [name, w.ints([*kept, *last])])


@writes("dropout")
def dropout(w: Writer, step: Step) -> Any:
    """Nothing is dropped when a model is used."""
    return (w.name(step.inputs[0]), *(None for _ in step.outputs[1:]))


@writes("pad")
def pad(w: Writer, step: Step) -> str:
    """Wider by elements of the tensor itself."""
    mode, pads = step.attrs["mode"], w.ints(step.attrs["pads"])
    if mode not in ("edge", "reflect", "wrap"):
        raise NotImplementedError(f"export: pad: ONNX has no mode {mode!r}")
    return w.node("Pad", [w.name(step.inputs[0]), pads], mode=mode)


@writes("resample")
def resample(w: Writer, step: Step) -> str:
    """Axes enlarged or shrunk, to sizes or by scales; not by "nearest" as float32 at least."""
    steps, how, (value,) = step.attrs["steps"], Mode(*step.attrs["how"]), step.inputs
    if how.coordinates not in COORDINATES:
        raise NotImplementedError(f"export: ONNX has no coordinates {how.coordinates!r}")
    have, want, dtype = w.shape(value), w.shape(step.outputs[0]), w.meta(value).dtype
    is_wide = how.kind == "nearest" or dtype in ("float32", "float64")
    x = w.name(value) if is_wide else w.cast(w.name(value), "float32")
    scales = [_scale(*one, how) for one in zip(steps, have, want, strict=True)]
    takes_sizes = None in scales
    if takes_sizes:
        scales = [_fraction(*one) for one in zip(scales, have, want, strict=True)]
    if any(by != 1 for by in scales):
        x = _resized(w, how, x, "", w.constant(scales, "float32"))
    made = _resized(w, how, x, "", "", w.ints(want)) if takes_sizes else x
    return made if is_wide or "float" not in dtype else w.cast(made, dtype)


def _resized(w: Writer, how: Mode, *given: str) -> str:
    return w.node(
        "Resize", given, mode=how.kind, coordinate_transformation_mode=how.coordinates,
        nearest_mode=how.rounding, cubic_coeff_a=how.coefficient,
        exclude_outside=int(how.excludes), antialias=int(how.antialias),
    )  # fmt: skip


def _scale(step: float | None, have: Number, want: Number, how: Mode) -> float | None:
    """What an axis is multiplied by; None where it takes a size to mean the same to all: of scales,
    which are float32, onnxruntime rounds the product down as a float32, shape inference as a
    float64, and some align the corners of the extent before it is rounded."""
    if step is None:
        return None
    if how.coordinates == "align_corners":
        if how.antialias and step > 1 and not (isinstance(have, int) and step == have / want):
            raise NotImplementedError("export: antialias by a scale, with aligned corners")
        return None
    by = np.float32(1 / step)
    if isinstance(have, int):
        while int(by * np.float32(have)) > want:
            by = np.nextafter(by, np.float32(0))
        if int(float(by) * have) < want:
            return None
    return float(by)


def _fraction(by: float | None, have: Number, want: Number) -> float:
    """A scale that the sizes do not tell, or else 1."""
    is_told = by is None or (isinstance(have, int) and by == np.float32(want / have))
    return 1.0 if is_told else by
