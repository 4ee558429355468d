"""Copies, casts, fills, concatenation, gather, reductions."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd, tensor
from singa_rs.autograd.casting import convert

from .base import ALL, FLOATS, INTS, NUMBERS, Arg, Bad, Table

S = (3, 4, 5)
BIG = (257, 1025)
SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
EMPTY = (((0,),), ((2, 0, 3),))
table = Table()

table.case(
    "copy", lambda x: x, S, dtypes=ALL, gradient=autograd.identity, empty=EMPTY, large=(BIG,)
)
for to in ALL:
    kind = "bool" if to == "bool" else "float32" if to == "bfloat16" else to
    # Finite differences through a narrower type would only measure its rounding.
    exact = (lambda x: autograd.cast(x, tensor.float64)) if to == "float64" else None
    table.case(
        "cast",
        lambda x, kind=kind: x.astype(kind),
        Arg(S, 0, 100, integral=True),
        attrs={"dtype": to},
        label=to,
        dtypes=ALL,
        out=to,
        specials=() if to in INTS else (np.nan, np.inf, -np.inf),
        gradient=exact,
        empty=EMPTY,
        large=(BIG,),
    )

    # Numbers that every dtype holds.
    table.case(
        "convert",
        lambda x, kind=kind: x.astype(kind),
        Arg(S, 0, 1 if to == "bool" else 100, integral=True),
        attrs={"dtype": to},
        label=to,
        dtypes=ALL,
        out=to,
        specials=() if to in INTS or to == "bool" else (np.nan, np.inf, -np.inf),
        gradient=(lambda x: convert(x, tensor.float64)) if to == "float64" else None,
        empty=EMPTY,
        large=(BIG,),
    )

for value, dtype in ((1.5, "float32"), (-3, "int8"), (2**53 + 1, "int64"), (1, "bool")):
    for label, shape in {dtype: (2, 3), f"{dtype}-scalar": (), f"{dtype}-empty": (0, 4)}.items():
        table.case(
            "fill",
            lambda shape=shape, value=value, dtype=dtype: np.full(shape, value, dtype),
            attrs={"value": value, "shape": shape, "dtype": dtype},
            label=label,
            dtypes=(dtype,),
            specials=(),
        )
for start, step, count, dtype in (
    (0, 1, 7, "int64"),
    (5, -2, 4, "int32"),
    (0.5, 0.25, 9, "float64"),
):
    table.case(
        "arange",
        lambda start=start, step=step, count=count, dtype=dtype: (
            start + step * np.arange(count)
        ).astype(dtype),
        attrs={"start": start, "step": step, "count": count, "dtype": dtype},
        label=dtype,
        dtypes=(dtype,),
        specials=(),
    )

JOIN = {
    "rows": (0, ((2, 3), (1, 3))),
    "last": (-1, ((2, 2, 1), (2, 2, 3), (2, 2, 2))),
    "one": (0, (S,)),
}
for label, (axis, shapes) in JOIN.items():
    table.case(
        "concat",
        lambda *xs, axis=axis: np.concatenate(xs, axis),
        *shapes,
        attrs={"axis": axis},
        label=label,
        dtypes=ALL,
        gradient=lambda *xs, axis=axis: autograd.cat(xs, axis),
        empty=(((0, 3), (2, 3)), ((2, 0), (1, 0))) if label == "rows" else (),
        bad=(
            Bad(SHAPE, shapes=((2, 3), (2, 4))),
            Bad(SHAPE, shapes=((2, 3), (2,))),
            Bad(DTYPE, dtypes=("float32", "float64")),
        )
        if label == "rows"
        else (),
    )


def gather_grad(dy, x, indices, axis):
    """Adds where an index repeats."""
    return vjp(lambda x: np.take(x, indices.astype(np.int64), axis), [x], 0, [dy])


for label, axis, shape in (
    ("rows", 0, (6,)),
    ("last", -1, (2, 3)),
    ("middle", 1, ()),
    ("table", 0, (2, 2)),
    ("table-of-many", 0, (7, 10)),
):
    for kind in ("int64", "int32", "float32") if label == "rows" else ("int64",):
        x = Arg((4, 3) if label.startswith("table") else S)
        bound = x.shape[axis]
        indices = Arg(shape, -bound, bound - 1, dtype=kind, integral=True)
        table.case(
            "gather",
            lambda x, indices, axis=axis: np.take(x, indices.astype(np.int64), axis),
            x,
            indices,
            attrs={"axis": axis},
            label=f"{label}-{kind}",
            dtypes=ALL,
            specials=(np.nan,),
            gradient=lambda x, indices, axis=axis: autograd.gather(x, axis, indices),
            empty=((x.shape, (0,)),),
            bad=(Bad(DTYPE, dtypes=("float32", "bool")),),
        )
        sliced = np.take(np.zeros(x.shape), np.zeros(shape, int), axis).shape
        table.case(
            "gather_grad",
            lambda dy, indices, axis=axis, x=x: gather_grad(dy, np.zeros(x.shape), indices, axis),
            sliced,
            indices,
            attrs={"axis": axis, "size": bound},
            label=f"{label}-{kind}",
            specials=(),
            empty=(((0, *x.shape[1:]), (0,)),) if label == "rows" else (),
            bad=(Bad(DTYPE, dtypes=("float32", "bool")),),
        )

#: The operations that look positions up, and whether negative indices count from the end.
PLACES = {
    **dict.fromkeys(("bincount", "cross_entropy", "ctc_loss", "multinomial"), False),
    **dict.fromkeys(("nll_loss", "one_hot"), False),
    **dict.fromkeys(("gather_nd", "index", "index_add", "index_copy", "index_fill"), True),
    **dict.fromkeys(("onehot", "scatter_add", "scatter_elements", "scatter_nd"), True),
    **dict.fromkeys(("embedding_bag", "masked_scatter", "max_unpool", "put_along_axis"), True),
    **dict.fromkeys(("scatter", "scatter_reduce", "take_along_axis"), True),
    **dict.fromkeys(("multilabel_margin_loss", "ravel_multi_index", "unravel_index"), False),
}
for of, wraps in PLACES.items():
    size = None if of == "onehot" else 5
    table.case(
        "places",
        lambda indices, size=size: np.where(indices < 0, indices + (size or 0), indices),
        Arg(S, -5 if wraps else 0, 4, integral=True),
        attrs={"of": of, "size": size, "wraps": wraps},
        label=of,
        dtypes=tuple(dtype for dtype in NUMBERS if dtype != "uint8"),
        out="int64",
        specials=(),
        empty=EMPTY,
        bad=(Bad(DTYPE, dtypes=("bool",)),),
    )

AXES = {
    "all": ((), False),
    "kept": ((), True),
    "first": ((0,), False),
    "last": ((-1,), True),
    "middle": ((1,), False),
    "outer": ((0, -1), False),
    "inner": ((1, 2), True),
}


def over(function, axes, keepdims):
    """NumPy's function over these axes; none means all."""
    return lambda x: function(x, axis=tuple(axes) or None, keepdims=keepdims)


REDUCE = {
    "sum": (np.sum, Arg(S), FLOATS, ((0,), (2, 0, 3))),
    "mean": (np.mean, Arg(S), FLOATS, ()),
    "max": (np.max, Arg(S), NUMBERS, ()),
    "min": (np.min, Arg(S), NUMBERS, ()),
    "prod": (np.prod, Arg(S, 0.5, 1.4), FLOATS, ((0,), (2, 0, 3))),
    "any": (np.any, Arg(S, 0, 1, integral=True), ALL, ((0,), (2, 0, 3))),
    "all": (np.all, Arg(S, 0, 1, integral=True), ALL, ((0,), (2, 0, 3))),
}


def differentiate(f, axes, keepdims):
    """The public function that reduces."""
    function = getattr(autograd, f"reduce_{f}")
    return lambda x: function(x, axes=axes or None, keepdims=int(keepdims))


DIFFERENTIABLE = ("sum", "mean", "max", "min", "prod")
for f, (function, arg, dtypes, empty) in REDUCE.items():
    for label, (axes, keepdims) in AXES.items():
        refused = {
            "mean": (Bad(DTYPE, dtypes=("bool",)), Bad(DTYPE, dtypes=("int32",))),
            "max": (Bad(ValueError, shapes=((0, 0, 0),)),),
            "min": (Bad(ValueError, shapes=((0, 0, 0),)),),
        }.get(f, ())
        table.case(
            "reduce",
            over(function, axes, keepdims),
            arg,
            attrs={"f": f, "axes": axes, "keepdims": keepdims},
            label=label,
            dtypes=dtypes,
            out="bool" if f in ("any", "all") else None,
            scale=10 if f == "prod" else 2,
            gradient=differentiate(f, axes, keepdims) if f in DIFFERENTIABLE else None,
            empty=tuple((shape,) for shape in empty) if not axes else (),
            large=(BIG,) if label in ("all",) and f != "prod" else None,
            bad=refused,
        )
# Numbers whose sums and products overflow their own dtype.
for f, function, most in (("sum", np.sum, 100), ("prod", np.prod, 2)):
    for label, (axes, keepdims) in AXES.items():
        table.case(
            "reduce",
            over(function, axes, keepdims),
            Arg(S, 1, most, integral=True),
            attrs={"f": f, "axes": axes, "keepdims": keepdims},
            label=f"{label}-int",
            dtypes=(*INTS, "bool"),
            out="int64",
            empty=(((0,),), ((2, 0, 3),)) if not axes else (),
            large=(BIG,) if label == "all" and f == "sum" else None,
        )
for f, axis in (("sum", 1), ("max", 0), ("mean", 0), ("sum", 0)):
    table.case(
        "reduce",
        over(REDUCE[f][0], (axis,), False),
        Arg((33, 65)),
        attrs={"f": f, "axes": (axis,), "keepdims": False},
        label=f"big-{axis}",
        scale=4,
        large=((1025, 513),),
    )
for f, function in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for label, axes, keepdims in (
        ("all", (), False),
        ("first", (0,), False),
        ("last", (-1,), True),
    ):
        table.case(
            "reduce",
            lambda x, function=function, axes=axes, keepdims=keepdims: function(
                x, axis=axes[0] if axes else None, keepdims=keepdims
            ),
            Arg(S),
            attrs={"f": f, "axes": axes, "keepdims": keepdims},
            label=label,
            dtypes=NUMBERS,
            out="int64",
            large=(BIG,),
            bad=(Bad(ValueError, shapes=((0, 0, 0),)),),
        )
