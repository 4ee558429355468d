"""What functions give that NumPy and PyTorch have under the same names, and where it differs."""

import functools
import inspect
import itertools
import re

import numpy as np
from singa_rs import autograd, tensor
from singa_rs.tensor import Tensor, from_numpy

A = np.array([[0.5, -1.25, 2.0], [3.0, 4.5, -0.75]])
B = np.array([[2.0, 1.0, 0.5], [1.5, -2.0, 3.0]])
C = np.arange(24.0).reshape(2, 3, 4) / 7 - 1
V = np.array([0.3, -0.2, 1.1])
I = np.array([1, 0])  # noqa: E741
J = np.array([[0, 1, 1], [1, 0, 0]])
M = A > 0
S = np.array([[2.0, 0.5], [0.5, 1.0]])
PAIRS = ((1, 1), (0, 0))

ARRAYS = [A, B, C, V, I, J, M, S, [A, B]]
OTHERS = [0, 1, 2, 3, -1, 0.5, True, False, (0, 1), (1, 0), (2, 3), [1], None, PAIRS]
OTHERS += ["constant", "float64", "sum", "ij,ij->i"]
POOL = [*ARRAYS, *OTHERS]
#: What stands first, and third, in calls with three arguments.
FIRST, THIRD = [A, C, M, 0, 2, (2, 3)], [0, 1, A, B, -1, True, 0.5, (0, 1), "float64"]


def calls(first):
    """Arguments of all kinds in every order, up to three of them; `first` restricts the first."""
    yield from ((one,) for one in first)
    yield from itertools.product(first, POOL)
    yield from itertools.product([one for one in first if _is_in(one, FIRST)], POOL, THIRD)


def _is_in(one, values):
    return any(one is value for value in values)


def ours(value):
    """A value of NumPy's as one of this package."""
    if isinstance(value, np.ndarray):
        kinds = {"b": "bool", "f": "float64", "i": "int64"}
        return from_numpy(value.copy(), dtype=kinds[value.dtype.kind])
    return [ours(one) for one in value] if _is_in(value, ARRAYS) else value


def copied(value):
    if isinstance(value, np.ndarray):
        return value.copy()
    return [one.copy() for one in value] if _is_in(value, ARRAYS) else value


def as_arrays(made):
    """A result as an array, or a list of them."""
    if isinstance(made, (list, tuple)):
        return [as_arrays(one) for one in made]
    return None if made is None else np.asarray(made)


def same(a, b):
    if isinstance(a, list) or isinstance(b, list):
        both = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return both and all(map(same, a, b))
    if isinstance(a, Exception) or isinstance(b, Exception):
        return False
    if a is None or b is None or a.shape != b.shape:
        return a is b
    if a.dtype.kind not in "biuf" or b.dtype.kind not in "biuf":
        return str(a) == str(b)
    return np.allclose(a.astype(float), b.astype(float), 1e-5, 1e-6, equal_nan=True)


# ---- where another rule than NumPy's holds -------------------------------------------------------


def counted(theirs, args):
    """Bools are integers in arithmetic, and floats in functions of floats (COMPAT, decision 8)."""
    return theirs(*(_as_ints(one) for one in args))


def _as_ints(value):
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return value.astype(np.int32)
    return int(value) if isinstance(value, bool) else value


def _stacked(theirs, args):
    return np.stack([np.asarray(one) for one in theirs(*args)])


def _pair(_, args):
    x, along = np.asarray(args[0]), args[1] if len(args) > 1 else -1
    x, along = (x.ravel(), 0) if along is None else (x, int(along))
    order = np.argsort(x, along, kind="stable")
    return [np.take_along_axis(x, order, along), order]


def _away(_, args):
    return np.trunc(args[0] + np.copysign(0.5, args[0]))


def _one_over(_, args):
    with np.errstate(all="ignore"):
        return 1 / args[0].astype(float)


def _singas_where(_, args):
    return np.where(args[2], args[0], args[1])


def _stable(theirs, args):
    return theirs(*args, kind="stable")


#: Functions whose results differ from NumPy's, the rule that they follow, and its reason. What the
#: rule does not give either is wrong.
RULES = {
    "autograd.sort": (_pair, "PyTorch's pair of values and indices"),
    "Tensor.sort": (_pair, "PyTorch's; NumPy's method works in place"),
    "autograd.nonzero": (_stacked, "ONNX's matrix, whose rows are NumPy's arrays"),
    "autograd.shape": (_stacked, "ONNX's tensor of the extents"),
    "tensor.tril_indices": (_stacked, "PyTorch's matrix, whose rows are NumPy's arrays"),
    "tensor.triu_indices": (_stacked, "PyTorch's matrix, whose rows are NumPy's arrays"),
    "autograd.round": (_away, "SINGA's, half away from zero; the method is NumPy's"),
    "autograd.reciprocal": (_one_over, "integers become floats, PyTorch's"),
    "autograd.where": (_singas_where, "SINGA's order, where a mask is third (decision 29)"),
    "autograd.argsort": (_stable, "of equal elements the first is first"),
    "Tensor.argsort": (_stable, "of equal elements the first is first"),
}
#: Results that are not unique: compared by what holds of them in their own tests.
NOT_UNIQUE = {"qr", "svd", "eigh", "lstsq", "pinv", "pinverse", "argpartition", "interp"}
RANDOM = re.compile("rand|normal|gaussian|bernoulli|uniform|dropout|multinomial|empty|gumbel")


def namesakes():
    """By label: the function, NumPy's of that name, and the first arguments to try."""
    found = {}
    for home in (tensor, autograd):
        for name, one in vars(home).items():
            if not name.startswith("_") and inspect.isfunction(one) and _is_compared(name):
                theirs = getattr(np, name, None) or getattr(np.linalg, name, None)
                if callable(theirs):
                    label = f"{home.__name__.rpartition('.')[2]}.{name}"
                    found[label] = one, theirs, POOL
    for name in dir(Tensor):
        if not name.startswith("_") and _is_compared(name) and hasattr(np.ndarray, name):
            if callable(getattr(np.ndarray, name)) and inspect.isfunction(getattr(Tensor, name)):
                one = functools.partial(_method, name)
                found[f"Tensor.{name}"] = one, one, [A, C, V, M, J, S]
    return found


def _is_compared(name):
    return name not in NOT_UNIQUE and not RANDOM.search(name)


def _method(name, x, *args, **kwargs):
    return getattr(x, name)(*args, **kwargs)
