"""Layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import (
    RECIPES,
    Text,
    floating,
    image,
    matrix,
    recipe_for,
)

if TYPE_CHECKING:
    from ..draw import Draw


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
