"""Public functions of windows, for `test_compositions`: their references, and bad input."""

import math

import numpy as np
from cases import references as ref
from singa_rs import DTypeError, ShapeError, autograd
from singa_rs.tensor import Tensor


def spread(value, axes):
    return (value,) * axes if isinstance(value, int) else tuple(value)


def around(padding, axes):
    given = spread(padding, axes)
    return given if len(given) == 2 * axes else given * 2


def same(x, w, stride, dilation, upper):
    """ONNX's SAME padding, from its definition."""
    before, after = [], []
    for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True):
        total = max((math.ceil(n / s) - 1) * s + (k - 1) * d + 1 - n, 0)
        before.append(total // 2 if upper else total - total // 2)
        after.append(total - before[-1])
    return (*before, *after)


def convolution(shapes, stride=1, padding=0, dilation=1, group=1):
    """The function with such arguments, its reference, and the shapes."""
    axes = len(shapes[0]) - 2
    steps, gaps = spread(stride, axes), spread(dilation, axes)

    def function(x, w, b=None):
        return autograd.conv(x, w, b, stride, padding, dilation, group)

    def reference(x, w, b=None):
        upper = padding in ("SAME_UPPER", "same")
        is_same = isinstance(padding, str) and padding.lower() != "valid"
        pads = same(x, w, steps, gaps, upper) if is_same else None
        pads = pads or (around(padding, axes) if not isinstance(padding, str) else (0,) * 2 * axes)
        return ref.conv(x, w, b, stride=steps, padding=pads, dilation=gaps, groups=group)

    return function, reference, shapes


def transposed(shapes, stride=1, padding=0, output_padding=0, dilation=1, group=1, pads=None):
    """The same of a transposed convolution; `pads` are what a name of a padding means."""
    axes = len(shapes[0]) - 2

    def function(x, w, b=None):
        how = (stride, padding, output_padding, dilation, group)
        return autograd.conv_transpose(x, w, b, *how)

    def reference(x, w, b=None):
        return ref.conv_transpose(
            x,
            w,
            b,
            stride=spread(stride, axes),
            padding=pads or around(padding, axes),
            output_padding=spread(output_padding, axes),
            dilation=spread(dilation, axes),
            groups=group,
        )

    return function, reference, shapes


def pooling(name, shape, kernel, stride=None, padding=0, first=(), **how):
    """The same of a pooling."""
    axes = len(shape) - 2
    window = {
        "kernel": spread(kernel, axes),
        "stride": spread(kernel if stride is None else stride, axes),
        "padding": around(padding, axes),
    }

    def reference(x):
        numbers = dict(how)
        if "divisor_override" in numbers:
            numbers["divisor"] = numbers.pop("divisor_override")
        if "dilation" in numbers:
            numbers["dilation"] = spread(numbers["dilation"], axes)
        if name == "avg_pool":
            numbers.setdefault("count_include_pad", False)
        made = getattr(ref, name)(x, *first, **window, **numbers)
        return made[0] if name == "max_pool" else made

    def function(x):
        return getattr(autograd, name)(x, *first, kernel, stride, padding, **how)

    return function, reference, (shape,)


#: Values at places that no windows share, and at some that they do.
PLACES = np.array([[[[0, 3, 5], [8, 7, 6]]]])
TWICE = np.array([[[[0, 3, 3], [8, 0, 3]]]])


def unpooled(places, size):
    def function(x):
        return autograd.max_unpool(x, Tensor(data=places, dtype="int64"), 2, output_size=size)

    def reference(x):
        y, counts = np.zeros(math.prod(size)), np.zeros(math.prod(size))
        np.add.at(y, places.ravel(), x.ravel())
        np.add.at(counts, places.ravel(), 1)
        return (y / np.maximum(counts, 1)).reshape(1, 1, *size)

    return function, reference, (places.shape,)


LINE, PLANE, SOLID = (2, 4, 7), (2, 4, 5, 6), (1, 2, 3, 4, 3)
CONVOLUTIONS = {
    "1": convolution((LINE, (3, 4, 3), (3,))),
    "1-all": convolution((LINE, (6, 2, 2), (6,)), 2, (1, 2), 2, 2),
    "1-same": convolution((LINE, (3, 4, 4)), 2, "same"),
    "1-lower": convolution((LINE, (3, 4, 2)), 1, "SAME_LOWER", 3),
    "1-valid": convolution((LINE, (3, 4, 2)), 1, "valid"),
    "2": convolution((PLANE, (3, 4, 2, 3), (3,)), (1, 2), (1, 0)),
    "2-same": convolution((PLANE, (2, 4, 2, 4)), (1, 3), "SAME_UPPER", (2, 1)),
    "2-depthwise": convolution((PLANE, (4, 1, 3, 3), (4,)), 1, (0, 1, 2, 1), 1, 4),
    "3": convolution((SOLID, (2, 2, 2, 2, 2), (2,)), 1, 1),
    "3-all": convolution((SOLID, (4, 1, 2, 1, 2)), (2, 1, 1), (1, 0, 0, 1, 1, 2), (1, 1, 2), 2),
}
TRANSPOSED = {
    "1": transposed((LINE, (4, 3, 3), (3,))),
    "1-all": transposed((LINE, (4, 2, 3), (4,)), 2, (1, 0), 1, 2, 2),
    "1-apart": transposed((LINE, (4, 3, 2), (3,)), 4, 0, 3),
    "1-beyond": transposed((LINE, (4, 3, 2), (3,)), 1, 0, 2, 3),
    "1-only-added": transposed(((2, 4, 1), (4, 3, 1), (3,)), 1, 1, 2, 3),
    "1-cropped": transposed((LINE, (4, 3, 2), (3,)), 2, (3, 4), 1),
    "2": transposed((PLANE, (4, 3, 3, 2), (3,)), (2, 1), (1, 0), (1, 0)),
    "2-depthwise": transposed((PLANE, (4, 1, 4, 4), (4,)), 2, 1, 0, 1, 4),
    "2-same": transposed((PLANE, (4, 2, 3, 4)), 2, "SAME_UPPER", 0, pads=(0, 1, 1, 1)),
    "2-lower": transposed((PLANE, (4, 2, 3, 4)), 2, "SAME_LOWER", 0, pads=(1, 1, 0, 1)),
    "3": transposed((SOLID, (2, 3, 2, 2, 2), (3,)), (1, 2, 2), (0, 1, 1), (0, 1, 0)),
}
POOLINGS = {
    "max_pool-1": pooling("max_pool", LINE, 3, 2, 1),
    "max_pool-2": pooling("max_pool", PLANE, (2, 3), None, 1, dilation=(1, 2), ceil_mode=True),
    "max_pool-3": pooling("max_pool", SOLID, 2, 1),
    "avg_pool-1": pooling("avg_pool", LINE, 2, 3, (1, 0), ceil_mode=True),
    "avg_pool-2": pooling("avg_pool", PLANE, 3, 2, 1, count_include_pad=True, ceil_mode=True),
    "avg_pool-3": pooling("avg_pool", SOLID, 2, 1, 1, divisor_override=5),
    "lp_pool-1": pooling("lp_pool", LINE, 3, 1, 1, (3,)),
    "lp_pool-2": pooling("lp_pool", PLANE, 2, None, 0, (2,), ceil_mode=True),
    "lp_pool-sum": pooling("lp_pool", LINE, 2, 1, 0, (1,)),
    "lp_pool-max": pooling("lp_pool", LINE, 3, 2, 1, (math.inf,)),
    "lp_pool-dilated": pooling("lp_pool", LINE, 3, 1, 1, (2,), dilation=2),
    "lp_pool-3": pooling("lp_pool", SOLID, (1, 2, 3), 1, 0, (1.5,)),
    "max_unpool": unpooled(PLACES, (3, 3)),
    "max_unpool-twice": unpooled(TWICE, (3, 4)),
}
CASES = {
    **{f"conv-{name}": case for name, case in CONVOLUTIONS.items()},
    **{f"conv_transpose-{name}": case for name, case in TRANSPOSED.items()},
    **POOLINGS,
}


def of(*shape, dtype="float32"):
    return Tensor(shape, dtype=dtype)


X, W = (2, 4, 7), (3, 4, 3)


def conv(x=X, w=W, b=None, **how):
    return lambda: autograd.conv(of(*x), of(*w), None if b is None else of(*b), **how)


def turned(x=X, w=(4, 3, 3), b=None, **how):
    return lambda: autograd.conv_transpose(of(*x), of(*w), None if b is None else of(*b), **how)


def pool(name, *args, x=X, **how):
    return lambda: getattr(autograd, name)(of(*x), *args, **how)


BAD = {
    r"conv: got shape \(2, 4\)": (ShapeError, conv((2, 4), (3, 4))),
    "conv: got shape.*three spatial": (ShapeError, conv((1,) * 6, (1,) * 6)),
    "conv: got shapes.*as many axes": (ShapeError, conv(X, (3, 4, 3, 3))),
    r"conv1d: got.*weights \(O, C / 2, k\)": (ShapeError, conv(group=2)),
    r"conv1d: got.*bias of shape \(3,\)": (ShapeError, conv(b=(4,))),
    "conv: stride: got": (ValueError, conv(stride=(1, 2))),
    "conv: padding: got 'SAME'": (ValueError, conv(padding="SAME")),
    "conv: dilation": (ValueError, conv(dilation=1.5)),
    "conv1d: got window.*padded image": (ValueError, conv(dilation=4)),
    "conv1d: got.*positive": (ValueError, conv(stride=0)),
    r"conv3d: got.*\(N, C, D, H, W\)|conv3d: got": (
        ShapeError,
        conv((1, 2, 3, 3, 3), (1, 1, 2, 2, 2)),
    ),
    "conv1d: got dtype float32, float64": (
        DTypeError,
        lambda: autograd.conv(of(*X), of(*W, dtype="float64")),
    ),
    "conv_transpose: got shapes.*C, O": (ShapeError, turned(w=(3, 3, 3))),
    "conv_transpose: got shapes.*3 groups": (ShapeError, turned(group=3)),
    "conv_transpose: got shapes.*an element": (ShapeError, turned((2, 4, 0))),
    r"conv_transpose.*bias of shape \(6,\)": (ShapeError, turned(b=(3,), group=2)),
    "conv_transpose: stride: got": (ValueError, turned(stride=0)),
    "conv_transpose: padding: got -1": (ValueError, turned(padding=-1)),
    "conv_transpose: output_padding": (ValueError, turned(output_padding=1)),
    "conv_transpose.*leaves": (ShapeError, turned(padding=5)),
    r"max_pool: got shape \(2, 4\)": (ShapeError, pool("max_pool", 2, x=(2, 4))),
    "max_pool: kernel_size": (ValueError, pool("max_pool", (2, 2))),
    "max_pool1d: got padding": (ValueError, pool("max_pool", 2, 1, 2)),
    "max_pool1d: got window": (ValueError, pool("max_pool", 8)),
    "max_pool1d.*under one of its taps": (
        ValueError,
        pool("max_pool", 2, 1, 1, x=(1, 1, 2), dilation=3),
    ),
    "avg_pool: got divisor_override": (ValueError, pool("avg_pool", 2, divisor_override=0)),
    "avg_pool1d.*dtype": (
        DTypeError,
        lambda: autograd.avg_pool(of(*X, dtype="int32"), 2),
    ),
    "lp_pool: got p 0.5": (ValueError, pool("lp_pool", 0.5, 2)),
    "lp_pool: p: got": (TypeError, pool("lp_pool", "2", 2)),
    "max_unpool.*equal shapes": (
        ShapeError,
        lambda: autograd.max_unpool(of(*X), of(2, 4, 6, dtype="int64"), 2),
    ),
    "max_unpool_places: index 14": (
        ValueError,
        lambda: autograd.max_unpool(of(1, 1, 1), Tensor(data=[[[14]]], dtype="int64"), 2),
    ),
    "max_unpool: got extents": (
        ValueError,
        lambda: autograd.max_unpool(of(*X), of(*X, dtype="int64"), 2, output_size=(0,)),
    ),
}
