"""Sections, diagonals, windows as columns, values at indices, statistics without NaN, other
names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from singa_rs.autograd import aliases

from . import arrays, functions, linalg, losses, operators, places, products, views  # noqa: F401
from .functions import _any, _axes, _into, _line, _matrices
from .registry import RECIPES, Text, alike, floating, recipe_for, register, size

if TYPE_CHECKING:
    from ..draw import Draw

# ---- other names: as the functions that they are -------------------------------------------------


def _renamed(home: str, name: str, old: str) -> None:
    known = RECIPES.get(f"{home}{old}")
    if known is None:
        return

    def drawn(d: Draw) -> Text:
        text = known(d)
        return text and text.replace(f"{home}{old}(", f"{home}{name}(")

    RECIPES[f"{home}{name}"] = drawn


for _rows in aliases._OTHERS.values():
    for _row in _rows.split():
        _renamed("autograd.", *_row.split("="))
for _name, _old in {"movedim": "moveaxis", "swapdims": "swapaxes"}.items():
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({{a}}, {{b}})", _axes)
RECIPES["autograd.expand_dims"] = lambda d: _axes(d, "autograd.expand_dims({x}, {a})")
RECIPES["Tensor.expand_dims"] = lambda d: _axes(d, "{x}.expand_dims({a})")
RECIPES["Tensor.repeat_interleave"] = lambda d: _axes(d, "{x}.repeat_interleave(2, {a})")
RECIPES["autograd.repeat_interleave"] = lambda d: _axes(d, "autograd.repeat_interleave({x}, 2)")
_TAKEN = "take_along_dim({x}.argsort({axis}), {axis})"
register(("Tensor.take_along_dim",), "{x}." + _TAKEN, _line)
register(("autograd.take_along_dim",), "autograd." + _TAKEN.replace("(", "({x}, ", 1), _line)
RECIPES["autograd.leaky_relu"] = lambda d: _any(d, "autograd.leaky_relu({x}, 0.2)")
RECIPES["autograd.permute"] = lambda d: _axes(d, "autograd.permute({x}, {order})")
RECIPES["Tensor.t"] = lambda d: _matrices(d, "{x}.t()")

# ---- parts and shapes ----------------------------------------------------------------------------

for _name, _args in {
    "tensor_split": "3, {a}",
    "select": "{a}, -1",
    "diag_embed": "{k}, {a}, {b}",
    "hsplit": "(1,)",
    "vsplit": "(1, -1)",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _axes)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _axes)
register(("autograd.array_split",), "autograd.array_split({x}, 2, {a})", _axes)
register(("autograd.dsplit",), "autograd.dsplit({x}.unsqueeze(2), 1)", _axes)
register(("Tensor.dsplit",), "{x}.unsqueeze(2).dsplit(1)", _axes)
register(("Tensor.unfold",), "{x}.unfold({a}, 1, 2)", _axes)
register(("autograd.append",), "autograd.append({x}, {x} * 2, {a})", _axes)
register(("autograd.delete",), "autograd.delete({x}, [0], {a})", _axes)
register(("autograd.channel_shuffle",), "autograd.channel_shuffle({x}, 1)", _axes)
for _name, _other in {
    "view_as": "{x}.contiguous().view_as({x}.reshape(-1))",
    "reshape_as": "{x}.reshape_as({x}.transpose())",
    "expand_as": "{x}[:1].expand_as({x})",
    "type_as": "{x}.type_as({x} > 0)",
    "view": "{x}.contiguous().view(-1)",
    "to": "{x}.to('float64')",
    "new_full": "{x}.new_full({s}, 1) + {x}",
    "new_zeros": "{x}.new_zeros(*{s})",
    "new_ones": "{x}.new_ones({s}) * {x}",
    "new_empty": "{x}.new_empty({s})",
    "new_tensor": "{x}.new_tensor([0, 1])",
}.items():
    register((f"Tensor.{_name}",), _other, _axes)
for _name in ("diag", "diagflat", "combinations"):
    register((f"autograd.{_name}",), f"autograd.{_name}({{flat}}[:4])", _line)
    register((f"Tensor.{_name}",), f"{{flat}}[:4].{_name}()", _line)
register(("autograd.cartesian_prod",), "autograd.cartesian_prod({flat}[:4], {flat}[:3])", _line)


def _images(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank == 4 and floating(x) and x.numel, 12) or d.parameter((2, 3, 3, 4))
    h, w = size(d, x)[2:]
    k = (d.rng.randint(1, min(h, 2)), d.rng.randint(1, min(w, 3)))
    how = d.rng.choice(["", ", 1, 1", ", 1, 0, 2", ", 1, (0, 1), (2, 1)"])
    return form.format(x=x, s=(h, w), k=k, how=how, n=d.rng.randint(1, 4))


def _with_layer(d: Draw, made: str, of: str, draw: object = _images) -> Text:
    """A layer of the model, called with what a form says."""
    name = f"self.l{len(d.program.init)}"
    text = draw(d, of)  # type: ignore[operator]
    if text is not None:
        d.define(f"{name} = layer.{made}")
    return text and f"{name}({text})"


register(("autograd.unfold",), "autograd.unfold({x}, {k}{how})", _images)
register(
    ("autograd.fold",), "autograd.fold(autograd.unfold({x}, {k}{how}), {s}, {k}{how})", _images
)
register(("autograd.local_response_norm",), "autograd.local_response_norm({x}, {n}, 0.5)", _images)
RECIPES["layer.LocalResponseNorm"] = lambda d: _with_layer(d, "LocalResponseNorm(3, 0.5)", "{x}")
RECIPES["layer.Unfold"] = lambda d: _with_layer(d, "Unfold(1, 1, 0, 2)", "{x}")
RECIPES["layer.ChannelShuffle"] = lambda d: _with_layer(d, "ChannelShuffle(1)", "{x}")
RECIPES["layer.Softmax2d"] = lambda d: _with_layer(d, "Softmax2d()", "{x}")
for _name in ("Nearest", "Bilinear"):
    _text = f"Upsampling{_name}2d"
    RECIPES[f"layer.{_text}"] = lambda d, t=_text: _with_layer(
        d, f"{t}({d.rng.choice(['3', 'scale_factor=2'])})", "{x}"
    )


@recipe_for("layer.Fold")
def _fold(d: Draw) -> Text:
    name = f"self.l{len(d.program.init)}"
    x = d.parameter((2, 8, 6))
    d.define(f"{name} = layer.Fold((4, 6), 2, stride=2)")
    return f"{name}({x})"


@recipe_for("autograd.pixel_shuffle", "autograd.pixel_unshuffle")
def _pixels(d: Draw) -> Text:
    x = d.parameter((2, 4, 2, 4))
    return f"autograd.{d.rng.choice(['pixel_shuffle', 'pixel_unshuffle'])}({x}, 2)"


# ---- values at indices, statistics ---------------------------------------------------------------


def _at(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    shape, axis = size(d, x), d.rng.randrange(d.value(x).rank)
    each = f"whole({d.seed()}, {shape}, {shape[axis]})"
    how = d.rng.choice(["'sum'", "'prod'", "'mean'", "'amax'", "'amin'"])
    some = f"(whole({d.seed()}, (2,), {shape[0]}),)"
    mask = f"draw({d.seed()}, {shape}) > 0"
    keeps = d.rng.choice(["True", "False"])
    given = {"x": x, "axis": axis, "each": each, "how": how, "some": some, "mask": mask}
    return form.format(**given, like=alike(d, x), keeps=keeps)


for _name, _args in {
    "scatter": "{axis}, {each}, {like}",
    "scatter_reduce": "{axis}, {each}, {like}, {how}, {keeps}",
    "index_put": "{some}, 0.5, {keeps}",
    "masked_scatter": "{mask}, {like}",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _at)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _at)
register(("autograd.put_along_axis",), "autograd.put_along_axis({x}, {each}, {like}, {axis})", _at)


@recipe_for("autograd.embedding_bag", "layer.EmbeddingBag")
def _bag(d: Draw) -> Text:
    mode = d.rng.choice(["'mean'", "'sum'", "'max'"])
    bags = f"from_numpy(whole({d.seed()}, ({d.rng.randint(1, 3)}, 3), 6))"
    more = d.rng.choice(["", ", padding_idx=1"])
    if d.rng.random() < 0.5:
        name = f"self.l{len(d.program.init)}"
        d.define(f"{name} = layer.EmbeddingBag(6, 2, {mode}{more})")
        return f"{name}({bags})"
    w = d.parameter((6, 3))
    if d.rng.random() < 0.5:
        return f"autograd.embedding_bag({bags}, {w}, None, {mode}{more})"
    flat = f"whole({d.seed()}, (7,), 6)"
    return f"autograd.embedding_bag({flat}, {w}, np.array([0, 2, 2]), {mode}{more})"


for _name, _args in {
    "nanprod": "{axis}",
    "nanvar": "{axis}, {b}",
    "nanstd": "{axis}, {b}",
    "nanargmax": "{axis}",
    "nanargmin": "{axis}",
    "nanmedian": "{axis}, {b}",
    "nanquantile": "0.3, {axis}",
    "nanpercentile": "[20, 70]",
    "kthvalue": "1, {axis}, {b}",
    "aminmax": "{axis}",
    "dist": "0.5, 1",
    "isin": "[0.0, 1.0], invert={b}",
    "digitize": "np.linspace(-1, 1, 5)",
    "histogram": "4, (-1, 1)",
    "ldexp": "-1",
    "float_power": "2",
    "clamp": "-0.5, 0.7",
    "atan2": "0.5",
    "isposinf": "",
    "isneginf": "",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _line)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _line)
register(("autograd.Atan2()",), "autograd.Atan2()({x}, {x} + 0.5)[0]", _line)
for _form in (
    "nancumsum({x}, {axis})", "nancumprod({x}, {axis})", "var_mean({x}, {axis})",
    "std_mean({x}, {axis})", "cumulative_trapezoid({x}, None, 0.5, {axis})",
    "correlate({flat}, [0.5, 1.0], 'same')",
):  # fmt: skip
    register((f"autograd.{_form.partition('(')[0]}",), f"autograd.{_form}", _line)
for _name, _args in {"addmv": "{x}, {v}", "addr": "{x}[:, 0], {c}"}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{c}}[:1], {_args})", _matrices)
    register((f"Tensor.{_name}",), f"{{c}}[:1].{_name}({_args})", _matrices)
for _form in ("autograd.addbmm({c}, {wide}, {w}.unsqueeze(0))", "autograd.pdist({x})"):
    register((_form.partition("(")[0],), _form, _matrices)
register(("Tensor.addbmm",), "{c}.addbmm({wide}, {w}.unsqueeze(0))", _matrices)
register(("autograd.multi_dot",), "autograd.multi_dot([{x}, {w}, {c}])", _matrices)
for _form in ("autograd.matrix_power({w}.transpose() @ {w}, 2)", "({w}.t() @ {w}).matrix_power(3)"):
    _name = "autograd.matrix_power" if _form.startswith("a") else "Tensor.matrix_power"
    register((_name,), _form, _matrices)
for _name in ("addmv", "addr", "addbmm", "scatter", "scatter_reduce", "index_put"):
    RECIPES[f"Tensor.{_name}_"] = lambda d, name=_name: _into(d, name)
for _name, _form in {
    "tensor.logspace": "tensor.logspace(-1, 1, {n})",
    "tensor.geomspace": "tensor.geomspace(1, 3, {n})",
    "tensor.tri": "tensor.tri({n}, {n} + 1, 1)",
    "tensor.tril_indices": "tensor.tril_indices({n})",
    "tensor.triu_indices": "tensor.triu_indices({n}, k=1)",
    "tensor.empty": "tensor.empty({shape})",
    "tensor.empty_like": "tensor.empty_like({x})",
}.items():
    register((_name,), _form, _any)

# ---- pieces, and functions by their axes ---------------------------------------------------------

for _name, _args in {
    "slice_scatter": "{x} * 2, {a}",
    "select_scatter": "0.5, {a}, -1",
    "clamp_min": "0.1",
    "clamp_max": "{x} * 0.5",
    "around": "1",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _axes)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _axes)
register(("Tensor.sum_to_size",), "{x}.sum_to_size({x}.shape[1:])", _axes)
register(("autograd.partition",), "autograd.partition({x}, 0, {a})", _axes)
register(("autograd.argpartition",), "autograd.argpartition({x}, 0, {a})", _axes)
register(("autograd.row_stack",), "autograd.row_stack([{x}, {x}])", _axes)
register(("autograd.polyval",), "autograd.polyval({flat}[:3], {x})", _line)
_WHERE = "whole({seed}, ({n},), 6)"
register(("autograd.unravel_index",), f"autograd.unravel_index({_WHERE}, (2, 3))[1]", _any)
register(
    ("autograd.ravel_multi_index",), f"autograd.ravel_multi_index([{_WHERE}, 1], (6, 2))", _any
)
register(("tensor.rand_like",), "tensor.rand_like(tensor.ones({shape}))", _any)
register(("tensor.randint_like",), "tensor.randint_like(tensor.ones({shape}), 3)", _any)
register(("tensor.normal",), "tensor.normal(0.0, 1.0, {shape})", _any)


def _spatial(d: Draw, axes: int, form: str) -> Text:
    x = d.any(lambda x: x.rank == axes + 2 and floating(x) and x.numel, 12)
    x = x or d.parameter((2, 2, *(d.rng.randint(2, 3) for _ in range(axes))))
    channels = size(d, x)[1]
    ones = (1,) * axes
    if channels > 20:
        return None
    w, t = (d.parameter(s + ones) for s in ((2, channels), (channels, 2)))
    return form.format(x=x, w=w, t=t, n=axes, k=ones)


for _axes_of in (1, 2, 3):
    for _name, _args in {
        "conv": "{x}, {w}, None, 2",
        "conv_transpose": "{x}, {t}",
        "max_pool": "{x}, {k}, 2",
        "avg_pool": "{x}, {k}, 1",
        "max_unpool": "*autograd.max_pool({x}, {k}, return_indices=True), {k}",
        "adaptive_avg_pool": "{x}, 2",
        "adaptive_max_pool": "{x}, 1",
    }.items():
        if (_name, _axes_of) != ("conv", 2):
            RECIPES[f"autograd.{_name}{_axes_of}d"] = (
                lambda d, n=_axes_of, f=(f"autograd.{_name}{_axes_of}d({_args})"): _spatial(d, n, f)
            )
