"""Sections, diagonals, windows as columns, values at indices, statistics without NaN, losses of
margins, other names; layers that pad, fold, gate and measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from singa_rs import layer
from singa_rs.autograd import aliases

from .. import values
from . import arrays, functions, losses, operators, places, products, views  # noqa: F401
from .functions import _any, _axes, _into, _line, _matrices
from .registry import RECIPES, Text, alike, floating, matrix, recipe_for, register, rows, size

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
    "isin": "[0.0, 1.0], {b}",
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

# ---- losses and other layers ---------------------------------------------------------------------

_SIGNS = "np.sign(draw({seed}, {shape}) + 1e-3)"
_SHARES = "draw({seed}, {shape}, 0.1, 0.9)"
#: Function and layer: the inputs behind the first, and the first.
_LOSSES = {
    "margin_ranking_loss": ("MarginRankingLoss", ("{x} * 0.5", _SIGNS), "{x}"),
    "hinge_embedding_loss": ("HingeEmbeddingLoss", (_SIGNS,), "{x}"),
    "soft_margin_loss": ("SoftMarginLoss", (_SIGNS,), "{x}"),
    "multilabel_soft_margin_loss": ("MultiLabelSoftMarginLoss", (_SHARES,), "{x}"),
    "multilabel_margin_loss": (
        "MultiLabelMarginLoss", ("whole({seed}, {shape}, {shape}[1] + 1) - 1",), "{x}",
    ),
    "multi_margin_loss": (
        "MultiMarginLoss", ("whole({seed}, {shape}[:1], {shape}[1])",), "{x}",
    ),
    "triplet_margin_with_distance_loss": (
        "TripletMarginWithDistanceLoss", ("{x} * 0.5", "{x} - 0.25"), "{x}",
    ),
    "poisson_nll_loss": ("PoissonNLLLoss", (_SHARES,), "{x}"),
    "gaussian_nll_loss": ("GaussianNLLLoss", (_SHARES, _SHARES), "{x}"),
    "bce_loss": ("BCELoss", (_SHARES,), "autograd.sigmoid({x})"),
    "": ("MSELoss", ("{same}",), "{x}"),
    " ": ("CrossEntropyLoss", (_SHARES,), "{x}"),
}  # fmt: skip


def _loss_layer(d: Draw, name: str, given: tuple[str, ...], x: str) -> Text:
    place = f"self.l{len(d.program.init)}"
    how = d.rng.choice(["'mean'", "'sum'", "'none'"])
    d.define(f"{place} = layer.{name}(reduction={how})")
    made = [one if "{x}" in one else f"held({one})" for one in given]
    if "whole(" in "".join(given):
        made = [f"from_numpy({one})" for one in given]
    return rows(d, f"{place}({', '.join([x, *made])})")


for _name, (_cls, _given, _x) in _LOSSES.items():
    if _name.strip():
        _call = f"autograd.{_name}({', '.join([_x, *_given])})"
        RECIPES[f"autograd.{_name}"] = lambda d, call=_call: rows(d, call)
    RECIPES[f"layer.{_cls}"] = lambda d, args=(_cls, _given, _x): _loss_layer(d, *args)


def _pad_layer(d: Draw, name: str, rank: int) -> Text:
    x = d.any(lambda x: x.rank == rank and floating(x) and x.numel, 12)
    x = x or d.parameter((2, *(d.rng.randint(1, 3) for _ in range(rank - 1))))
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{name}({d.rng.choice(['1', '2', '0'])})")
    return f"{place}({x})"


for _name in layer.__all__:
    if "Pad" in _name:
        RECIPES[f"layer.{_name}"] = lambda d, n=_name: _pad_layer(d, n, int(n[-2]) + 2)


def _plain_layer(d: Draw, text: str, draw: object = None) -> Text:
    x = d.any(lambda x: x.rank > 1 and floating(x) and x.numel, 12)
    if x is None:
        return None
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{text}")
    return f"{place}({x})"


for _name, _args in {
    "Threshold": "0.1, 0.5",
    "Hardtanh": "-0.5, 0.7",
    "Hardshrink": "0.3",
    "Softshrink": "0.3",
    "CELU": "0.7",
    "RReLU": "0.1, 0.3",
    "PReLU": "1, 0.3",
    "LogSoftmax": "",
    "Softmin": "0",
    "AlphaDropout": "0.3",
    "FeatureAlphaDropout": "0.3",
    "Unflatten": "0, (1, -1)",
}.items():
    RECIPES[f"layer.{_name}"] = lambda d, t=f"{_name}({_args})": _plain_layer(d, t)


@recipe_for("autograd.glu", "layer.GLU")
def _glu(d: Draw) -> Text:
    x = d.parameter((3, 4))
    if d.rng.random() < 0.5:
        return f"autograd.glu({x})"
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.GLU()")
    return f"{place}({x})"


@recipe_for("layer.PairwiseDistance")
def _distance(d: Draw) -> Text:
    place, x = f"self.l{len(d.program.init)}", matrix(d)
    if x is None:
        return None
    d.define(f"{place} = layer.PairwiseDistance({d.rng.choice(['', '1', '3'])})")
    return f"{place}({x}, {x} * 0.5)"


@recipe_for("layer.Bilinear")
def _bilinear(d: Draw) -> Text:
    place, x = f"self.l{len(d.program.init)}", matrix(d)
    if x is None or size(d, x)[1] > 20:
        return None
    d.define(f"{place} = layer.Bilinear({d.rng.randint(1, 3)})")
    return f"{place}({x}, {x} * 0.5)"


@recipe_for("layer.ParameterList", "layer.ParameterDict")
def _parameters(d: Draw) -> Text:
    place, x = f"self.l{len(d.program.init)}", matrix(d)
    if x is None:
        return None
    given = values.constant(d.rng, size(d, x)[1:], d.seed())
    given = given if given.startswith(("np.", "draw(")) else f"draw({d.seed()}, {size(d, x)[1:]})"
    if d.rng.random() < 0.5:
        d.define(f"{place} = layer.ParameterList([{given}])")
        return f"{x} * {place}[0]"
    d.define(f"{place} = layer.ParameterDict({{'a': {given}}})")
    return f"{x} * {place}['a']"
