"""Convolution and pooling."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd

from . import references as ref
from .base import WIDE, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
NO_INF = (np.nan,)
table = Table()


def blank(dy, shape):
    """Zeros of this shape, but with as many images as `dy` has."""
    return np.zeros((dy.shape[0], *shape[1:]))


# ---- convolution ---------------------------------------------------------------------------------

PLAIN = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
CONVOLUTIONS = {  # x, w, attributes
    "": ((2, 3, 5, 6), (4, 3, 3, 3), {}),
    "one-by-one": ((2, 4, 3, 3), (5, 4, 1, 1), {}),
    "padded": ((1, 2, 5, 5), (3, 2, 3, 3), {"padding": (1, 1, 1, 1)}),
    "uneven": ((1, 2, 5, 4), (3, 2, 3, 2), {"padding": (1, 0, 2, 1)}),
    "strided": ((2, 2, 7, 6), (3, 2, 3, 3), {"stride": (2, 3), "padding": (1, 1, 1, 1)}),
    "dilated": ((1, 2, 7, 7), (2, 2, 3, 2), {"dilation": (2, 3), "padding": (1, 1, 1, 1)}),
    "groups": ((2, 4, 4, 5), (6, 2, 3, 3), {"groups": 2, "padding": (1, 1, 1, 1)}),
    "depthwise": ((1, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "stride": (2, 2)}),
}
CONV_BAD = (
    Bad(SHAPE, shapes=((2, 3, 5, 6), (4, 2, 3, 3))),
    Bad(ValueError, shapes=((2, 3, 2, 6), (4, 3, 3, 3))),
    Bad(SHAPE, shapes=((3, 5, 6), (4, 3, 3, 3))),
    Bad(SHAPE, shapes=((2, 3, 5, 6), (4, 3, 3))),
    Bad(ValueError, shapes=((2, 3, 5, 6), (4, 3, 0, 3))),
    Bad(DTYPE, dtypes=("float32", "float64")),
    Bad(DTYPE, dtypes=("int32", "int32")),
)


def conv2d_function(attrs):
    """The public convolution with these attributes."""

    def function(*inputs):
        window = (attrs["stride"], attrs["padding"], attrs["dilation"], attrs["groups"])
        return autograd.conv2d(autograd.ConvHandle(inputs[1].shape[2:], *window), *inputs)

    return function


def pooling_function(attrs, is_max, counted=False):
    """The public pooling with these attributes."""

    def function(x):
        window = (attrs["kernel"], attrs["stride"], attrs["padding"])
        handle = autograd.PoolingHandle(*window, is_max, count_include_pad=counted)
        return autograd.pooling_2d(handle, x)

    return function


for label, (x, w, changes) in CONVOLUTIONS.items():
    attrs = {**PLAIN, **changes}

    def convolve(x, w, b=None, attrs=attrs):
        return ref.conv2d(x, w, b, **attrs)

    y = convolve(np.zeros(x), np.zeros(w)).shape
    common = dict(label=label, scale=8)
    table.case(
        "conv2d",
        convolve,
        x,
        w,
        attrs=attrs,
        specials=NO_INF,
        gradient=conv2d_function(attrs),
        empty=(((0, *x[1:]), w),),
        bad=CONV_BAD if label == "" else (),
        **common,
    )
    table.case(
        "conv2d",
        convolve,
        x,
        w,
        (w[0],),
        attrs=attrs,
        label=f"{label}-bias",
        scale=8,
        specials=NO_INF,
        gradient=conv2d_function(attrs),
        bad=(Bad(SHAPE, shapes=(x, w, (w[0] + 1,))),),
    )
    table.case(
        "conv2d_grad_input",
        lambda dy, w, x=x, f=convolve: vjp(lambda x: f(x, w), [blank(dy, x)], 0, [dy]),
        y,
        w,
        attrs={**attrs, "size": x[2:]},
        specials=(),
        empty=(((0, *y[1:]), w),),
        bad=(Bad(SHAPE, shapes=(y, (w[0] + 1, *w[1:]))), Bad(DTYPE, dtypes=("float32", "float64"))),
        **common,
    )
    table.case(
        "conv2d_grad_weight",
        lambda dy, x, w=w, f=convolve: vjp(lambda w: f(x, w), [np.zeros(w)], 0, [dy]),
        y,
        x,
        attrs={**attrs, "kernel": w[2:]},
        specials=(),
        empty=(((0, *y[1:]), (0, *x[1:])),),
        bad=(Bad(SHAPE, shapes=((y[0] + 1, *y[1:]), x)), Bad(DTYPE, dtypes=("float32", "float64"))),
        **common,
    )
table.case(
    "conv2d",
    lambda x, w: ref.conv2d(x, w, **{**PLAIN, "padding": (1, 1, 1, 1)}),
    (4, 16, 14, 14),
    (32, 16, 3, 3),
    attrs={**PLAIN, "padding": (1, 1, 1, 1)},
    label="blocked",
    scale=20,
    specials=(),
    dtypes=WIDE,
)


def scaled(convolution):
    """A convolution, and its product with a scalar."""
    return {
        "inputs": 3,
        "producer": {"kind": convolution, "operands": (1, 2)},
        "links": ({"kind": {"op": "binary", "f": "mul"}, "operands": (3, 0)},),
        "outputs": (1,),
    }


for label, groups in (("", 1), ("groups", 2)):
    geometry = {**PLAIN, "padding": (1, 1, 1, 1), "groups": groups}
    table.case(
        "region",
        lambda k, x, w, geometry=geometry: k * ref.conv2d(x, w, **geometry),
        (1,),
        (3, 4, 5, 6),
        (2, 4 // groups, 3, 3),
        attrs=scaled({"op": "conv2d", **geometry}),
        label=f"conv2d-{label}",
        specials=(),
        scale=16,
        empty=(((1,), (0, 4, 5, 6), (2, 4 // groups, 3, 3)),),
        bad=(Bad(SHAPE, shapes=((1,), (3, 5, 5, 6), (2, 4 // groups, 3, 3))),),
    )
table.case(
    "region",
    lambda k, dy, w: (
        k * vjp(lambda x: ref.conv2d(x, w, **PLAIN), [np.zeros((2, 3, 5, 6))], 0, [dy])
    ),
    (1,),
    (2, 4, 3, 4),
    (4, 3, 3, 3),
    attrs=scaled({"op": "conv2d_grad_input", **PLAIN, "size": (5, 6)}),
    label="conv2d_grad_input",
    specials=(),
    scale=16,
    bad=(Bad(SHAPE, shapes=((1,), (2, 4, 3, 4), (5, 3, 3, 3))),),
)

# ---- pooling -------------------------------------------------------------------------------------

POOLS = {
    "": ((2, 3, 4, 6), {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0)}),
    "overlapping": ((1, 2, 5, 5), {"kernel": (3, 2), "stride": (1, 2), "padding": (0, 0, 0, 0)}),
    "padded": ((1, 2, 5, 6), {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1, 1, 1)}),
    "uneven": ((1, 2, 4, 5), {"kernel": (3, 3), "stride": (2, 1), "padding": (0, 1, 2, 0)}),
    "global": ((2, 3, 4, 4), {"kernel": (4, 4), "stride": (1, 1), "padding": (0, 0, 0, 0)}),
    "gaps": ((1, 1, 7, 7), {"kernel": (2, 2), "stride": (3, 3), "padding": (0, 0, 0, 0)}),
    "wide": ((1, 1, 18, 18), {"kernel": (17, 17), "stride": (1, 1), "padding": (0, 0, 0, 0)}),
}
for label, (x, attrs) in POOLS.items():
    index_dtype = "int32" if label == "wide" else "uint8"
    y = ref.max_pool2d(np.zeros(x), **attrs)[0].shape
    refused = (
        Bad(SHAPE, shapes=(x[1:],)),
        Bad(ValueError, shapes=((*x[:2], 0, 0),)),
        Bad(DTYPE, dtypes=("bool",)),
    )

    def max_pool(x, attrs=attrs):
        return ref.max_pool2d(x, **attrs)

    table.case(
        "max_pool2d",
        max_pool,
        x,
        attrs=attrs,
        label=label,
        out=(None, index_dtype),
        gradient=pooling_function(attrs, True),
        empty=(((0, *x[1:]),),),
        bad=refused,
    )
    table.case(
        "max_pool2d_grad",
        lambda dy, x, f=max_pool: vjp(lambda x: f(x)[0], [x], 0, [dy], step=1e-6),
        y,
        x,
        attrs={**attrs, "size": x[2:]},
        label=label,
        derive=lambda dy, x, f=max_pool: (dy, f(x)[1]),
        derived=(None, index_dtype),
        specials=(),
        scale=4,
        empty=(((0, *y[1:]), (0, *x[1:])),),
        bad=(Bad(SHAPE, shapes=(y, (*y[:3], y[3] + 1))),),
    )
    for counted in (True, False):
        pool = {**attrs, "count_include_pad": counted}
        name = "-".join(part for part in (label, "counted" if counted else "") if part)
        table.case(
            "avg_pool2d",
            lambda x, pool=pool: ref.avg_pool2d(x, **pool),
            x,
            attrs=pool,
            label=name,
            specials=NO_INF,
            scale=4,
            gradient=pooling_function(attrs, False, counted),
            empty=(((0, *x[1:]),),),
            bad=refused,
        )
        table.case(
            "avg_pool2d_grad",
            lambda dy, x=x, pool=pool: vjp(
                lambda x: ref.avg_pool2d(x, **pool), [blank(dy, x)], 0, [dy]
            ),
            y,
            attrs={**pool, "size": x[2:]},
            label=name,
            specials=(),
            scale=4,
            empty=(((0, *y[1:]),),),
            bad=(Bad(SHAPE, shapes=((*y[:3], y[3] + 1),)),),
        )
