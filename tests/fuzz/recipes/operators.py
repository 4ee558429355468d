"""Operators, including those in place, and methods that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import values
from .registry import (
    RECIPES,
    Text,
    alike,
    beside,
    bools,
    floating,
    integers,
    recipe_for,
    register,
    size,
)

if TYPE_CHECKING:
    from ..draw import Draw


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "pow": "**", "floordiv": "//",
    "mod": "%", "and": "&", "or": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def _operator(d: Draw, sign: str, reflected: bool) -> Text:
    if sign in ("<<", ">>") or sign in "&|^" and d.rng.random() < 0.3:
        a, b = integers(d), d.rng.choice([integers(d), "2"])
    elif sign in "&|^":
        a = bools(d)
        b = d.rng.choice([bools(d), "True", "False"])
    else:
        a = d.any()
        b = beside(d, a)
    return f"{b} {sign} {a}" if reflected else f"{a} {sign} {b}"


for _short, _sign in _SIGNS.items():
    register((f"Tensor.__{_short}__",), _sign, _operator, reflected=False)
    register((f"Tensor.__r{_short}__",), _sign, _operator, reflected=True)


def _assign(d: Draw, sign: str) -> Text:
    a = target(d)
    return f"!{a} {sign}= {beside(d, a)}"


for _short in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod"):
    register((f"Tensor.__i{_short}__",), _SIGNS[_short], _assign)
_BITS = ("int8", "uint8", "int32", "int64", "bool")


def _change_bits(d: Draw, sign: str) -> Text:
    found = {n: d.value(n).dtype.name for n in d.pool}
    kinds = _BITS[:-1] if sign in ("<<", ">>") else _BITS
    a = d.rng.choice([n for n, kind in found.items() if kind in kinds] or [""])
    return a and f"!{a} {sign}= {bools(d) if found[a] == 'bool' else 2}"


for _short in ("and", "or", "xor", "lshift", "rshift"):
    register((f"Tensor.__i{_short}__",), _SIGNS[_short], _change_bits)
for _short, _text in {"abs": "abs({})", "neg": "-{}", "pos": "+{}"}.items():
    RECIPES[f"Tensor.__{_short}__"] = lambda d, text=_text: text.format(d.any())
RECIPES["Tensor.__round__"] = lambda d: f"round({d.any(floating)}, {d.rng.choice(['0', '1'])})"


def _divided(d: Draw, form: str) -> Text:
    return form.format(d.any(floating)) + d.rng.choice(["[0]", "[1]"])


register(("Tensor.__divmod__",), "divmod({}, 0.75)", _divided)
register(("Tensor.__rdivmod__",), "divmod(3, {})", _divided)
RECIPES["Tensor.__invert__"] = lambda d: f"~{bools(d)}"


def target(d: Draw) -> str:
    """A tensor to write in place: mostly a result of the step, sometimes a state or an argument."""
    d.program.tags["writes"] += 1
    made = [n for n in d.pool if n.startswith("v")]
    if made and d.rng.random() < 0.75:
        return d.rng.choice(made)
    states = [n for n in d.pool if n.startswith("self.")]
    if states and d.rng.random() < 0.9:
        return d.rng.choice(states)
    return d.rng.choice(d.pool)


@recipe_for("Tensor.__getitem__")
def _getitem(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0)
    return x and f"{x}[{values.key(d.rng, size(d, x))}]"


@recipe_for("Tensor.__setitem__")
def _setitem(d: Draw) -> Text:
    x = target(d)
    if floating(d.value(x)) and size(d, x) and d.rng.random() < 0.2:
        return _masked(d, x)
    key = values.key(d.rng, size(d, x), basic=d.rng.random() < 0.8)
    part = d.value(x)[eval(f"np.s_[{key}]", d.worlds[0])]
    value = d.rng.choice(
        [
            d.rng.choice(values.SCALARS),
            values.constant(d.rng, part.shape, d.seed()),
            f"{x}[{key}] * 0.5",
            beside(d, x),
        ]
    )
    return f"!{x}[{key}] = {value}"


def _masked(d: Draw, x: str) -> Text:
    """The same value for all places of a mask of the first axis."""
    rows, *rest = size(d, x)
    mask = d.rng.choice([f"{x}[{', '.join([':', *'0' * len(rest)])}] > 0", "{}"])
    mask = mask.format(f"from_numpy(draw({d.seed()}, ({rows},)) > 0)")
    if rest and d.rng.random() < 0.3:
        return f"!{x}[{mask}, 0] = {d.parameter(tuple(rest[1:]), 0.5, 1.5)}"
    return f"!{x}[{mask}] = {d.parameter(tuple(rest), 0.5, 1.5)}"


@recipe_for("Tensor.copy_from", "Tensor.copy_data")
def _copy_from(d: Draw) -> Text:
    x = target(d)
    return f"!{x}.copy_from({alike(d, x)})"


@recipe_for("Tensor.copy_from_numpy", "tensor.copy_from_numpy")
def _copy_array(d: Draw) -> Text:
    x = target(d)
    return f"!{x}.copy_from_numpy(draw({d.seed()}, {size(d, x)}))"


@recipe_for("tensor.copy_data_to_from")
def _copy_part(d: Draw) -> Text:
    x, y = target(d), d.any()
    count = min(d.value(x).numel, d.value(y).numel)
    size = d.rng.randint(1, max(count, 1))
    return f"!tensor.copy_data_to_from({x}, {y}, {size}, {d.rng.randint(0, count - size)})"


def _fill(d: Draw, call: str) -> Text:
    return f"!{target(d)}.{call}"


RECIPES["Tensor.set_value"] = lambda d: _fill(d, f"set_value({d.rng.choice(['0.5', '0', '1'])})")
RECIPES["Tensor.gaussian"] = lambda d: _fill(d, "gaussian(0.0, 1.0)")
RECIPES["Tensor.uniform"] = lambda d: _fill(d, "uniform(-1.0, 1.0)")
RECIPES["Tensor.bernoulli"] = lambda d: _fill(d, "bernoulli(0.5)")
RECIPES["tensor.gaussian"] = lambda d: f"!tensor.gaussian(0.0, 0.5, {target(d)})"
RECIPES["tensor.uniform"] = lambda d: f"!tensor.uniform(0.0, 0.5, {target(d)})"
RECIPES["tensor.bernoulli"] = lambda d: f"!tensor.bernoulli(0.3, {target(d)})"
RECIPES["tensor.axpy"] = lambda d: (lambda y: f"!tensor.axpy(0.5, {alike(d, y)}, {y})")(target(d))


def _vector(d: Draw, form: str, along: int) -> Text:
    x = d.any(lambda x: x.rank == 2 and floating(x))
    if x is None:
        return None
    v = d.parameter((size(d, x)[along],), 0.5, 1.5)
    return form.format(x=x, v=v)


for _what in ("add", "div", "mult"):
    register((f"Tensor.{_what}_row",), "!{x}." + _what + "_row({v})", _vector, along=1)
    register((f"Tensor.{_what}_column",), "!{x}." + _what + "_column({v})", _vector, along=0)
register(("tensor.add_row",), "!tensor.add_row(0.5, {v}, 1.0, {x})", _vector, along=1)
register(("tensor.add_column",), "!tensor.add_column(0.5, {v}, 0.5, {x})", _vector, along=0)
