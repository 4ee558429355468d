"""Softmax and its losses, matrix products."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd

from . import references as ref
from .base import NUMBERS, WIDE, Arg, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
NO_INF = (np.nan,)
table = Table()

# ---- softmax and its losses ----------------------------------------------------------------------

for log in (False, True):
    public = autograd.log_softmax if log else autograd.softmax
    for axis in (-1, 0, 1):

        def value(x, axis=axis, log=log):
            return ref.softmax(x, axis, log)

        label = f"{'log' if log else ''}{axis}"
        table.case(
            "softmax",
            value,
            Arg((3, 4, 7), -4, 4),
            attrs={"axis": axis, "log": log},
            label=label,
            specials=NO_INF,
            scale=2,
            gradient=lambda x, axis=axis, public=public: public(x, axis),
            empty=(((0, 3, 2),), ((2, 3, 0),)),
            large=((64, 33, 130),),
            bad=(Bad(DTYPE, dtypes=("int32",)), Bad(ValueError, shapes=((),))),
        )
        table.case(
            "softmax_grad",
            lambda dy, x, value=value: vjp(value, [x], 0, [dy]),
            (3, 4, 7),
            Arg((3, 4, 7), -4, 4),
            attrs={"axis": axis, "log": log},
            label=label,
            derive=lambda dy, x, value=value: (dy, value(x)),
            derived=(None, None),
            specials=(),
            scale=4,
            empty=(((0, 3, 2), (0, 3, 2)),),
            bad=(
                Bad(DTYPE, dtypes=("float32", "float64")),
                Bad(SHAPE, shapes=((3, 4, 7), (3, 4, 6))),
            ),
        )

ROWS = Arg((6, 5), -3, 3)
CLASSES = {
    "int32": Arg((6,), 0, 4, dtype="int32"),
    "int64-column": Arg((6, 1), 0, 4, dtype="int64"),
    "uint8": Arg((6,), 0, 4, dtype="uint8"),
    "float-labels": Arg((6,), 0, 4, integral=True),
    "weights": Arg((6, 5), 0.1, 1),
    "signed-weights": Arg((6, 5), -0.5, 1),
}
for label, target in CLASSES.items():
    table.case(
        "softmax_cross_entropy",
        ref.cross_entropy,
        ROWS,
        target,
        label=label,
        out=(None, "float64"),
        specials=NO_INF,
        scale=2,
        gradient=lambda x, t: autograd.softmax_cross_entropy(x, t),
        wrt=(0,),
        bad=(
            Bad(SHAPE, shapes=((6, 5), (4,))),
            Bad(SHAPE, shapes=((6,), (6,))),
            Bad(DTYPE, dtypes=("int32", "int32")),
        ),
    )
    table.case(
        "softmax_cross_entropy_grad",
        lambda dloss, x, t: vjp(lambda x: ref.cross_entropy(x, t)[0], [x], 0, [dloss]),
        (1,),
        ROWS,
        target,
        label=label,
        derive=lambda dloss, x, t: (dloss, x, t, ref.cross_entropy(x, t)[1]),
        derived=(None, None, target.dtype, "float64"),
        specials=(),
        scale=2,
        bad=(Bad(SHAPE, shapes=((2,), (6, 5), (6,), (6, 2))),),
    )

# ---- matrix products -----------------------------------------------------------------------------

PRODUCTS = {
    "": ((4, 3), (3, 5)),
    "vector": ((1, 7), (7, 1)),
    "batch": ((2, 3, 4), (2, 4, 5)),
    "broadcast": ((2, 1, 3, 4), (3, 4, 2)),
    "shared": ((2, 3, 4), (4, 5)),
}
for label, (left, right) in PRODUCTS.items():
    table.case(
        "matmul",
        np.matmul,
        left,
        right,
        label=label,
        dtypes=NUMBERS,
        specials=NO_INF,
        scale=4,
        gradient=lambda a, b: autograd.matmul(a, b),
        empty=(((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))) if label == "" else (),
        large=((300, 257), (257, 130))
        if label == ""
        else ((8, 65, 64), (8, 64, 33))
        if label == "batch"
        else None,
        bad=(
            Bad(SHAPE, shapes=((4, 3), (4, 5))),
            Bad(SHAPE, shapes=((3,), (3, 5))),
            Bad(SHAPE, shapes=((2, 4, 3), (3, 3, 5))),
            Bad(DTYPE, dtypes=("float32", "float64")),
            Bad(DTYPE, dtypes=("bool", "bool")),
        )
        if label == ""
        else (),
    )

for label, addend in {"": (4, 5), "row": (5,), "rows": (1, 5)}.items():
    table.case(
        "region",
        lambda a, b, c: a @ b + c,
        (4, 3),
        (3, 5),
        addend,
        attrs={
            "inputs": 3,
            "producer": {"kind": {"op": "matmul"}, "operands": (0, 1)},
            "links": ({"kind": {"op": "binary", "f": "add"}, "operands": (3, 2)},),
            "outputs": (1,),
            "exact": False,
        },
        label=f"sum-{label}",
        dtypes=WIDE,
        specials=NO_INF,
        scale=4,
        empty=(((0, 3), (3, 2), (2,)), ((2, 0), (0, 3), (2, 3)), ((2, 3), (3, 0), (0,))),
        large=((300, 257), (257, 130), {"": (300, 130), "row": (130,), "rows": (1, 130)}[label]),
        bad=(
            Bad(SHAPE, shapes=((4, 3), (4, 5), addend)),
            Bad(SHAPE, shapes=((4, 3), (3, 5), (3, 1))),
            Bad(DTYPE, dtypes=("float32", "float32", "float64")),
        ),
    )

#: A product plus another tensor, and ReLU of the sum.
TAIL = {
    "inputs": 3,
    "producer": {"kind": {"op": "matmul"}, "operands": (1, 2)},
    "links": (
        {"kind": {"op": "binary", "f": "add"}, "operands": (3, 0)},
        {"kind": {"op": "unary", "f": "relu"}, "operands": (4,)},
    ),
}
for label, row, keeps in (("", (4, 5), False), ("row", (5,), True)):
    table.case(
        "region",
        lambda c, a, b, keeps=keeps: (np.maximum(a @ b + c, 0), a @ b)[: 1 + keeps],
        row,
        (4, 3),
        (3, 5),
        attrs={**TAIL, "outputs": (2, 0)[: 1 + keeps]},
        label=f"matmul-{label}",
        specials=NO_INF,
        scale=4,
        empty=(((2,), (0, 3), (3, 2)), ((2, 3), (2, 0), (0, 3))),
        large=((600,) if keeps else (1000, 600), (1000, 9), (9, 600)),
        bad=(
            Bad(SHAPE, shapes=(row, (4, 3), (4, 5))),
            Bad(SHAPE, shapes=((7,), (4, 3), (3, 5))),
            Bad(DTYPE, dtypes=("float64", "float32", "float32")),
        ),
    )
