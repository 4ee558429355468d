"""Batch and layer normalisation."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd, tensor

from . import references as ref
from .base import WIDE, Arg, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
NO_INF = (np.nan,)
table = Table()


def gradients_by(function, which):
    """The reference of a gradient operation, given (dy, *inputs): all gradients, by differences."""

    def reference(dy, *inputs):
        found = tuple(vjp(function, inputs, i, [dy]) for i in which)
        return found if len(found) > 1 else found[0]

    return reference


EPS = 1e-3
# Statistics and parameters of half-precision images are float32.
SCALE, POSITIVE = Arg((3,), 0.5, 2, dtype="wide"), Arg((3,), 0.4, 3, dtype="wide")
VECTOR = Arg((3,), dtype="wide")


def normalise(x, scale, bias):
    """Training's batch normalisation."""
    return ref.batch_norm(x, scale, bias, eps=EPS)


def inference(x, scale, bias, mean, var):
    """Evaluation's batch normalisation."""
    return ref.batch_norm(x, scale, bias, eps=EPS, mean=mean, var=var)


def rectified(x, scale, bias):
    """Training's batch normalisation, followed by ReLU."""
    return np.where(normalise(x, scale, bias) <= 0, 0.0, normalise(x, scale, bias))


def applied(x, mean, factor, term):
    """One pass with given statistics."""
    _, shape = ref.channels(x)
    mean, factor, term = (v.reshape(shape) for v in (mean, factor, term))
    return (x - mean) * factor + term


def rectified_sum(x, mean, factor, term, other):
    """The same plus another tensor, followed by ReLU."""
    y = applied(x, mean, factor, term) + other
    return np.where(y <= 0, 0.0, y)


def affine(x, scale):
    """Factor, and term for a bias of 0.4, with which training's batch normalisation maps x."""
    return scale / np.sqrt(ref.statistics(x)[1] + EPS), np.full(3, 0.4)


def training_function(x, scale, bias):
    """The public function in training; the running averages are ignored."""
    running = (tensor.zeros_like(scale), tensor.ones_like(scale))
    running = (autograd.cast(t, x.dtype) for t in running)
    return autograd.batchnorm_2d(autograd.BatchNormHandle(0.1, eps=EPS), x, scale, bias, *running)


def inference_function(x, scale, bias, mean, var):
    """The operator of evaluation, but recorded for gradients."""
    autograd.training = False
    operator = autograd._BatchNorm2d(autograd.BatchNormHandle(0.1, eps=EPS), mean, var)
    autograd.training = True
    return operator(x, scale, bias)[0]


for label, shape in {"": (4, 3, 3, 2), "matrix": (7, 3), "volume": (2, 3, 2, 2, 3)}.items():
    unfit = Bad(SHAPE, shapes=(shape, (4,), (3,)))
    table.case(
        "batch_norm",
        lambda x, scale, bias: (normalise(x, scale, bias), *ref.statistics(x)),
        shape,
        SCALE,
        VECTOR,
        attrs={"eps": EPS},
        label=label,
        out=(None, "wide", "wide"),
        specials=NO_INF,
        scale=8,
        gradient=training_function,
        large=((32, 3, 65, 33), (3,), (3,)) if label == "" else None,
        bad=(unfit, Bad(SHAPE, shapes=((3,), (3,), (3,))), Bad(DTYPE, dtypes=("int32",) * 3)),
    )
    table.case(
        "batch_norm_grad",
        lambda dy, x, scale: gradients_by(normalise, (0, 1, 2))(dy, x, scale, np.zeros(3)),
        shape,
        shape,
        SCALE,
        attrs={"eps": EPS},
        label=label,
        derive=lambda dy, x, scale: (dy, x, scale, *ref.statistics(x)),
        derived=(None, None, "wide", "wide", "wide"),
        out=(None, "wide", "wide"),
        specials=(),
        scale=20,
        bad=(Bad(SHAPE, shapes=(shape, (*shape[:-1], 9), (3,), (3,), (3,))),),
    )
    table.case(
        "batch_norm_statistics",
        lambda x, scale: (*ref.statistics(x), *affine(x, scale)),
        shape,
        SCALE,
        attrs={"eps": EPS},
        label=label,
        derive=lambda x, scale: (x, scale, np.full(3, 0.4)),
        derived=(None, "wide", "wide"),
        out=("wide",) * 4,
        specials=NO_INF,
        scale=8,
        bad=(unfit,),
    )
    for adds in (False, True):
        table.case(
            "normalize",
            rectified_sum if adds else applied,
            shape,
            VECTOR,
            SCALE,
            VECTOR,
            *([shape] if adds else []),
            attrs={"adds": adds, "relu": adds},
            label=f"{label}{'adds' if adds else ''}",
            specials=NO_INF,
            scale=8,
            bad=(Bad(SHAPE, shapes=(shape, (3,), (3,), (4,), *([shape] if adds else []))),),
        )
    table.case(
        "batch_norm_relu_grad",
        lambda dy, x, scale: gradients_by(rectified, (0, 1, 2))(dy, x, scale, np.full(3, 0.4)),
        shape,
        shape,
        SCALE,
        attrs={"eps": EPS},
        label=label,
        derive=lambda dy, x, scale: (dy, x, scale, *ref.statistics(x), *affine(x, scale)),
        derived=(None, None, *["wide"] * 5),
        out=(None, "wide", "wide"),
        specials=(),
        scale=20,
        bad=(Bad(SHAPE, shapes=(shape, shape, *[(3,)] * 4, (2,))),),
    )
    table.case(
        "batch_norm_inference",
        inference,
        shape,
        SCALE,
        VECTOR,
        VECTOR,
        POSITIVE,
        attrs={"eps": EPS},
        label=label,
        specials=NO_INF,
        scale=4,
        gradient=inference_function,
        wrt=(0, 1, 2),
        empty=(((0, *shape[1:]), (3,), (3,), (3,), (3,)),),
        bad=(Bad(SHAPE, shapes=(shape, (3,), (3,), (3,), (2,))),),
    )
    table.case(
        "batch_norm_inference_grad",
        lambda dy, x, scale, mean, var: gradients_by(inference, (0, 1, 2))(
            dy, x, scale, np.zeros(3), mean, var
        ),
        shape,
        shape,
        SCALE,
        VECTOR,
        POSITIVE,
        attrs={"eps": EPS},
        label=label,
        out=(None, "wide", "wide"),
        specials=(),
        scale=8,
        bad=(Bad(SHAPE, shapes=(shape, shape, (2,), (3,), (3,))),),
    )


def folded(axis):
    """Weights and bias equivalent to w, b and the batch normalisation that follows."""

    def reference(w, scale, bias, mean, var, b=0.0):
        factor = scale / np.sqrt(var + EPS)
        along = factor.reshape([-1 if i == axis else 1 for i in range(w.ndim)])
        return w * along, bias + (b - mean) * factor

    return reference


table.case(
    "batch_norm_factor",
    lambda scale, var: scale / np.sqrt(var + EPS),
    Arg((3,), 0.5, 2),
    Arg((3,), 0.4, 3),
    attrs={"eps": EPS},
    dtypes=WIDE,
    empty=(((0,), (0,)),),
    bad=(Bad(SHAPE, shapes=((3,), (4,))), Bad(DTYPE, dtypes=("float16", "float16"))),
)
for shape, axis, has_bias in (((3, 2, 2, 2), 0, False), ((4, 3), 1, True)):
    table.case(
        "fold_batch_norm",
        folded(axis),
        shape,
        Arg((3,), 0.5, 2),
        (3,),
        (3,),
        Arg((3,), 0.4, 3),
        *([(3,)] if has_bias else []),
        attrs={"eps": EPS, "axis": axis},
        label="bias" if has_bias else "",
        dtypes=WIDE,
        scale=4,
        views=False,
        bad=(Bad(SHAPE, shapes=(shape, *[(2,)] * (4 + has_bias))),),
    )
table.case(
    "running_average",
    lambda running, batch: 0.7 * running + 0.3 * 1.25 * batch,
    (5,),
    (5,),
    attrs={"momentum": 0.3, "factor": 1.25},
    updates=(0,),
    bad=(Bad(SHAPE, shapes=((5,), (4,))), Bad(DTYPE, dtypes=("float32", "float64"))),
)

# ---- rows ----------------------------------------------------------------------------------------


def with_statistics(x, *parameters):
    """Layer normalisation of rows, and their statistics."""
    inverse = 1 / np.sqrt(x.var(axis=1) + EPS)
    return ref.layer_norm(x, *parameters, eps=EPS), x.mean(axis=1), inverse


def over_images(x, scale, bias):
    """The public function over the last two axes."""
    x, scale, bias = (t.reshape((*t.shape[:-1], 2, 3)) for t in (x, scale, bias))
    return autograd.layer_norm(x, scale, bias, -2, EPS).reshape((-1, 6))


for label, count, public in (
    ("", 3, lambda *xs: autograd.layer_norm(*xs, eps=EPS)),
    ("axes", 3, over_images),
    ("unbiased", 2, lambda *xs: autograd.layer_norm(*xs, eps=EPS)),
):
    table.case(
        "layer_norm",
        with_statistics,
        *((7, 6), Arg((6,), 0.5, 2), (6,))[:count],
        attrs={"eps": EPS},
        label=label,
        out=(None, "wide", "wide"),
        specials=NO_INF,
        scale=8,
        gradient=public,
        empty=(((0, 6), (6,), (6,))[:count],),
        large=((130, 2100), (2100,), (2100,))[:count],
        bad=(
            Bad(SHAPE, shapes=((7, 6), (7,), (6,))[:count]),
            Bad(SHAPE, shapes=((6,), (6,), (6,))[:count]),
            Bad(DTYPE, dtypes=("float32", "float64", "float32")[:count]),
            Bad(DTYPE, dtypes=("int32",) * count),
        ),
    )
table.case(
    "layer_norm_grad",
    lambda dy, x, scale: ref.layer_norm_grad(dy, x, scale, eps=EPS),
    (7, 10),
    (7, 10),
    Arg((10,), 0.5, 2),
    derive=lambda dy, x, scale: (dy, x, scale, *with_statistics(x, scale)[1:]),
    derived=(None, None, None, "wide", "wide"),
    specials=(),
    scale=20,
    empty=(((0, 10), (0, 10), (10,)),),
    large=((130, 2100), (130, 2100), (2100,)),
    bad=(Bad(SHAPE, shapes=((7, 10), (7, 10), (10,), (7,), (10,))),),
)


def with_inverse(x, scale):
    """Root mean square normalisation of rows, and the inverse of their roots."""
    return ref.rms_norm(x, scale, eps=EPS), 1 / np.sqrt((x * x).mean(axis=1) + EPS)


def rms_over_images(x, scale):
    """The public function over the last two axes."""
    x, scale = (t.reshape((*t.shape[:-1], 2, 3)) for t in (x, scale))
    return autograd.rms_norm(x, scale, -2, EPS).reshape((-1, 6))


for label, public in (
    ("", lambda *xs: autograd.rms_norm(*xs, eps=EPS)),
    ("axes", rms_over_images),
):
    table.case(
        "rms_norm",
        with_inverse,
        (7, 6),
        Arg((6,), 0.5, 2),
        attrs={"eps": EPS},
        label=label,
        out=(None, "wide"),
        specials=NO_INF,
        scale=8,
        gradient=public,
        empty=(((0, 6), (6,)),),
        large=((130, 2100), (2100,)),
        bad=(
            Bad(SHAPE, shapes=((7, 6), (7,))),
            Bad(SHAPE, shapes=((6,), (6,))),
            Bad(DTYPE, dtypes=("float32", "float64")),
            Bad(DTYPE, dtypes=("int32", "int32")),
        ),
    )
table.case(
    "rms_norm_grad",
    lambda dy, x, scale: ref.rms_norm_grad(dy, x, scale, eps=EPS),
    (7, 10),
    (7, 10),
    Arg((10,), 0.5, 2),
    derive=lambda dy, x, scale: (dy, x, scale, with_inverse(x, scale)[1]),
    derived=(None, None, None, "wide"),
    specials=(),
    scale=20,
    empty=(((0, 10), (0, 10), (10,)),),
    large=((130, 2100), (130, 2100), (2100,)),
    bad=(Bad(SHAPE, shapes=((7, 10), (7, 10), (10,), (10,))),),
)
