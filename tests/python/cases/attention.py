"""Attention: masks, numbers of keys, positions, grouped heads."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd

from . import references as ref
from .base import ALL, Arg, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
NO_INF = (np.nan,)
SCALE = 0.4
table = Table()

Q, K, V = (2, 4, 3, 6), (2, 4, 5, 6), (2, 4, 5, 2)
SHARED = (2, 2, 5, 6), (2, 2, 5, 2)
NEVER = np.where(np.arange(15) % 4 == 1, -np.inf, np.linspace(-1, 1, 15))
NEVER[5:10] = -np.inf  # a query without keys
LENGTHS = Arg((2,), dtype="int64", fixed=(4, 2))
START = Arg((1,), dtype="int64", fixed=(2,))

#: Label: the shapes of q, k and v, the attributes, the optional inputs by name.
ATTENTIONS = {
    "": ((Q, K, V), {}, {}),
    "causal": ((Q, K, V), {"causal": True}, {}),
    "matrices": (((3, 6), (5, 6), (5, 2)), {"causal": True}, {}),
    "one-head": (((4, 3, 6), (1, 5, 6), (1, 5, 2)), {}, {}),
    "axes": (((2, 1, 3, 4, 6), (2, 1, 3, 5, 6), (2, 1, 3, 5, 2)), {}, {}),
    "grouped": ((Q, *SHARED), {"causal": True}, {}),
    "one-query": (((2, 4, 1, 6), *SHARED), {}, {"lengths": LENGTHS}),
    "many-keys": (((1, 2, 2, 4), (1, 1, 600, 4), (1, 1, 600, 3)), {}, {}),
    "many": (((1, 1, 140, 3), (1, 1, 130, 3), (1, 1, 130, 2)), {"causal": True}, {}),
    "lengths": ((Q, K, V), {}, {"lengths": LENGTHS}),
    "start": ((Q, *SHARED), {"causal": True}, {"start": START}),
    "both": ((Q, K, V), {"causal": True}, {"lengths": LENGTHS, "start": START}),
    "seen": ((Q, K, V), {}, {"mask": Arg((2, 1, 3, 5), dtype="bool")}),
    "seen-keys": ((Q, *SHARED), {"causal": True}, {"mask": Arg((2, 1, 1, 5), dtype="bool")}),
    "added": ((Q, K, V), {}, {"mask": Arg((4, 3, 5))}),
    "added-wide": ((Q, *SHARED), {"causal": True}, {"mask": Arg((2, 1, 3, 5), dtype="wide")}),
    "never": ((Q, K, V), {}, {"mask": Arg((3, 5), dtype="wide", fixed=tuple(NEVER))}),
}


def of(causal, given):
    """The result, and the logarithms of the sums, for what is given besides q, k and v."""

    def reference(q, k, v, *rest):
        extra = dict(zip(given, rest, strict=True))
        return ref.attention_sums(q, k, v, is_causal=causal, scale=SCALE, **extra)

    return reference


def function(causal, given):
    """The public function."""

    def call(q, k, v, *rest):
        extra = dict(zip(given, rest, strict=True))
        return autograd.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=SCALE, **extra
        )

    return call


def gradient(reference, mask):
    """Those of q, k and v, and of all scores if there is a mask of numbers."""

    def found(dy, *inputs):
        only = lambda *xs: reference(*xs)[0]  # noqa: E731
        made = tuple(vjp(only, inputs, i, [dy]) for i in range(3))
        if not mask:
            return made
        q, k = inputs[:2]
        shape = (*q.shape[:-1], k.shape[-2])
        whole = (*inputs[:3], np.broadcast_to(inputs[3], shape).copy(), *inputs[4:])
        return (*made, vjp(only, whole, 3, [dy]))

    return found


def derive(reference):
    """What the gradient is computed from."""
    return lambda dy, q, k, v, *rest: (dy, q, k, v, *reference(q, k, v, *rest), *rest)


LARGE = (2, 4, 300, 24), (2, 2, 270, 24), (2, 2, 270, 16)
for label, (shapes, attrs, extra) in ATTENTIONS.items():
    causal = attrs.get("causal", False)
    reference = of(causal, extra)
    flags = {name: name in extra for name in ("mask", "lengths", "start")}
    added = label.startswith("added")
    attributes = {"scale": SCALE, "causal": causal, "dropout": 0.0, **flags}
    table.case(
        "attention",
        reference,
        *shapes,
        *extra.values(),
        attrs=attributes,
        label=label,
        out=(None, "wide"),
        specials=() if added else NO_INF,
        scale=4,
        gradient=None if label.startswith("many") else function(causal, extra),
        wrt=(0, 1, 2, 3) if added else (0, 1, 2),
        large=LARGE if label in ("", "grouped") else None,
        empty=(
            tuple((*s[:-2], 0, s[-1]) for s in shapes),
            (shapes[0], *((*s[:-2], 0, s[-1]) for s in shapes[1:])),
            tuple((*s[:-3], 0, *s[-2:]) for s in shapes),
        )
        if label == "causal"
        else (),
        bad=(
            Bad(SHAPE, shapes=((2, 4, 3, 5), *shapes[1:])),
            Bad(SHAPE, shapes=(shapes[0], (2, 3, 5, 6), (2, 3, 5, 2))),
            Bad(DTYPE, dtypes=("float32", "float32", "float64")),
            Bad(DTYPE, dtypes=("int32", "int32", "int32")),
        )
        if label == ""
        else (),
    )
    if label.startswith("many"):
        continue
    result = Arg((*shapes[0][:-1], shapes[2][-1]))
    kinds = [arg.dtype for arg in extra.values()]
    table.case(
        "attention_grad",
        gradient(reference, added),
        result,
        *shapes,
        *extra.values(),
        attrs={**attributes, "scores": added},
        label=label,
        derive=derive(reference),
        derived=(None, None, None, None, None, "wide", *kinds),
        out=(None, None, None, "wide") if added else None,
        specials=(),
        scale=8,
        bad=(
            Bad(SHAPE, shapes=((2, 4, 3, 3), *shapes, (2, 4, 3, 2), (2, 4, 3))),
            Bad(SHAPE, shapes=((2, 4, 3, 2), *shapes, (2, 4, 3, 2), (2, 4, 4))),
        )
        if label == ""
        else (),
    )


def scattered(past, update, start):
    """Slices in their places."""
    made = past.copy()
    for row, new, at in zip(made, update, np.broadcast_to(start, len(past)), strict=True):
        row[..., at : at + new.shape[-2], :] = new
    return made


for label, start in {"": (2, 0), "one": (1,)}.items():
    table.case(
        "tensor_scatter",
        scattered,
        (2, 3, 5, 4),
        (2, 3, 2, 4),
        Arg((len(start),), dtype="int64", fixed=start),
        attrs={"axis": -2},
        label=label,
        dtypes=ALL,
        updates=(0,),
        bad=(
            Bad(SHAPE, shapes=((2, 3, 5, 4), (2, 3, 6, 4), (1,))),
            Bad(SHAPE, shapes=((2, 3, 5, 4), (2, 3, 2, 3), (1,))),
            Bad(SHAPE, shapes=((2, 3, 5, 4), (2, 3, 2, 4), (3,))),
            Bad(DTYPE, dtypes=("float32", "float64", "int64")),
            Bad(DTYPE, dtypes=("float32", "float32", "int32")),
        ),
    )
