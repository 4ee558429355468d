"""Convolution and pooling."""

import numpy as np
from numeric import transposed, vjp
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


def plain(axes):
    """The simplest geometry over so many spatial axes."""
    ones = (1,) * axes
    return {"stride": ones, "padding": (0,) * (2 * axes), "dilation": ones, "groups": 1}


PLAIN = plain(2)
CONVOLUTIONS = {  # x, w, attributes
    "": ((2, 3, 5, 6), (4, 3, 3, 3), {}),
    "one-by-one": ((2, 4, 3, 3), (5, 4, 1, 1), {}),
    "padded": ((1, 2, 5, 5), (3, 2, 3, 3), {"padding": (1, 1, 1, 1)}),
    "uneven": ((1, 2, 5, 4), (3, 2, 3, 2), {"padding": (1, 0, 2, 1)}),
    "strided": ((2, 2, 7, 6), (3, 2, 3, 3), {"stride": (2, 3), "padding": (1, 1, 1, 1)}),
    "dilated": ((1, 2, 7, 7), (2, 2, 3, 2), {"dilation": (2, 3), "padding": (1, 1, 1, 1)}),
    "groups": ((2, 4, 4, 5), (6, 2, 3, 3), {"groups": 2, "padding": (1, 1, 1, 1)}),
    "depthwise": ((1, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "stride": (2, 2)}),
    "stride-over-window": ((1, 2, 7, 6), (2, 2, 2, 2), {"stride": (3, 4)}),
    "window-over-image": ((1, 2, 2, 3), (2, 2, 4, 3), {"padding": (2, 1, 1, 0)}),
    "1d": ((2, 3, 7), (4, 3, 3), {}),
    "1d-all": (
        (2, 4, 9),
        (6, 2, 3),
        {"stride": (2,), "padding": (2, 1), "dilation": (2,), "groups": 2},
    ),
    "1d-depthwise": ((1, 4, 6), (4, 1, 2), {"groups": 4}),
    "3d": ((2, 3, 3, 4, 3), (2, 3, 2, 2, 2), {}),
    "3d-all": (
        (1, 4, 4, 5, 3),
        (4, 2, 2, 3, 1),
        {
            "stride": (2, 1, 2),
            "padding": (1, 1, 0, 0, 2, 1),
            "dilation": (1, 2, 1),
            "groups": 2,
        },
    ),
    "3d-depthwise": ((1, 3, 3, 3, 3), (3, 1, 2, 2, 2), {"groups": 3, "stride": (1, 2, 1)}),
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


def conv_function(attrs):
    """The public convolution with these attributes: SINGA's where there is one."""

    def function(*inputs):
        window = (attrs["stride"], attrs["padding"], attrs["dilation"], attrs["groups"])
        if inputs[0].rank != 4:
            return autograd.conv(*inputs, *(() if len(inputs) == 3 else (None,)), *window)
        return autograd.conv2d(autograd.ConvHandle(inputs[1].shape[2:], *window), *inputs)

    return function


def pooling_function(attrs, is_max, counted=False):
    """The public pooling with these attributes: SINGA's where there is one."""
    window = (attrs["kernel"], attrs["stride"], attrs["padding"])
    how = {"ceil_mode": attrs.get("ceil_mode", False)}

    def function(x):
        if x.rank == 4 and len(attrs) == 3:
            handle = autograd.PoolingHandle(*window, is_max, count_include_pad=counted)
            return autograd.pooling_2d(handle, x)
        if is_max:
            return autograd.max_pool(x, *window, attrs.get("dilation", 1), **how)
        divisor = attrs.get("divisor")
        how["dilation"] = attrs.get("dilation", 1)
        return autograd.avg_pool(
            x, *window, **how, count_include_pad=counted, divisor_override=divisor
        )

    return function


for label, (x, w, changes) in CONVOLUTIONS.items():
    attrs = {**plain(len(x) - 2), **changes}

    def convolve(x, w, b=None, attrs=attrs):
        return ref.conv(x, w, b, **attrs)

    y = convolve(np.zeros(x), np.zeros(w)).shape
    common = dict(label=label, scale=8)
    table.case(
        "conv",
        convolve,
        x,
        w,
        attrs=attrs,
        specials=NO_INF,
        gradient=conv_function(attrs),
        empty=(((0, *x[1:]), w),),
        bad=CONV_BAD if label == "" else (),
        **common,
    )
    table.case(
        "conv",
        convolve,
        x,
        w,
        (w[0],),
        attrs=attrs,
        label=f"{label}-bias",
        scale=8,
        specials=NO_INF,
        gradient=conv_function(attrs),
        bad=(Bad(SHAPE, shapes=(x, w, (w[0] + 1,))),),
    )
    table.case(
        "conv_grad_input",
        lambda dy, w, x=x, f=convolve: transposed(lambda x: f(x, w), (len(dy), *x[1:]), dy),
        y,
        w,
        attrs={**attrs, "size": x[2:]},
        specials=(),
        empty=(((0, *y[1:]), w),),
        bad=(Bad(SHAPE, shapes=(y, (w[0] + 1, *w[1:]))), Bad(DTYPE, dtypes=("float32", "float64"))),
        **common,
    )
    table.case(
        "conv_grad_weight",
        lambda dy, x, w=w, f=convolve: transposed(lambda w: f(x, w), w, dy),
        y,
        x,
        attrs={**attrs, "kernel": w[2:]},
        specials=(),
        empty=(((0, *y[1:]), (0, *x[1:])),),
        bad=(Bad(SHAPE, shapes=((y[0] + 1, *y[1:]), x)), Bad(DTYPE, dtypes=("float32", "float64"))),
        **common,
    )
table.case(
    "conv",
    lambda x, w: ref.conv(x, w, **{**PLAIN, "padding": (1, 1, 1, 1)}),
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


for axes, groups in ((2, 1), (2, 2), (1, 1), (3, 2)):
    images, filters = (4, 5, 6, 3)[: 1 + axes], (4 // groups, 3, 3, 3)[: 1 + axes]
    geometry = {**plain(axes), "padding": (1,) * 2 * axes, "groups": groups}
    table.case(
        "region",
        lambda k, x, w, geometry=geometry: k * ref.conv(x, w, **geometry),
        (1,),
        (3, *images),
        (2, *filters),
        attrs=scaled({"op": "conv", **geometry}),
        label=f"conv{axes}d" + ("-groups" if groups > 1 else ""),
        specials=(),
        scale=16,
        empty=(((1,), (0, *images), (2, *filters)),),
        bad=(Bad(SHAPE, shapes=((1,), (3, 5, *images[1:]), (2, *filters))),),
    )
for axes in (1, 2, 3):
    size, made, filters = (5, 6, 4)[:axes], (3, 4, 2)[:axes], (3,) * (1 + axes)
    table.case(
        "region",
        lambda k, dy, w, axes=axes, size=size: (
            k * transposed(lambda x: ref.conv(x, w, **plain(axes)), (2, 3, *size), dy)
        ),
        (1,),
        (2, 4, *made),
        (4, *filters),
        attrs=scaled({"op": "conv_grad_input", **plain(axes), "size": size}),
        label=f"conv{axes}d_grad_input",
        specials=(),
        scale=16,
        bad=(Bad(SHAPE, shapes=((1,), (2, 4, *made), (5, *filters))),),
    )

# ---- pooling -------------------------------------------------------------------------------------

POOLS = {
    "": ((2, 3, 4, 6), {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0, 0, 0)}),
    "overlapping": ((1, 2, 5, 5), {"kernel": (3, 2), "stride": (1, 2), "padding": (0, 0, 0, 0)}),
    "padded": ((1, 2, 5, 6), {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1, 1, 1)}),
    "uneven": ((1, 2, 4, 5), {"kernel": (3, 3), "stride": (2, 1), "padding": (0, 1, 2, 0)}),
    "global": ((2, 3, 4, 4), {"kernel": (4, 4), "stride": (1, 1), "padding": (0, 0, 0, 0)}),
    "gaps": ((1, 1, 7, 7), {"kernel": (2, 2), "stride": (3, 3), "padding": (0, 0, 0, 0)}),
    "ceil": (
        (1, 2, 6, 4),
        {"kernel": (3, 2), "stride": (2, 3), "padding": (1, 0, 1, 1), "ceil_mode": True},
    ),
    "1d": ((2, 3, 8), {"kernel": (3,), "stride": (2,), "padding": (1, 0)}),
    "1d-ceil": ((2, 2, 6), {"kernel": (2,), "stride": (4,), "padding": (0, 1), "ceil_mode": True}),
    "3d": ((1, 2, 3, 4, 5), {"kernel": (2, 3, 2), "stride": (1, 1, 2), "padding": (0,) * 6}),
    "3d-ceil": (
        (1, 2, 4, 3, 4),
        {
            "kernel": (3, 2, 2),
            "stride": (2, 2, 3),
            "padding": (1, 0, 1, 1, 1, 0),
            "ceil_mode": True,
        },
    ),
    "wide": ((1, 1, 18, 18), {"kernel": (17, 17), "stride": (1, 1), "padding": (0, 0, 0, 0)}),
    "dilated": (
        (1, 2, 7, 6),
        {"kernel": (2, 3), "stride": (2, 1), "padding": (1, 0, 0, 2), "dilation": (3, 2)},
    ),
    "1d-dilated": (
        (1, 2, 9),
        {"kernel": (3,), "stride": (2,), "padding": (1, 2), "dilation": (2,), "ceil_mode": True},
    ),
    "3d-dilated": (
        (1, 2, 5, 3, 4),
        {"kernel": (2, 2, 2), "stride": (1, 1, 1), "padding": (0,) * 6, "dilation": (3, 1, 2)},
    ),
}
for label, (x, attrs) in POOLS.items():
    index_dtype = "int32" if label == "wide" else "uint8"
    y = ref.max_pool(np.zeros(x), **attrs)[0].shape
    refused = (
        Bad(SHAPE, shapes=(x[1:],)),
        Bad(ValueError, shapes=((*x[:2], *(0,) * (len(x) - 2)),)),
        Bad(DTYPE, dtypes=("bool",)),
    )

    def max_pool(x, attrs=attrs):
        return ref.max_pool(x, **attrs)

    table.case(
        "max_pool",
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
        "max_pool_grad",
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
        bad=(Bad(SHAPE, shapes=(y, (*y[:-1], y[-1] + 1))),),
    )
    for counted, divisor in ((True, None), (False, None), (False, 3)):
        pool = {**attrs, "count_include_pad": counted}
        pool.update({"divisor": divisor} if divisor else {})
        part = "divided" if divisor else "counted" if counted else ""
        name = "-".join(part for part in (label, part) if part)
        table.case(
            "avg_pool",
            lambda x, pool=pool: ref.avg_pool(x, **pool),
            x,
            attrs=pool,
            label=name,
            specials=NO_INF,
            scale=4,
            gradient=pooling_function(
                {**attrs, **({"divisor": divisor} if divisor else {})}, False, counted
            ),
            empty=(((0, *x[1:]),),),
            bad=refused,
        )
        table.case(
            "avg_pool_grad",
            lambda dy, x=x, pool=pool: vjp(
                lambda x: ref.avg_pool(x, **pool), [blank(dy, x)], 0, [dy]
            ),
            y,
            attrs={**pool, "size": x[2:]},
            label=name,
            specials=(),
            scale=4,
            empty=(((0, *y[1:]),),),
            bad=(Bad(SHAPE, shapes=((*y[:-1], y[-1] + 1),)),),
        )
