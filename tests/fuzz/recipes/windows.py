"""Convolution and pooling over any number of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import RECIPES, Text, floating, image, recipe_for, size

if TYPE_CHECKING:
    from ..draw import Draw


def _images(d: Draw, axes: int | None = None) -> str:
    """A batch with one to three spatial axes."""
    ranks = (3, 4, 5) if axes is None else (axes + 2,)
    x = d.any(lambda x: x.rank in ranks and floating(x) and x.numel, 12)
    if x is None and 4 in ranks:
        x = image(d)
    rank = d.rng.choice(ranks)
    return x or d.parameter((2, *(d.rng.randint(1, 3) for _ in range(rank - 1))))


def _window(d: Draw, x: str) -> tuple[int, ...]:
    """A window no larger than the image."""
    return tuple(d.rng.randint(1, min(3, n)) for n in size(d, x)[2:])


def _group(d: Draw, channels: int) -> int:
    return 2 if channels % 2 == 0 and d.rng.random() < 0.3 else 1


def _bias(d: Draw, channels: int) -> str:
    return d.parameter((channels,)) if d.rng.random() < 0.5 else "None"


@recipe_for("autograd.conv")
def _conv(d: Draw) -> Text:
    x = _images(d)
    channels = size(d, x)[1]
    group = _group(d, channels)
    weight = d.parameter((2 * group, channels // group, *_window(d, x)), -0.5, 0.5)
    how = d.rng.choice(["", "padding='same'", "padding=1", "stride=2", "padding=1, dilation=2"])
    how = "" if "dilation" in how and min(size(d, x)[2:]) < 3 else how
    given = f"{x}, {weight}, {_bias(d, 2 * group)}, group={group}"
    return f"autograd.conv({given}{how and ', ' + how})"


@recipe_for("autograd.conv_transpose")
def _conv_transpose(d: Draw) -> Text:
    x = _images(d)
    channels = size(d, x)[1]
    group = _group(d, channels)
    weight = d.parameter((channels, 2, *_window(d, x)), -0.5, 0.5)
    ways = ["", "stride=2", "stride=2, output_padding=1", "padding='SAME_UPPER', stride=2"]
    how = d.rng.choice([*ways, "dilation=2", "dilation=2, output_padding=1"])
    given = f"{x}, {weight}, {_bias(d, 2 * group)}, group={group}"
    return f"autograd.conv_transpose({given}{how and ', ' + how})"


def _pooling(d: Draw, x: str) -> str:
    how = d.rng.choice(["", "stride=1", "ceil_mode=True", "stride=2, ceil_mode=True"])
    return f"{_window(d, x)}{how and ', ' + how}"


@recipe_for("autograd.max_pool")
def _max_pool(d: Draw) -> Text:
    x = _images(d)
    if d.rng.random() < 0.8:
        return f"autograd.max_pool({x}, {_pooling(d, x)})"
    return f"autograd.max_pool({x}, {_pooling(d, x)}, return_indices=True)[0]"


@recipe_for("autograd.avg_pool")
def _avg_pool(d: Draw) -> Text:
    x = _images(d)
    more = d.rng.choice(["", ", count_include_pad=True", ", divisor_override=3"])
    return f"autograd.avg_pool({x}, {_pooling(d, x)}{more})"


@recipe_for("autograd.lp_pool")
def _lp_pool(d: Draw) -> Text:
    x = _images(d)
    return f"autograd.lp_pool({x}, {d.rng.choice(['1', '2', '3'])}, {_pooling(d, x)})"


@recipe_for("autograd.max_unpool", *(f"layer.MaxUnpool{axes}d" for axes in (1, 2, 3)))
def _max_unpool(d: Draw) -> Text:
    x = _images(d)
    window, extents = _window(d, x), size(d, x)[2:]
    made = f"*autograd.max_pool({x}, {window}, return_indices=True)"
    if d.rng.random() < 0.5:
        return f"autograd.max_unpool({made}, {window}, output_size={extents})"
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.MaxUnpool{len(extents)}d({window})")
    return f"{name}({made}, {extents})"


def _layer(d: Draw, text: str, axes: int) -> Text:
    name, x = f"self.l{len(d.program.init)}", _images(d, axes)
    n, window = d.rng.randint(1, 3), _window(d, x)
    d.define(f"{name} = {text.format(n=n, k=window if axes > 1 else window[0])}")
    return f"{name}({x})"


_LAYERS = {
    "Conv": "({n}, {k}, padding=1)",
    "ConvTranspose": "({n}, {k}, stride=2, activation='RELU')",
    "MaxPool": "({k}, ceil_mode=True)",
    "AvgPool": "({k}, stride=1)",
    "LPPool": "(2, {k})",
    "GlobalAvgPool": "()",
}
for _axes in (1, 2, 3):
    for _name, _form in _LAYERS.items():
        _whole = f"layer.{_name}{_axes}d"
        if _whole not in RECIPES:
            RECIPES[_whole] = lambda d, text=_whole + _form, axes=_axes: _layer(d, text, axes)
