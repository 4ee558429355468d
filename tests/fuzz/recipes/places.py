"""Selection by index, and creation of tensors."""

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
    size,
)

if TYPE_CHECKING:
    from ..draw import Draw


def _places(d: Draw, shape: tuple[int, ...], high: int) -> str:
    """Indices below `high`."""
    array = f"whole({d.seed()}, {shape}, {high})"
    forms = [array, f"from_numpy({array})", f"from_numpy({array}, dtype='int64')"]
    if d.program.dtype == "float32" and high < 100:
        forms += [f"from_numpy({array}, dtype='int8')", f"tensor.constant({array})"]
    return d.rng.choice(forms)


@recipe_for("autograd.embedding", "autograd.Embedding()")
def _embedding(d: Draw) -> Text:
    w = d.any(lambda x: x.rank == 2 and x.shape[0] > 1, 3) or d.parameter((5, d.rng.randint(1, 4)))
    places = f"from_numpy(whole({d.seed()}, {(d.rng.randint(1, 5),)}, {size(d, w)[0]}))"
    if d.rng.random() < 0.2:
        return f"autograd.Embedding()({places}, {w})[0]"
    return f"autograd.embedding({places}, {w})"


@recipe_for("autograd.gather", "autograd.Gather()")
def _gather(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    places = _places(d, (d.rng.randint(1, 4),), size(d, x)[axis])
    if d.rng.random() < 0.2:
        return f"autograd.Gather({axis}, {places})({x})[0]"
    return f"autograd.gather({x}, {axis}, {places})"


@recipe_for("autograd.scatter_elements", "autograd.ScatterElements()")
def _scatter(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    shape, axis = size(d, x), d.rng.randrange(d.value(x).rank)
    part = tuple(max(n - 1, 1) for n in shape)
    places = f"whole({d.seed()}, {part}, {shape[axis]})"
    updates = values.constant(d.rng, part, d.seed())
    if d.rng.random() < 0.2:
        return f"autograd.ScatterElements({places}, {updates}, {axis})({x})[0]"
    return f"autograd.scatter_elements({x}, {places}, {updates}, {axis})"


@recipe_for("autograd.onehot", "autograd.OneHot()")
def _onehot(d: Draw) -> Text:
    places = _places(d, (d.rng.randint(1, 5),), 4)
    if "y" in d.worlds[0] and d.rng.random() < 0.3:
        places = "y"
    axis = d.rng.choice(["-1", "0", "1"])
    if d.rng.random() < 0.3:
        places = places if places.startswith(("from_", "tensor.")) else f"from_numpy({places})"
        return f"autograd.OneHot({axis}, 4, (0.0, 2.0))({places})[0]"
    return f"autograd.onehot({axis}, {places}, 4)"


@recipe_for("autograd.where", "autograd.Where()")
def _where(d: Draw) -> Text:
    x = d.any()
    shape = size(d, x)
    condition = d.rng.choice(
        [f"{x} > 0", f"draw({d.seed()}, {shape}) > 0", f"from_numpy(whole({d.seed()}, {shape}, 2))"]
    )
    other = alike(d, x)
    if d.rng.random() < 0.2:
        return f"autograd.Where({condition})({x}, {other})[0]"
    if condition.endswith(" > 0") and d.rng.random() < 0.4:
        first = condition if condition.startswith(x) else f"from_numpy({condition})"
        return f"autograd.where({first}, {x}, {other})"
    named = "" if condition.endswith(" > 0") else "condition="
    return f"autograd.where({x}, {beside(d, x)}, {named}{condition})"


def _made(d: Draw, form: str) -> Text:
    x = d.any()
    shape = size(d, x)
    return form.format(
        x=x, shape=shape, seed=d.seed(), dtype=d.rng.choice(values.DTYPES), n=d.rng.randint(1, 9)
    )


for _name, _form in {
    "tensor.ones": "tensor.ones({shape}, dtype='{dtype}')",
    "tensor.zeros": "tensor.zeros({shape}, dtype='{dtype}')",
    "tensor.full": "tensor.full({shape}, 1, dtype='{dtype}')",
    "tensor.arange": "tensor.arange({n}, dtype='{dtype}')",
    "tensor.random": "tensor.random({shape})",
    "tensor.constant": "tensor.constant(draw({seed}, {shape}))",
    "tensor.from_numpy": "from_numpy(draw({seed}, {shape}))",
    "tensor.as_tensor": "tensor.as_tensor(draw({seed}, {shape}))",
    "tensor.to_host": "tensor.to_host({x})",
    "tensor.from_raw_tensor": "tensor.from_raw_tensor({x})",
    "autograd.shape": "autograd.shape({x})",
    "autograd.Shape()": "autograd.Shape()({x})[0]",
    "autograd.back_broadcast": "autograd.back_broadcast(({n}, *{shape}), {shape}, "
    "tensor.ones(({n}, *{shape})) * {x})",
    "autograd.tile": "autograd.tile({x}, [2] + [1] * ({x}.rank - 1))",
    "autograd.Tile()": "autograd.Tile([2] + [1] * ({x}.rank - 1))({x})[0]",
    "autograd.Cast()": "autograd.Cast('{dtype}')({x})[0]",
    "autograd.bitwise_and": "autograd.bitwise_and({x} > 0, {x} < 1)",
    "autograd.bitwise_or": "autograd.cast({x} > 0, 'int32') | 6",
    "autograd.bitwise_xor": "autograd.bitwise_xor(autograd.cast({x} > 0, 'int64'), 5)",
    "autograd.bitwise_not": "~autograd.cast({x} > 0, 'int8')",
    "autograd.left_shift": "autograd.cast({x} > 0, 'int32') << 3",
    "autograd.right_shift": "autograd.right_shift(autograd.cast({x} > 0, 'uint8'), 1)",
    "autograd._and": "autograd._and({x} > 0, {x} < 1)",
}.items():
    RECIPES[_name] = lambda d, form=_form: _made(d, form)
for _name in ("And", "Or", "Xor"):
    RECIPES[f"autograd.{_name}()"] = lambda d, name=_name: (
        f"autograd.{name}()({bools(d)}, {bools(d)})[0]"
    )
for _name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
    RECIPES[f"autograd.{_name}()"] = lambda d, name=_name: (
        f"autograd.{name}()({integers(d)}, {integers(d)})[0]"
    )
RECIPES["autograd.Not()"] = lambda d: f"autograd.Not()({bools(d)})[0]"
RECIPES["tensor.average"] = lambda d: f"tensor.average({d.any()}, 0)"
