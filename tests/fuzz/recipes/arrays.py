"""Functions that NumPy's users know: orders, places, triangles, tests, new tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .places import _made, _places
from .registry import RECIPES, Text, bools, floating, recipe_for, register, size

if TYPE_CHECKING:
    from ..draw import Draw


def _ranked(d: Draw) -> str | None:
    return d.any(lambda x: x.rank > 0 and x.numel)


def _along(d: Draw, form: str) -> Text:
    """A function along an axis of numbers whose products stay small."""
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    flags = d.rng.sample(["True", "False"], 2)
    count = d.rng.randint(1, size(d, x)[axis])
    return form.format(x=x, axis=axis, a=flags[0], b=flags[1], k=count)


for _name in ("cumsum", "cumprod"):
    _small = "autograd.tanh({x})"
    _class = {"cumsum": "CumSum", "cumprod": "CumProd"}[_name]
    register((f"autograd.{_name}",), f"autograd.{_name}({_small}, {{axis}}, {{a}}, {{b}})", _along)
    register((f"Tensor.{_name}",), f"{_small}.{_name}({{axis}}, reverse={{a}})", _along)
    register((f"autograd.{_class}()",), f"autograd.{_class}({{axis}}, {{a}})({_small})[0]", _along)
register(("autograd.sort",), "autograd.sort({x}, {axis}, {a})[0]", _along)
register(("Tensor.sort",), "{x}.sort({axis}, descending={a})[0]", _along)
register(("autograd.Sort()",), "autograd.Sort({axis}, {a})({x})[0]", _along)
register(("autograd.topk",), "autograd.topk({x}, {k}, {axis}, {a})[0]", _along)
register(("Tensor.topk",), "{x}.topk({k}, {axis})[0]", _along)
register(("autograd.TopK()",), "autograd.TopK({k}, {axis}, {a})({x})[0]", _along)
register(("autograd.argsort",), "autograd.argsort({x}, {axis}, {a})", _along)
register(("Tensor.argsort",), "{x}.argsort({axis})", _along)


def _taken(d: Draw, form: str) -> Text:
    x = _ranked(d)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    shape = list(size(d, x))
    bound, shape[axis] = shape[axis], d.rng.randint(1, 4)
    each = f"whole({d.seed()}, {tuple(shape)}, {bound})"
    return form.format(x=x, axis=axis, each=each, some=_places(d, (d.rng.randint(1, 4),), bound))


register(("autograd.take",), "autograd.take({x}, {some}, {axis})", _taken)
register(("Tensor.take",), "{x}.take({some}, {axis})", _taken)
register(("autograd.index_select",), "autograd.index_select({x}, {axis}, {some})", _taken)
register(("Tensor.index_select",), "{x}.index_select({axis}, {some})", _taken)
register(("autograd.take_along_axis",), "autograd.take_along_axis({x}, {each}, {axis})", _taken)
register(("Tensor.take_along_axis",), "{x}.take_along_axis({each}, {axis})", _taken)
register(("autograd.TakeAlongAxis()",), "autograd.TakeAlongAxis({each}, {axis})({x})[0]", _taken)


def _shifted(d: Draw, form: str) -> Text:
    x = _ranked(d)
    if x is None:
        return None
    axis = d.rng.choice(["None", str(d.rng.randrange(d.value(x).rank))])
    return form.format(x=x, shift=d.rng.randint(-3, 3), axis=axis)


register(("autograd.roll",), "autograd.roll({x}, {shift}, {axis})", _shifted)
register(("Tensor.roll",), "{x}.roll({shift}, {axis})", _shifted)
register(("autograd.flip",), "autograd.flip({x}, {axis})", _shifted)
register(("Tensor.flip",), "{x}.flip({axis})", _shifted)


def _matrices(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 1 and x.numel)
    return x and form.format(x=x, k=d.rng.randint(-2, 2), axes=d.rng.choice(["0, 1", "1, 0"]))


for _name in ("tril", "triu"):
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {{k}})", _matrices)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({{k}})", _matrices)
register(("autograd.Triangle()",), "autograd.Triangle(True, {k})({x})[0]", _matrices)
for _name in ("diagonal", "trace"):
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {{k}}, {{axes}})", _matrices)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({{k}}, {{axes}})", _matrices)


def _vectors(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and floating(x) and 0 < x.numel < 200)
    if x is None:
        return None
    last = size(d, x)[-1]
    return form.format(x=x, v=d.parameter((last,)), n=d.rng.randint(0, 2))


register(("autograd.outer",), "autograd.outer({x}, {v})", _vectors)
register(("Tensor.outer",), "{v}.outer({x})", _vectors)
register(("autograd.meshgrid",), "autograd.meshgrid({v}, {v} * 2)[1]", _vectors)
register(("autograd.diff",), "autograd.diff({x}, {n})", _vectors)
register(("Tensor.diff",), "{x}.diff({n})", _vectors)
for _order in ("var", "std"):
    register((f"autograd.{_order}",), f"autograd.{_order}({{x}}, -1)", _vectors)
    register((f"Tensor.{_order}",), f"{{x}}.{_order}(ddof={{n}} * 0.4)", _vectors)


def _normed(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and floating(x) and x.numel)
    order = d.rng.choice(["None", "1", "2", "3", "float('inf')"])
    return x and form.format(x=x, order=order)


register(("autograd.norm",), "autograd.norm({x}, {order}, -1)", _normed)
register(("Tensor.norm",), "{x}.norm({order}, -1, True)", _normed)


@recipe_for("autograd.masked_fill", "Tensor.masked_fill")
def _masked(d: Draw) -> Text:
    x = d.any(floating)
    mask = d.rng.choice([f"{x} > 0", f"from_numpy(draw({d.seed()}, {size(d, x)}) > 0)"])
    value = d.rng.choice(["0.0", "-1.5", "0.25"])
    call = f"autograd.masked_fill({x}, {mask}, {value})"
    return d.rng.choice([call, f"{x}.masked_fill({mask}, {value})"])


RECIPES["Tensor.pow"] = lambda d: f"{d.any(floating)}.pow({d.rng.choice(['2', '3', '1'])})"
for _name in ("any", "all"):
    RECIPES[f"autograd.{_name}"] = lambda d, name=_name: f"autograd.{name}({bools(d)})"
for _name, _form in {
    "tensor.eye": "tensor.eye({n}, {n} + 1, 1, dtype='{dtype}')",
    "tensor.linspace": "tensor.linspace(0, 1, {n})",
    "tensor.full_like": "tensor.full_like({x}, 1)",
    "tensor.rand": "tensor.rand({n}, 2)",
    "tensor.randn": "tensor.randn({shape})",
    "tensor.randn_like": "tensor.randn_like(tensor.ones({shape}))",
    "tensor.randint": "tensor.randint(-2, {n}, {shape})",
    "tensor.randperm": "tensor.randperm({n})",
}.items():
    RECIPES[_name] = lambda d, form=_form: _made(d, form)
