"""Losses of margins and likelihoods; layers that pad, gate and measure; lists of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from singa_rs import layer

from .. import values
from . import names  # noqa: F401 - what follows takes the place of its recipes
from .registry import RECIPES, Text, floating, matrix, recipe_for, rows, size

if TYPE_CHECKING:
    from ..draw import Draw

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


def _plain_layer(d: Draw, text: str) -> Text:
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


@recipe_for("layer.Parameter", "layer.ParameterList", "layer.ParameterDict")
def _parameters(d: Draw) -> Text:
    place, x = f"self.l{len(d.program.init)}", matrix(d)
    if x is None:
        return None
    given = values.constant(d.rng, size(d, x)[1:], d.seed())
    given = given if given.startswith(("np.", "draw(")) else f"draw({d.seed()}, {size(d, x)[1:]})"
    made, read = d.rng.choice(
        [
            (f"layer.Parameter({given})", place),
            (f"layer.ParameterList([{given}])", f"{place}[0]"),
            (f"layer.ParameterDict({{'a': {given}}})", f"{place}['a']"),
        ]
    )
    d.define(f"{place} = {made}")
    return f"{x} * {read}"
