"""Calls with wrong arguments, and what they may raise."""

import inspect
import itertools
import re
import warnings

import numpy as np
from singa_rs import (
    CheckpointError,
    DeviceError,
    DTypeError,
    GraphError,
    OutOfMemoryError,
    ShapeError,
    device,
    tensor,
)
from singa_rs.tensor import Placeholder, Tensor

OWN = (ShapeError, DTypeError, DeviceError, GraphError, CheckpointError, OutOfMemoryError)


def of(*shape, dtype="float32"):
    return lambda: Tensor(shape, dtype=dtype)


def ones(*shape):
    return lambda: tensor.ones(shape, dtype="int32")


def just(value):
    return lambda: value


class Thing:
    """An object that no function accepts."""

    def __repr__(self):
        return "a thing"


#: Factories, as each call gets a new value.
WRONG = [
    lambda value=value: value
    for value in (
        None, 3, 0, -1, 1.5, float("nan"), float("inf"), 10**30, -(10**30), "x", "", b"x", 1j, True,
        (), [None], ["a"], [1, 2], [1.5], Thing(), len, np.float32(3), slice(1), Ellipsis, range(3),
        Tensor, tensor.float32, device.get_default_device(),
    )
]  # fmt: skip
WRONG += [list, dict, set, lambda: np.zeros(0), lambda: np.zeros((2, 2)), lambda: np.array("x")]
WRONG += [
    lambda: np.array([None]),
    lambda: Tensor((0,)),
    lambda: Tensor(()),
    lambda: Tensor((2, 3)),
]
WRONG += [lambda: Tensor((3,), dtype=tensor.int32), lambda: Placeholder((2, 3))]
WRONG += [lambda: [Tensor((2, 3))], lambda: [Tensor((2, 3)), Tensor((0,))]]


def check(names, call, args, kwargs):
    """Calls a function; any exception must be the package's own or name the operation (`names`)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = call(*args, **kwargs)
            if inspect.isgenerator(made):
                list(itertools.islice(made, 2))
    except OWN:
        return
    except (TypeError, ValueError, NotImplementedError) as error:
        kind, text = type(error), str(error)
        assert kind in (TypeError, ValueError, NotImplementedError), f"{kind.__name__}: {text}"
        is_named = any(re.search(rf"(?i)\b{re.escape(name)}\b", text) for name in names)
        assert is_named or re.match(r"[\w.()\[\]]+( \w+)?: ", text), f"{names}: {text}"


def cases(function, good):
    """Arguments and keywords: a wrong value in each position, the others as in `good`."""
    parameters = list(inspect.signature(function).parameters.values())
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in plain if p.default is p.empty]
    good = [*good, *[lambda: Tensor((2, 3))] * (len(needed) - len(good))][: len(needed)]
    for wrong in WRONG:
        yield [wrong() for _ in needed], {}
        for i in range(len(needed)):
            yield [wrong() if j == i else make() for j, make in enumerate(good)], {}
        for one in parameters:
            if one not in needed and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
                yield [make() for make in good], {one.name: wrong()}
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            yield [*[make() for make in good], wrong(), wrong()], {}
    yield [], {}
    yield [Tensor((2, 3))] * (len(plain) + 1), {}


def hold(function, names, good=(), fresh=None):
    """Checks a function with wrong values in each position; `fresh` makes one for each call."""
    for args, kwargs in cases(function, good):
        check(names, function if fresh is None else fresh(), args, kwargs)
