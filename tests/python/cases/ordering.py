"""Running sums and products, sorting, and the greatest elements."""

import numpy as np
from singa_rs import autograd
from singa_rs.autograd import segments

from .base import ALL, FLOATS, INTS, Arg, Bad, Table

S = (3, 4, 5)
WIDE_INTS = (*INTS, "bool")
table = Table()


def scanned(function, axis, exclusive, reverse, start):
    """NumPy's running function, made exclusive or reversed."""

    def reference(x):
        x = np.flip(x, axis) if reverse else x
        if exclusive and x.size:
            before = np.full_like(x[:1] if x.ndim < 2 else np.take(x, [0], axis), start)
            x = np.concatenate([before, np.delete(x, -1, axis)], axis)
        made = function(x, axis=axis)
        return np.flip(made, axis) if reverse else made

    return reference


SCANS = {"sum": (np.cumsum, 0, autograd.cumsum), "prod": (np.cumprod, 1, autograd.cumprod)}
FORMS = {
    "first": (0, False, False),
    "middle": (1, True, False),
    "last": (-1, False, False),
    "back": (-1, False, True),
    "back-first": (0, True, True),
}
for f, (function, start, public) in SCANS.items():
    for label, (axis, exclusive, reverse) in FORMS.items():
        attrs = {"f": f, "axis": axis, "exclusive": exclusive, "reverse": reverse}
        reference = scanned(function, axis, exclusive, reverse, start)
        table.case(
            "scan",
            reference,
            Arg(S, -2, 2) if f == "sum" else Arg(S, 0.5, 1.5),
            attrs=attrs,
            label=label,
            dtypes=FLOATS,
            scale=2,
            gradient=lambda x, public=public, attrs=attrs: public(
                x, attrs["axis"], attrs["exclusive"], attrs["reverse"]
            ),
            empty=(((2, 0, 3),), ((0, 2, 3),)),
            large=((257, 1025),) if f == "sum" and axis != 1 else None,
            bad=(Bad(ValueError, shapes=((),)),),
        )
        table.case(
            "scan",
            lambda x, reference=reference: reference(x.astype(np.int64)),
            Arg(S, 0, 3, integral=True),
            attrs=attrs,
            label=f"{label}-int",
            dtypes=WIDE_INTS,
            out="int64",
            empty=(((2, 0, 3),),),
        )


for label, (axis, exclusive, reverse) in FORMS.items():
    for kind, start, dtypes in (("", -np.inf, FLOATS), ("-int", -(2**63), WIDE_INTS)):
        wide = np.asarray if not kind else lambda x: np.asarray(x).astype(np.int64)
        reference = scanned(np.maximum.accumulate, axis, exclusive, reverse, start)
        table.case(
            "scan",
            lambda x, reference=reference, wide=wide: reference(wide(x)),
            Arg(S, -2, 2) if not kind else Arg(S, 0, 3, integral=True),
            attrs={"f": "max", "axis": axis, "exclusive": exclusive, "reverse": reverse},
            label=f"max-{label}{kind}",
            dtypes=dtypes,
            out="int64" if kind else None,
            empty=(((2, 0, 3),),),
        )


def ordered(x, axis, descending, count):
    """The values and their places, stable, NaN greatest."""
    rank = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x.astype(np.int64)
    keys = (rank, np.isnan(x)) if x.dtype.kind == "f" else (rank,)
    keys = tuple(-key.astype(rank.dtype) if descending else key for key in keys)
    places = np.lexsort(keys, axis=axis)
    places = np.take(places, range(places.shape[axis] if count is None else count), axis)
    return np.take_along_axis(x, places, axis), places


SORTS = {
    "first": (0, False, None),
    "last": (-1, False, None),
    "down": (1, True, None),
    "greatest": (-1, True, 2),
    "least": (0, False, 2),
}
for label, (axis, descending, count) in SORTS.items():
    table.case(
        "sort",
        lambda x, axis=axis, descending=descending, count=count: ordered(
            x, axis, descending, count
        ),
        S,
        attrs={"axis": axis, "descending": descending, "count": count},
        label=label,
        dtypes=ALL,
        out=(None, "int64"),
        gradient=(
            (lambda x, axis=axis, d=descending: autograd.sort(x, axis, d)[0])
            if count is None
            else (lambda x, axis=axis, d=descending: autograd.topk(x, 2, axis, d)[0])
        ),
        empty=(((2, 0, 3),), ((2, 3, 0),)) if count is None and axis == 0 else (),
        large=((9, 20_000),) if axis == -1 else None,
        bad=(
            Bad(ValueError, shapes=((),)),
            *([Bad(ValueError, shapes=((1, 1),))] if count else []),
        ),
    )


def added(dy, places, axis, size):
    """Zeros, `size` along an axis, with `dy` added at the places."""
    made = np.zeros([size if i == axis else n for i, n in enumerate(dy.shape)])
    grid = list(np.indices(dy.shape))
    grid[axis] = places
    np.add.at(made, tuple(grid), dy)
    return made


for axis, shape in enumerate(((2, 4, 5), (3, 6, 5), (3, 4, 9))):
    at = Arg(shape, 0, S[axis] - 1, dtype="int64", integral=True)
    table.case(
        "gather_elements",
        lambda x, places, axis=axis: np.take_along_axis(x, places, axis),
        S,
        at,
        attrs={"axis": axis},
        label=f"axis{axis}",
        dtypes=ALL,
        wrt=(0,),
        gradient=lambda x, places, axis=axis: autograd.take_along_axis(x, places, axis),
        bad=(Bad(ValueError, shapes=((2, 3, 3), (3, 2, 2))),),
    )

for axis, shape in ((0, (2, 4, 5)), (1, (3, 6, 5)), (2, (3, 4, 9)), (2, (3, 2, 70))):
    at = Arg(shape, 0, S[axis] - 1, dtype="int64", integral=True)
    table.case(
        "gather_elements_grad",
        lambda dy, places, axis=axis: added(dy, places, axis, S[axis]),
        shape,
        at,
        attrs={"axis": axis, "size": S[axis]},
        label=f"axis{axis}-{shape[axis]}",
        scale=2,
        specials=(),
        bad=(Bad(ValueError, shapes=((2, 3, 3), (3, 2, 2))),),
    )


JOINS = {
    "none": lambda _, update: update,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def written(axis, how):
    """Elements at places, joined with updates one after the other."""

    def reference(x, places, updates):
        made = x.copy()
        for at in np.ndindex(places.shape):
            to = (*at[:axis], places[at], *at[axis + 1 :])
            made[to] = JOINS[how](made[to], updates[at])
        return made

    return reference


#: By the shape: the axis, and places, of which some repeat and some axes have fewer than the shape;
#: those of long lines are sorted on a GPU.
PLACES = {
    (5,): (0, (4, 1, 1, 0)),
    (4, 3, 2): (1, np.array([[0, 0, 1, 1], [2, 0, 2, 2]]).T.reshape(4, 2, 1)),
    (3, 20): (0, np.arange(2 * 17).reshape(2, 17) % 3),
    (9,): (0, np.arange(70) ** 2 % 9),
    (2, 9): (1, np.arange(140).reshape(2, 70) ** 2 % 7),
}
for how in JOINS:
    halves = [] if how == "none" else [Bad(TypeError, dtypes=("float16", "int64", "float16"))]
    for shape, (axis, places) in PLACES.items():
        at = np.shape(places)
        table.case(
            "scatter",
            written(axis, how),
            shape,
            Arg(at, dtype="int64", fixed=tuple(np.ravel(places))),
            at,
            attrs={"axis": axis, "join": how},
            label=f"{how}-{len(shape)}d-{at[axis]}",
            dtypes=ALL if how == "none" else ("float32", "float64", *INTS),
            wrt=(0, 2),
            gradient=lambda x, places, updates, how=how, axis=axis: segments.scatter_rule(
                places, axis, how
            )(x, updates)[0],
            bad=(
                Bad(ValueError, shapes=(shape, (*at, 1), (*at, 1))),
                Bad(ValueError, shapes=(shape, at, (*at[:-1], at[-1] + 1))),
                Bad(TypeError, dtypes=("float32", "int32", "float32")),
                Bad(TypeError, dtypes=("float32", "int64", "float64")),
                *(
                    [Bad(TypeError, dtypes=("float16", "int64", "float16"))]
                    if how != "none"
                    else []
                ),
            ),
        )
