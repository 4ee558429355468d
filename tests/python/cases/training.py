"""Optimizer updates, random numbers, dropout."""

import numpy as np
from singa_rs import _core

from .base import FLOATS, Arg, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
P = (4, 5)
table = Table()


def number(value):
    """A hyperparameter: a float32 tensor of shape (1,)."""
    return Arg((1,), fixed=(value,), dtype="float32")


LR, DECAY = number(0.1), number(0.01)


def sgd(momentum, nesterov, weight_decay):
    """Sutskever et al. 2013, with PyTorch's dampening."""

    def update(param, grad, lr, *rest):
        rest = list(rest)
        if weight_decay:
            grad = grad + rest.pop(0) * param
        if not momentum:
            return param - lr * grad
        buffer, rate, dampening = rest
        buffer = rate * buffer + (1 - dampening) * grad
        step = grad + rate * buffer if nesterov else buffer
        return param - lr * step, buffer

    return update


def decayed(weight_decay, param, grad, rest):
    """The gradient with weight decay, whose factor comes last."""
    return grad + rest[-1] * param if weight_decay else grad


def rmsprop(weight_decay):
    """Tieleman and Hinton 2012, epsilon inside the root."""

    def update(param, grad, lr, average, rho, eps, *rest):
        grad = decayed(weight_decay, param, grad, rest)
        average = rho * average + (1 - rho) * grad * grad
        return param - lr * grad / np.sqrt(average + eps), average

    return update


def adagrad(weight_decay):
    """Duchi et al. 2011, epsilon inside the root."""

    def update(param, grad, lr, history, eps, *rest):
        grad = decayed(weight_decay, param, grad, rest)
        history = history + grad * grad
        return param - lr * grad / np.sqrt(history + eps), history

    return update


def lion(weight_decay):
    """Chen et al. 2023."""

    def update(param, grad, lr, m, beta1, beta2, *rest):
        sign = np.sign(beta1 * m + (1 - beta1) * grad)
        decay = rest[-1] * param if weight_decay else 0
        return param - lr * (sign + decay), beta2 * m + (1 - beta2) * grad

    return update


def adam(decoupled, weight_decay):
    """Kingma and Ba 2015; decoupled: Loshchilov and Hutter 2019."""

    def update(param, grad, lr, m, v, beta1, beta2, eps, step, *rest):
        t = step + 1
        if decoupled and weight_decay:
            param = param * (1 - lr * rest[-1])
        elif weight_decay:
            grad = grad + rest[-1] * param
        m = beta1 * m + (1 - beta1) * grad
        v = beta2 * v + (1 - beta2) * grad * grad
        unit = (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
        return param - lr * unit, m, v

    return update


def of_product(update):
    """An update whose gradient is the product of the second argument and the last one."""
    return lambda param, a, *rest: update(param, a @ rest[-1], *rest[:-1])


UNFIT = Bad(SHAPE, shapes=(P, (5, 4)))


def optimizer(f, reference, *args, updates, label, **attrs):
    """A case of an update; float64 only agrees to float32, the dtype of hyperparameters."""
    shapes = tuple(arg.shape if isinstance(arg, Arg) else arg for arg in args)
    table.case(
        "update",
        reference,
        *args,
        attrs={"f": f, **attrs},
        label=f"{f}-{label}",
        updates=updates,
        specials=(np.nan,),
        scale=4,
        large=tuple((513, 257) if shape == P else shape for shape in shapes),
        empty=(tuple((0, 3) if shape == P else shape for shape in shapes),),
        bad=(
            Bad(SHAPE, shapes=(P, (5, 4), *shapes[2:])),
            Bad(SHAPE, shapes=(P, P, (2,), *shapes[3:])),
        ),
    )


A, B = (P[0], 5), (5, P[1])
for update, reference, extra in (
    (
        {"op": "update", "f": "sgd", "momentum": True, "nesterov": True},
        sgd(True, True, False),
        [0.9, 0.25],
    ),
    ({"op": "update", "f": "rmsprop"}, rmsprop(False), [0.9, 1e-3]),
):
    table.case(
        "region",
        of_product(reference),
        P,
        A,
        LR,
        Arg(P, 0.1, 2, dtype="wide"),
        *map(number, extra),
        B,
        attrs={
            "inputs": 7,
            "producer": {"kind": {"op": "matmul"}, "operands": (1, 6)},
            "consumer": {
                "kind": {**update, "weight_decay": False},
                "operands": (0, 7, 2, 3, 4, 5),
            },
            "outputs": (1, 2),
        },
        label=f"update-{update['f']}",
        updates=(0, 3),
        specials=(np.nan,),
        scale=16,
        large=((513, 257), (513, 9), (1,), (513, 257), (1,), (1,), (9, 257)),
        empty=(((0, 3), (0, 5), (1,), (0, 3), (1,), (1,), (5, 3)),),
        bad=(
            Bad(SHAPE, shapes=(P, A, (1,), P, (1,), (1,), (6, P[1]))),
            Bad(SHAPE, shapes=(P, A, (1,), P, (1,), (1,), (5, P[1] + 1))),
        ),
    )

STATE = Arg(P, 0.1, 2, dtype="wide")
MOMENT = Arg(P, dtype="wide")
for wd in (False, True):
    extra, suffix = ((DECAY,), "decay") if wd else ((), "")
    for momentum, nesterov in ((False, False), (True, False), (True, True)):
        moment = (MOMENT, number(0.9), number(0.25)) if momentum else ()
        label = "-".join(
            part for part in ("momentum" * momentum, "nesterov" * nesterov, suffix) if part
        )
        optimizer(
            "sgd",
            sgd(momentum, nesterov, wd),
            Arg(P),
            Arg(P),
            LR,
            *extra,
            *moment,
            updates=(0, 3 + wd) if momentum else (0,),
            label=label,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=wd,
        )
    optimizer(
        "rmsprop",
        rmsprop(wd),
        Arg(P),
        Arg(P),
        LR,
        STATE,
        number(0.9),
        number(1e-3),
        *extra,
        updates=(0, 3),
        label=suffix,
        weight_decay=wd,
    )
    optimizer(
        "lion",
        lion(wd),
        Arg(P),
        Arg(P),
        LR,
        MOMENT,
        number(0.9),
        number(0.99),
        *extra,
        updates=(0, 3),
        label=suffix,
        weight_decay=wd,
    )
    optimizer(
        "adagrad",
        adagrad(wd),
        Arg(P),
        Arg(P),
        LR,
        STATE,
        number(1e-3),
        *extra,
        updates=(0, 3),
        label=suffix,
        weight_decay=wd,
    )
    for decoupled in (False, True):
        optimizer(
            "adam",
            adam(decoupled, wd),
            Arg(P),
            Arg(P),
            LR,
            MOMENT,
            STATE,
            number(0.9),
            number(0.99),
            number(1e-3),
            Arg((1,), fixed=(3,), dtype="int32"),
            *extra,
            updates=(0, 3, 4),
            label="-".join(part for part in ("decoupled" * decoupled, suffix) if part),
            decoupled=decoupled,
            weight_decay=wd,
        )

# ---- random numbers ------------------------------------------------------------------------------


def within(low, high):
    """Checks a fill: its range, and that its values differ."""

    def check(_inputs, outputs):
        (y,) = outputs
        assert low <= y.min() and y.max() <= high and len(np.unique(y)) > 1

    return check


for label, (dist, low, high) in {
    "uniform": ({"uniform": {"low": -1.0, "high": 3.0}}, -1, 3),
    "normal": ({"normal": {"mean": 1.0, "std": 0.5}}, -4, 6),
    "bernoulli": ({"bernoulli": {"p": 0.3}}, 0, 1),
}.items():
    for dtype in FLOATS:
        table.case(
            "random",
            None,
            attrs={"dist": dist, "shape": (20, 30), "dtype": dtype},
            label=f"{label}-{dtype}",
            dtypes=(dtype,),
            check=within(low, high),
            specials=(),
        )


def dropped(ratio):
    """Checks dropout: kept values are scaled, the others zero, and the mask says which."""

    def check(inputs, outputs):
        (x,), (y, mask) = inputs, outputs
        np.testing.assert_allclose(y, np.where(mask, x / (1 - ratio), 0), rtol=2e-2)
        assert x.size == 0 or 0 < mask.mean() < 1

    return check


table.case(
    "dropout",
    None,
    (20, 30),
    attrs={"ratio": 0.4},
    out=(None, "bool"),
    check=dropped(0.4),
    specials=(),
    empty=(((0, 3),),),
    bad=(Bad(DTYPE, dtypes=("int32",)),),
)
table.case(
    "dropout_grad",
    lambda dy, mask: np.where(mask, dy / 0.6, 0),
    P,
    Arg(P, 0, 1, dtype="bool"),
    attrs={"ratio": 0.4},
    specials=(),
    empty=(((0, 3), (0, 3)),),
    bad=(Bad(SHAPE, shapes=(P, (5, 4))), Bad(DTYPE, dtypes=("float32", "float32"))),
)
table.case(
    "advance",
    lambda state: state + np.array([0, 5]),
    Arg((2,), 0, 9, dtype="int64"),
    attrs={"by": 5},
    dtypes=("int64",),
    updates=(0,),
    specials=(),
    views=False,
    bad=(Bad(SHAPE, shapes=((3,),)), Bad(SHAPE, dtypes=("float32",))),
)
