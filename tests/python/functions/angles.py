"""Angles, bounds, other names of functions and methods, new tensors."""

import numpy as np
from singa_rs import DeviceError, ShapeError, autograd, tensor
from singa_rs.tensor import Tensor

from .base import Table, plain
from .elementwise import GRID, SPECIAL, quietly

S = (3, 4, 5)
table = Table()
table.add("atan2", lambda y, x: y.atan2(x), np.arctan2, S, (4, 5), step=1e-5, empty=((0, 4), (4,)))
table.add(
    "atan2-row",
    lambda y: autograd.atan2(y, [-1.0, 0.5]),
    lambda y: np.arctan2(y, [-1, 0.5]),
    (3, 2),
)
table.add("clamp", lambda x: x.clamp(-0.5, 1.2), lambda x: np.clip(x, -0.5, 1.2), S, step=1e-5)
table.add("clamp-below", lambda x: x.clamp(max=0.3), lambda x: np.minimum(x, 0.3), S, step=1e-5)
table.add(
    "clamp-tensors",
    lambda x, a, b: x.clamp(a - 1, b + 1),
    lambda x, a, b: np.clip(x, a - 1, b + 1),
    S,
    (5,),
    (4, 1),
    step=1e-6,
)
table.add("ldexp", lambda x: x.ldexp([-2, 0, 3]), lambda x: np.ldexp(x, [-2, 0, 3]), (4, 3))
table.add(
    "float_power",
    lambda x: x.float_power(3),
    lambda x: np.float_power(x, 3),
    S,
    same_dtype=False,
)
#: Functions of one tensor: NumPy's of the same name.
PLAIN = (
    "absolute arcsinh arctan fix rint prod amax amin ravel arcsin arccos arctanh arccosh".split()
)
BOUNDS = {"arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "arctanh": (-0.9, 0.9), "arccosh": (1.2, 4)}
for _name in PLAIN:
    _low, _high = BOUNDS.get(_name, (-2.0, 2.0))
    table.add(
        _name,
        lambda x, name=_name: getattr(autograd, name)(x),
        getattr(np, _name),
        (3, 4),
        low=_low,
        high=_high,
        step=1e-5,
        halves=_name not in ("fix", "rint"),
        scale=4,
    )
for _name in "subtract multiply divide true_divide arctan2 greater less greater_equal".split():
    table.add(
        f"numpy.{_name}",
        lambda a, b, name=_name: getattr(autograd, name)(a, b),
        getattr(np, _name),
        S,
        (5,),
        smooth=not _name.startswith(("greater", "less")),
        halves=_name not in ("divide", "true_divide") and not _name.startswith(("gr", "le")),
        step=1e-5,
    )
OTHERS = {
    "power": (lambda x: autograd.power(x, 2), np.square),
    "concat": (lambda x: autograd.concat([x, x], 1), lambda x: np.concatenate([x, x], 1)),
    "concatenate": (lambda x: autograd.concatenate([x, x]), lambda x: np.concatenate([x, x])),
    "expand_dims": (lambda x: x.expand_dims(1), lambda x: np.expand_dims(x, 1)),
    "movedim": (lambda x: x.movedim(0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "swapdims": (lambda x: x.swapdims(0, 1), lambda x: x.swapaxes(0, 1)),
    "permute": (lambda x: autograd.permute(x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0)),
    "repeat_interleave": (
        lambda x: x.repeat_interleave([1, 0, 2], 0),
        lambda x: np.repeat(x, [1, 0, 2], 0),
    ),
    "take_along_dim": (
        lambda x: x.take_along_dim(x.argsort(1), 1),
        lambda x: np.sort(x, 1),
    ),
    "neg": (lambda x: x.neg(), np.negative),
    "ger": (lambda x: x[0, 0].ger(x[0, 1]), lambda x: np.outer(x[0, 0], x[0, 1])),
    "leaky_relu": (lambda x: autograd.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
    "swish": (autograd.swish, lambda x: x / (1 + np.exp(-x))),
    "sgn": (lambda x: x.sgn(), np.sign),
    "amax-axes": (lambda x: x.amax((0, 2), True), lambda x: np.amax(x, (0, 2), keepdims=True)),
    "amin-axis": (lambda x: x.amin(1), lambda x: np.amin(x, 1)),
    "prod-axis": (lambda x: autograd.prod(x, 1, True), lambda x: np.prod(x, 1, keepdims=True)),
    "t": (lambda x: x[0].t(), lambda x: x[0].T),
    "view": (lambda x: x.contiguous().view(5, -1, 2), lambda x: x.reshape(5, -1, 2)),
    "view_as": (lambda x: x.contiguous().view_as(x.reshape(5, 12)), lambda x: x.reshape(5, 12)),
    "reshape_as": (
        lambda x: x.transpose().reshape_as(x),
        lambda x: x.transpose().reshape(x.shape),
    ),
    "expand_as": (lambda x: x[:, :1].expand_as(x), lambda x: np.broadcast_to(x[:, :1], x.shape)),
    "double": (lambda x: x.double() * 2, lambda x: x * 2),
    "to": (lambda x: x.to("float64").to(x), lambda x: x),
    "type_as": (lambda x: x.double().type_as(x), lambda x: x),
}
for _name, (_tensors, _arrays) in OTHERS.items():
    table.add(
        _name, _tensors, _arrays, S, step=1e-5, halves=_name != "sgn", same_dtype=_name != "double"
    )
for _name, _sign in {"eq": "equal", "ne": "not_equal", "lt": "less", "ge": "greater_equal"}.items():
    table.add(
        f"method.{_name}",
        lambda x, name=_name: getattr(x, name)(x.abs()),
        lambda x, sign=_sign: getattr(np, sign)(x, np.abs(x)),
        S,
        smooth=False,
        halves=False,
    )

FEW = np.array([-7, -3, 0, 2, 9], np.int32)
HUGE = np.array([3e200, -3e-200, 0.0, 5e-324])
#: Numbers, and powers of two that their dtype does not hold.
SCALED = {
    "float32": np.array([1e-38, 1e-45, 0, 3e38, 3e38, 1.7, 1, -np.inf], np.float32),
    "float64": np.array([1e-308, 5e-324, 0, 1e308, 1.7e308, 1.7, 1, -np.inf]),
}
POWERS = {
    "float32": np.array([130, 260, 200, -200, -270, -140, -400, -300]),
    "float64": np.array([1030, 2060, 2000, -1500, -2090, -1060, -3000, -2500]),
}
EXACT = {
    "atan2-special": (
        lambda: plain(GRID[0], "float64").atan2(plain(GRID[1], "float64")),
        lambda: quietly(np.arctan2, *GRID),
    ),
    "atan2-float32": (
        lambda: plain(GRID[0], "float32").atan2(plain(GRID[1], "float32")),
        lambda: quietly(np.arctan2, *GRID).astype(np.float32),
    ),
    "atan2-sizes": (
        lambda: plain(HUGE, "float64").atan2(plain(HUGE[::-1].copy(), "float64")),
        lambda: np.arctan2(HUGE, HUGE[::-1]),
    ),
    "clamp-special": (
        lambda: [
            plain(SPECIAL, "float64").clamp(-1.0, 2.0),
            plain(SPECIAL, "float64").clamp(plain([1.0] * 8, "float64")),
        ],
        lambda: [np.clip(SPECIAL, -1, 2), np.clip(SPECIAL, 1, None)],
    ),
    "clamp-int": (
        lambda: [plain(FEW, "int32").clamp(-3, 2), plain(FEW, "int32").clamp(max=0)],
        lambda: [np.clip(FEW, -3, 2), np.clip(FEW, None, 0)],
    ),
    "isposinf": (lambda: plain(SPECIAL, "float64").isposinf(), lambda: np.isposinf(SPECIAL)),
    "isneginf": (lambda: plain(SPECIAL, "float64").isneginf(), lambda: np.isneginf(SPECIAL)),
    "isposinf-int": (lambda: plain(FEW, "int32").isposinf(), lambda: np.zeros(5, bool)),
    "ldexp-special": (
        lambda: plain(SPECIAL, "float64").ldexp(plain([2] * 8, "int32")),
        lambda: np.ldexp(SPECIAL, 2),
    ),
    **{
        f"ldexp-{dtype}": (
            lambda dtype=dtype: plain(SCALED[dtype], dtype).ldexp(plain(POWERS[dtype], "int32")),
            lambda dtype=dtype: np.ldexp(SCALED[dtype], POWERS[dtype]),
        )
        for dtype in ("float32", "float64")
    },
    "float_power-int": (
        lambda: plain(FEW, "int32").float_power(plain([2, 2, 3, -1, 0.5], "float32")),
        lambda: np.float_power(FEW, [2, 2, 3, -1, 0.5]),
    ),
    "dtypes": (
        lambda: [
            getattr(plain([0.0, 1.7, 300.0], "float32"), name)()
            for name in ("half", "float", "double", "int", "long", "bool")
        ],
        lambda: [
            np.array([0.0, 1.7, 300.0], np.float32).astype(to)
            for to in ("float16", "float32", "float64", "int32", "int64", "bool")
        ],
    ),
    "bytes": (
        lambda: [plain(FEW, "int32").char(), (plain(FEW, "int32") + 7).byte()],
        lambda: [FEW.astype(np.int8), (FEW + 7).astype(np.uint8)],
    ),
    "new": (
        lambda: [
            plain(FEW, "int32").new_zeros(2, 3), plain(FEW, "int32").new_ones((2,)),
            plain(FEW, "int32").new_full((2, 2), 7, dtype="float64"),
            plain(FEW, "int32").new_tensor([[1, 2]]), plain(FEW, "int32").new_empty(0, 3),
        ],
        lambda: [
            np.zeros((2, 3), np.int32), np.ones(2, np.int32), np.full((2, 2), 7.0),
            np.array([[1, 2]], np.int32), np.zeros((0, 3), np.int32),
        ],
    ),
    "prod-int": (lambda: autograd.prod(plain(FEW, "int32")), lambda: np.prod(FEW)),
    "sequences": (
        lambda: [
            tensor.logspace(-1, 2, 7, dtype="float64"), tensor.logspace(0, 3, 4, False, 2.0),
            tensor.geomspace(1, 1000, 7), tensor.geomspace(-8, -1, 4, dtype="float64"),
            tensor.tri(3, 5, 1), tensor.tri(4, k=-9, dtype="int8"), tensor.tri(0, 2),
            tensor.tril_indices(3, m=4, k=-1), tensor.triu_indices(4, k=1), tensor.triu_indices(0),
            tensor.empty((2, 3)), tensor.empty_like(plain(FEW, "int32")),
        ],
        lambda: [
            np.logspace(-1, 2, 7), np.logspace(0, 3, 4, False, 2.0),
            np.geomspace(1, 1000, 7), np.geomspace(-8, -1, 4),
            np.tri(3, 5, 1, np.float32), np.tri(4, k=-9, dtype=np.int8), np.tri(0, 2),
            np.stack(np.tril_indices(3, -1, 4)), np.stack(np.triu_indices(4, 1)),
            np.zeros((2, 0), np.int64), np.zeros((2, 3), np.float32), np.zeros(5, np.int32),
        ],
    ),
}  # fmt: skip


def of(*shape):
    return Tensor(shape or S)


REFUSED = {
    "clamp: got shapes": (ShapeError, lambda: of().clamp(of(3))),
    "view: got": (ShapeError, lambda: of().transpose().view(-1)),
    r"view: got \(7,": (ShapeError, lambda: of().view(7, 2)),
    "reshape_as: got shapes": (ShapeError, lambda: of().reshape_as(of(2))),
    "expand: got shapes": (ShapeError, lambda: of().expand_as(of(2, 5))),
    "t: got shape": (ShapeError, lambda: of().t()),
    "to: got nothing": (TypeError, lambda: of().to()),
    "got device 0, but no driver": (DeviceError, lambda: of().to("cuda:0")),
    "to: got 3": (TypeError, lambda: of().to(3)),
    "new_full: got 'x'": (TypeError, lambda: of().new_full((2,), "x")),
    "logspace: got .* a base above 0": (ValueError, lambda: tensor.logspace(0, 1, base=0)),
    "geomspace: got": (ValueError, lambda: tensor.geomspace(0, 1)),
    "tril_indices: n": (TypeError, lambda: tensor.tril_indices("x")),
}
