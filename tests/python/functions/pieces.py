"""Slices replaced, places, partial orders, polynomials, decimals, functions by their axes."""

import numpy as np
from singa_rs import ShapeError, autograd
from singa_rs.tensor import Tensor

from .base import Table, plain
from .elementwise import SPECIAL

S = (3, 4, 6)
table = Table()


def sliced(x, u, key):
    made = x.copy()
    made[key] = u
    return made


ALL = slice(None)
table.add(
    "slice_scatter",
    lambda x, u: x.slice_scatter(u, 2, 1, -2),
    lambda x, u: sliced(x, u, (ALL, ALL, slice(1, -2))),
    S,
    (4, 1),
)
table.add(
    "slice_scatter-steps",
    lambda x, u: x.slice_scatter(u, -1, 1, None, 2),
    lambda x, u: sliced(x, u, (ALL, ALL, slice(1, None, 2))),
    S,
    (3, 4, 3),
)
table.add(
    "slice_scatter-nothing",
    lambda x: autograd.slice_scatter(x, 1.0, 0, 2, 1),
    lambda x: x,
    (3, 2),
    empty=((0, 2),),
)
table.add(
    "slice_scatter-number", lambda x: autograd.slice_scatter(x, 0.5), lambda x: x * 0 + 0.5, (3, 2)
)
table.add(
    "select_scatter",
    lambda x, u: x.select_scatter(u, 1, -2),
    lambda x, u: sliced(x, u, (ALL, -2)),
    S,
    (3, 6),
)
table.add("partition", lambda x: autograd.partition(x, 2, 1), lambda x: np.sort(x, 1), S)
table.add(
    "partition-flat", lambda x: autograd.partition(x, -1, None), lambda x: np.sort(x, None), S
)
table.add(
    "argpartition",
    lambda x: autograd.argpartition(x, 0),
    lambda x: np.argsort(x),
    S,
    smooth=False,
    halves=False,
)
for _n in (2, 3, 5):
    table.add(f"polyval-{_n}", autograd.polyval, np.polyval, (_n,), (2, 3), scale=4)
table.add("round", lambda x: round(x, 1), lambda x: np.around(x, 1), S, step=1e-6, halves=False)
table.add("around", lambda x: x.around(1), lambda x: np.around(x, 1), S, step=1e-6, halves=False)
table.add(
    "around-tens",
    lambda x: (x * 50).around(-1),
    lambda x: np.around(x * 50, -1),
    S,
    step=1e-6,
    halves=False,
)
table.add("clamp_min", lambda x: x.clamp_min(0.3), lambda x: np.maximum(x, 0.3), S, step=1e-5)
table.add("clamp_max", lambda x, b: x.clamp_max(b), np.minimum, S, (6,), step=1e-6)
table.add(
    "sum_to_size", lambda x: x.sum_to_size(4, 1), lambda x: x.sum(0).sum(-1, keepdims=True), S
)
table.add("log_sigmoid", autograd.log_sigmoid, lambda x: -np.logaddexp(0, -x), S)
table.add(
    "row_stack", lambda a, b: autograd.row_stack([a, b]), lambda a, b: np.vstack([a, b]), (3,), (3,)
)
#: By name: functions under PyTorch's names and arguments, and the general ones.
NAMES = (
    "conv conv_transpose max_pool avg_pool adaptive_avg_pool adaptive_max_pool max_unpool".split()
)
SPATIAL = {1: (5,), 2: (4, 5), 3: (3, 4, 3)}


def other_way(function):
    """The reference of a function of tensors is another one, in float64."""

    def of_arrays(*arrays):
        with autograd.no_grad():
            return function(*(plain(a, "float64") for a in arrays)).to_numpy()

    return of_arrays


for _n, _size in SPATIAL.items():
    _image, _kernel, _even = (2, 4, *_size), (2, 2, *(2,) * _n), (1, 2, *_size)

    named = {name: getattr(autograd, f"{name}{_n}d") for name in NAMES}
    if _n != 2:
        table.add(
            f"conv{_n}d",
            lambda x, w, b, f=named["conv"]: f(x, w, b, 1, 1, 1, 2),
            other_way(lambda x, w, b: autograd.conv(x, w, b, padding=1, group=2)),
            _image,
            _kernel,
            (2,),
            scale=4,
        )
    table.add(
        f"conv_transpose{_n}d",
        lambda x, w, f=named["conv_transpose"]: f(x, w, None, 2, 1, 1, 2, 2),
        other_way(
            lambda x, w: autograd.conv_transpose(
                x, w, None, 2, 1, output_padding=1, dilation=2, group=2
            )
        ),
        _image,
        (4, 1, *(2,) * _n),
        scale=4,
    )
    table.add(
        f"max_pool{_n}d",
        lambda x, f=named["max_pool"]: f(x, 2, 1, 1),
        other_way(lambda x: autograd.max_pool(x, 2, 1, 1)),
        _even,
        step=1e-5,
    )
    table.add(
        f"avg_pool{_n}d",
        lambda x, f=named["avg_pool"]: f(x, 2, 1, 1),
        other_way(lambda x: autograd.avg_pool(x, 2, 1, 1, count_include_pad=True)),
        _even,
    )
    for _kind in ("avg", "max"):
        table.add(
            f"adaptive_{_kind}_pool{_n}d",
            lambda x, f=named[f"adaptive_{_kind}_pool"]: f(x, 2),
            other_way(
                lambda x, n=_n, kind=_kind: getattr(autograd, f"adaptive_{kind}_pool")(x, (2,) * n)
            ),
            _even,
            step=1e-5,
        )
    _places = np.arange(2).reshape(1, 2, *(1,) * _n)
    table.add(
        f"max_unpool{_n}d",
        lambda x, f=named["max_unpool"], at=_places: f(x, plain(at), 2),
        other_way(lambda x, at=_places: autograd.max_unpool(x, plain(at), 2)),
        _places.shape,
    )

FLAT = np.array([[3, 0, 23], [22, 7, 11]])
FEW = np.array([-7, 5, 0, 12], np.int32)
EXACT = {
    "unravel_index": (
        lambda: autograd.unravel_index(plain(FLAT), (2, 3, 4)),
        lambda: np.unravel_index(FLAT, (2, 3, 4)),
    ),
    "ravel_multi_index": (
        lambda: autograd.ravel_multi_index([[1, 0], plain([2, 1]), 3], (2, 3, 4)),
        lambda: np.ravel_multi_index([[1, 0], [2, 1], 3], (2, 3, 4)),
    ),
    "divmod": (lambda: divmod(plain(FEW, "int32"), 3), lambda: divmod(FEW, 3)),
    "divmod-of-an-array": (
        lambda: divmod(-FEW, plain(FEW + 8, "int32")),
        lambda: divmod(-FEW, FEW + 8),
    ),
    "divmod-of-a-number": (
        lambda: divmod(20, plain(FEW, "int32") + 8),
        lambda: divmod(20, FEW + 8),
    ),
    "around-int": (lambda: plain(FEW, "int32").around(3), lambda: np.around(FEW, 3)),
    "around-special": (
        lambda: plain(SPECIAL, "float64").around(2),
        lambda: np.around(SPECIAL, 2),
    ),
    "around-half": (
        lambda: plain([0.5, 1.5, 2.5, -0.5], "float32").around(),
        lambda: np.around(np.float32([0.5, 1.5, 2.5, -0.5])),
    ),
    "clamp_min-int": (lambda: plain(FEW, "int32").clamp_min(1), lambda: np.maximum(FEW, 1)),
    "polyval-int": (
        lambda: autograd.polyval(plain([1, 2, 3], "int32"), plain(FEW, "int32")),
        lambda: np.polyval(np.array([1, 2, 3], np.int32), FEW),
    ),
    "polyval-constant": (
        lambda: autograd.polyval(plain([7.0], "float64"), plain([1.0, np.inf], "float64")),
        lambda: np.array([7.0, 7.0]),
    ),
    "polyval-none": (
        lambda: autograd.polyval(Tensor((0,)), Tensor((3,))),
        lambda: np.zeros(3, np.float32),
    ),
}


def of(*shape):
    return Tensor(shape or S)


REFUSED = {
    "slice_scatter: got a source": (ShapeError, lambda: of().slice_scatter(of(3), 0, 1)),
    "slice_scatter: got step 0": (ValueError, lambda: of().slice_scatter(1.0, 0, 1, 2, 0)),
    "select_scatter: got index 3": (ValueError, lambda: of().select_scatter(1.0, 0, 3)),
    "select_scatter: got a source": (ShapeError, lambda: of().select_scatter(of(3), 0, 1)),
    "partition: got kth 6": (ValueError, lambda: autograd.partition(of(), 6)),
    "argpartition: got kth": (ValueError, lambda: autograd.argpartition(of(), 72, None)),
    "polyval: got coefficients": (ShapeError, lambda: autograd.polyval(of(), of())),
    "around: got decimals 30": (ValueError, lambda: of().around(30)),
    "around: got decimals -1 for int32": (ValueError, lambda: plain([1], "int32").around(-1)),
    "ravel_multi_index: got": (ShapeError, lambda: autograd.ravel_multi_index([[1]], (2, 3))),
    "index 24 .*out of range|24 is out of range": (
        ValueError,
        lambda: autograd.unravel_index([24], (2, 3, 4)),
    ),
    "back_broadcast: got x_shape": (ShapeError, lambda: of().sum_to_size(2)),
    "conv1d: got shape": (ShapeError, lambda: autograd.conv1d(of(1, 2, 3, 4), of(1, 2, 3))),
    "max_pool3d: got shape": (ShapeError, lambda: autograd.max_pool3d(of(1, 2, 3, 4), 2)),
    "adaptive_avg_pool2d: got shape": (
        ShapeError,
        lambda: autograd.adaptive_avg_pool2d(of(1, 2, 3), 2),
    ),
}
