"""Arguments: what fits a parameter by its name, and what some functions need in addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from singa_rs import autograd, layer

from .. import motifs, values
from ..catalogue import Entry
from . import (  # noqa: F401 - they fill the table
    arrays,
    functions,
    gates,
    layers,
    losses,
    names,
    networks,
    operators,
    places,
    products,
    recurrent,
    views,
    windows,
)
from .registry import RECIPES

if TYPE_CHECKING:
    from ..draw import Draw

Recipe = Callable[["Draw", str], str]


def _axis(d: Draw, x: str) -> str:
    rank = d.value(x).rank
    return str(d.rng.randint(-rank, rank - 1)) if rank else "0"


def _axes(d: Draw, x: str) -> str:
    rank = d.value(x).rank
    what = d.rng.random()
    if what < 0.2 or not rank:
        return "None"
    if what < 0.6:
        return str(d.rng.randrange(rank))
    return repr(tuple(sorted(d.rng.sample(range(rank), d.rng.randint(1, rank)))))


def _shape(d: Draw, x: str) -> str:
    """Another shape with as many elements, sometimes with one extent left to be inferred."""
    made = list(values.factorings(d.rng, d.value(x).numel))
    if len(d.worlds) > 1 or d.rng.random() < 0.3:
        made[0 if len(d.worlds) > 1 else d.rng.randrange(len(made))] = -1
    return repr(tuple(made))


def _permutation(d: Draw, x: str) -> str:
    order = list(range(d.value(x).rank))
    d.rng.shuffle(order)
    return repr(tuple(order))


def _beside(d: Draw, x: str) -> str:
    """A second operand for a tensor: a tensor that broadcasts, a scalar, an array."""
    what, shape = d.rng.random(), d.value(x).shape
    if what < 0.35:
        fits = [n for n in d.pool if _broadcasts(d.value(n).shape, shape)]
        if fits:
            return d.rng.choice(fits)
    if what < 0.55:
        return d.rng.choice(values.SCALARS)
    if what < 0.7:
        return d.parameter(values.broadcastable(d.rng, shape))
    if what < 0.8 and shape and shape[-1] > 1:
        return f"{x}.{d.rng.choice(['sum', 'mean', 'max'])}(-1, keepdims=True)"
    return values.constant(d.rng, values.broadcastable(d.rng, shape), d.seed())


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b), strict=False))


def _tensor(d: Draw, x: str) -> str:
    """A tensor, even where an array or a number would do."""
    return d.any() or "x"


def _same(d: Draw, x: str) -> str:
    """A tensor of the same shape."""
    shape, dtype = d.value(x).shape, d.value(x).dtype
    fits = [n for n in d.pool if d.value(n).shape == shape and d.value(n).dtype == dtype]
    if fits and d.rng.random() < 0.6:
        return d.rng.choice(fits)
    return d.parameter(shape)


def _several(d: Draw, x: str) -> str:
    count = d.rng.randint(1, 3)
    return f"[{', '.join([x] + [_same(d, x) for _ in range(count)])}]"


def _choice(*texts: str) -> Recipe:
    return lambda d, x: d.rng.choice(texts)


def _dtype(d: Draw, x: str) -> str:
    return repr(d.rng.choice(values.DTYPES[:4] * 3 + values.DTYPES))


def _reduced_or_joined(d: Draw, name: str) -> str:
    """Arguments of functions that either reduce one tensor or combine several elementwise."""
    x, what = _tensor(d, ""), d.rng.random()
    if what < 0.6 or not d.value(x).rank:
        joined = _several(d, x)[1:-1] if what < 0.6 else x
        return f"autograd.{name}({joined})"
    axis = f"axis={_axes(d, x)}, keepdims=True" if what < 0.8 else _axis(d, x)
    return f"autograd.{name}({x}, {axis})"


for _name in ("sum", "mean", "max", "min"):
    RECIPES[f"autograd.{_name}"] = lambda d, name=_name: _reduced_or_joined(d, name)

_NUMBER = _choice("0.5", "0.1", "1.5", "-0.5", "1", "0.25")

#: By the parameter's name. The second argument is the text of the first tensor.
PARAMETERS: dict[str, Recipe] = {
    **dict.fromkeys(("x", "t", "self", "tensor", "M", "A", "pos"), _tensor),
    **dict.fromkeys(("a", "b", "lhs", "rhs", "y"), _beside),
    **dict.fromkeys(("neg", "ret", "out"), _same),
    **dict.fromkeys(("xs", "tensors"), _several),
    "slope": lambda d, x: d.parameter(d.value(x).shape[-1:]),
    "axis": _axis,
    "axes": _axes,
    "keepdims": _choice("True", "False", "1", "0"),
    "shape": _shape,
    "dtype": _dtype,
    "to": _dtype,
    "min": _choice("-0.5", "None", "0", "-1.0"),
    "max": _choice("0.5", "None", "1", "2.0"),
    "alpha": _NUMBER,
    "beta": _NUMBER,
    "gamma": _NUMBER,
    "value": _NUMBER,
    "ratio": _choice("0.5", "0.1", "0.0", "0.9"),
    "seed": _choice("3", "None"),
    "inplace": _choice("True", "False"),
    "p": _choice("0.5", "0.2"),
    "mean": _choice("0.0", "1.0"),
    "std": _choice("1.0", "0.1"),
    "low": _choice("0.0", "-1.0"),
    "high": _choice("1.0", "2.0"),
    "repeats": _choice("2", "3", "1"),
    "mode": _choice("'DCR'", "'CRD'"),
    "blocksize": _choice("2", "1"),
    "data_format": _choice("'channels_first'", "'channels_last'"),
    "out_features": lambda d, x: str(d.width()),
    "bias": _choice("True", "False"),
    "activation": _choice("'RELU'", "'TANH'", "'SIGMOID'", "'NOTSET'", "'GELU'"),
    "kernel_init": _choice("'he_uniform'", "'glorot_uniform'", "'gaussian'", "'he_normal'"),
    "bias_init": _choice("'zeros'", "'ones'", "'uniform'"),
    "momentum": _choice("0.1", "0.9", "0.5"),
    "eps": _choice("1e-5", "1e-3"),
    "nb_kernels": _choice("2", "4", "6", "1"),
    "kernel_size": _choice("1", "2", "3", "(2, 1)", "(1, 3)"),
    "stride": _choice("1", "2", "(1, 2)"),
    "padding": _choice("0", "1", "(1, 0)"),
    "dilation": _choice("1", "2"),
    "group": _choice("1", "2"),
    "pad_mode": _choice("'NOTSET'", "'SAME_UPPER'", "'SAME_LOWER'", "'VALID'"),
    "transA": _choice("0", "1", "True", "False"),
    "transB": _choice("0", "1", "True", "False"),
    "is_max": _choice("True", "False"),
    "input_dim": _choice("5", "7"),
    "output_dim": _choice("3", "4"),
    "initializer": _choice("'gaussian'", "'uniform'"),
    "approximate": _choice("'none'", "'tanh'"),
}
#: Parameters that mean something else in some functions.
BY_OWNER: dict[tuple[str, str], Recipe] = {
    ("autograd.add_all", "xs"): lambda d, x: _several(d, _tensor(d, ""))[1:-1],
    ("autograd.transpose", "shape"): _permutation,
    ("autograd.Transpose()", "perm"): _permutation,
    ("autograd.leakyrelu", "a"): _NUMBER,
    ("autograd.LeakyRelu()", "a"): _NUMBER,
    ("Tensor.leakyrelu", "a"): _NUMBER,
    ("layer.LeakyReLU", "a"): _NUMBER,
    ("tensor.transpose", "axes"): _permutation,
    ("autograd.ranking_loss", "M"): _NUMBER,
    ("autograd.RankingLoss()", "M"): _NUMBER,
    ("layer.RankingLoss", "M"): _NUMBER,
    ("tensor.eq", "x"): _beside,
    ("tensor.lt", "x"): _beside,
    ("tensor.le", "x"): _beside,
    ("tensor.gt", "x"): _beside,
    ("tensor.ge", "x"): _beside,
    ("tensor.pow", "x"): _beside,
    ("Tensor.set_value", "x"): _NUMBER,
    ("autograd.Embedding()", "name"): _choice("None"),
}
#: Parameters that are left at their defaults.
_LEFT = frozenset({"name", "device", "dev", "in_features", "in_channels"})


def arguments(d: Draw, entry: Entry, first: str | None) -> str:
    """The texts of a call's arguments; the first is `first` if that is given."""
    made: list[str] = []
    x = first
    for name in entry.required:
        if name == "args":
            continue
        recipe = BY_OWNER.get((entry.name, name)) or PARAMETERS[name]
        if x is None and name in ("x", "t", "a", "lhs", "M", "A", "tensor", "pos", "self"):
            x = _tensor(d, "")
            made.append(x)
        elif x is None and name in ("xs", "tensors") and recipe is _several:
            made.append(_several(d, _tensor(d, "")))
        else:
            made.append(recipe(d, x or "x"))
    for name in entry.optional:
        recipe = BY_OWNER.get((entry.name, name)) or PARAMETERS.get(name)
        if recipe is not None and name not in _LEFT and d.rng.random() < 0.3:
            made.append(f"{name}={recipe(d, x or 'x')}")
    return ", ".join(made)


#: Operations of two tensors that broadcast.
_TWO = (autograd.Binary, autograd.PRelu)
#: Operations of any number of tensors.
_MANY = (autograd.Sum, autograd.Mean, autograd.Max, autograd.Min, autograd.Concat)


def statement(d: Draw, entry: Entry) -> tuple[str, str | None] | None:
    """A statement for an entry, and the name of its result."""
    known = RECIPES.get(entry.name)
    name = d.name()
    if known is not None:
        text = known(d)
    elif entry.kind == "motif":
        text = motifs.MOTIFS[entry.name.partition(" ")[2]](d)
    elif entry.kind == "layer":
        text = _layer(d, entry)
    elif entry.kind == "operation":
        text = _operation(d, entry)
    elif entry.kind == "method":
        own = Entry(entry.name, entry.kind, entry.required[1:], entry.optional)
        first = _tensor(d, "")
        text = f"{first}.{entry.name.partition('.')[2]}({arguments(d, own, first)})"
    else:
        text = f"{entry.name}({arguments(d, entry, None)})"
    if text is None:
        return None
    if text.startswith("!"):  # a statement without a new result
        return text[1:], None
    return f"{name} = {text}", name


def _layer(d: Draw, entry: Entry) -> str:
    short = entry.name.partition(".")[2]
    wide = getattr(layer, short)
    first = _tensor(d, "")
    name = f"self.l{len(d.program.init)}"
    made = Entry(entry.name, entry.kind, entry.required, entry.optional)
    d.define(f"{name} = layer.{short}({arguments(d, made, first)})")
    d.program.tags[entry.name] += 0
    if wide in (layer.Add, layer.RankingLoss, layer.MeanSquareError):
        return f"{name}({first}, {_same(d, first)})"
    if wide is layer.Cat:
        return f"{name}({_several(d, first)})"
    return f"{name}({first})"


def _operation(d: Draw, entry: Entry) -> str:
    cls = getattr(autograd, entry.name.partition(".")[2][:-2])
    first = _tensor(d, "")
    made = f"autograd.{cls.__name__}({arguments(d, entry, first)})"
    if issubclass(cls, _TWO):
        return f"{made}({first}, {_same(d, first)})[0]"
    if issubclass(cls, _MANY):
        return f"{made}({first}, {_same(d, first)})[0]"
    return f"{made}({first})[0]"
