"""Layers and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import (
    RECIPES,
    Text,
    floating,
    image,
    matrix,
    recipe_for,
    rows,
)

if TYPE_CHECKING:
    from ..draw import Draw


_LOSSES = {
    "softmax_cross_entropy": ("SoftMaxCrossEntropy", "{x}", "draw({seed}, {shape}, 0, 1)"),
    "cross_entropy": ("CrossEntropy", "autograd.softmax({x})", "draw({seed}, {shape}, 0, 1)"),
    "binary_cross_entropy": ("BinaryCrossEntropy", "{x}.sigmoid()", "draw({seed}, {shape}, 0, 1)"),
    "mse_loss": ("MeanSquareError", "{x}", "draw({seed}, {shape})"),
}
for _short, (_cls, _x, _t) in _LOSSES.items():
    _x, _t = ("{" + p + "}" for p in (_x, _t)) if False else (_x, _t)
    RECIPES[f"autograd.{_short}"] = lambda d, f=f"autograd.{_short}({_x}, {_t})": rows(d, f)
    RECIPES[f"autograd.{_cls}()"] = lambda d, f=f"autograd.{_cls}({_t})({_x})[0]": rows(d, f)


def _loss_layer(d: Draw, name: str, x: str, t: str) -> Text:
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{name}()")
    return rows(d, f"{place}({x}, held({t}))")


for _cls, _x, _t in _LOSSES.values():
    RECIPES[f"layer.{_cls}"] = lambda d, args=(_cls, _x, _t): _loss_layer(d, *args)
RECIPES["autograd.RankingLoss()"] = lambda d: rows(d, "autograd.RankingLoss()({x}, {same})[0]")


@recipe_for("layer.Embedding")
def _embedding_layer(d: Draw) -> Text:
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.Embedding(6, {d.rng.randint(1, 4)})")
    return f"{name}(from_numpy(whole({d.seed()}, {(d.rng.randint(1, 5),)}, 6)))"


@recipe_for("layer.Sequential")
def _sequential(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    steps = (
        f"layer.Linear({d.rng.randint(1, 6)}), layer.ReLU(), layer.Linear({d.rng.randint(1, 4)})"
    )
    d.define(f"{name} = layer.Sequential({steps})")
    return f"{name}({x})"


def _image_layer(d: Draw, text: str) -> Text:
    x = image(d)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    window = d.rng.choice(["2", "2, 1", "(1, 2)", "3, 2, 1", "2, padding=1"])
    how = d.rng.choice(["", ", bias=False", ", activation='RELU'", ", padding=1", ", stride=2"])
    plain = d.rng.choice(["2", "3", "2, 1"])
    d.define(f"{name} = {text}".format(window=window, how=how, plain=plain, n=d.rng.randint(1, 5)))
    return f"{name}({x})"


for _name, _form in {
    "Conv2d": "layer.Conv2d({n}, 2{how})",
    "SeparableConv2d": "layer.SeparableConv2d({n}, 2)",
    "MaxPool2d": "layer.MaxPool2d({window})",
    "AvgPool2d": "layer.AvgPool2d({window})",
    "Pooling2d": "layer.Pooling2d({window})",
    "GlobalAvgPool2d": "layer.GlobalAvgPool2d()",
    "BatchNorm2d": "layer.BatchNorm2d()",
}.items():
    RECIPES[f"layer.{_name}"] = lambda d, form=_form: _image_layer(d, form)


def _line_layer(d: Draw, text: str) -> Text:
    x = d.any(lambda x: x.rank == 3 and floating(x) and x.numel, 12)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = {text}")
    return f"{name}({x})"


for _name in ("MaxPool1d", "AvgPool1d"):
    RECIPES[f"layer.{_name}"] = lambda d, n=_name: _line_layer(d, f"layer.{n}(2, 1)")


@recipe_for("layer.Reshape")
def _reshape_layer(d: Draw) -> Text:
    from . import PARAMETERS

    x = d.any()
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.Reshape({PARAMETERS['shape'](d, x)})")
    return f"{name}({x})"


@recipe_for("layer.BatchNorm2d")
def _norm_layer(d: Draw) -> Text:
    x = d.any(lambda x: x.rank in (2, 4) and floating(x) and x.numel > 1, 12)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.BatchNorm2d({d.rng.choice(['', 'momentum=0.5', 'eps=1e-3'])})")
    return f"{name}({x})"
