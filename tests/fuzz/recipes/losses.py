"""Losses, as functions and as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import RECIPES, Text, matrix, recipe_for, rows, size

if TYPE_CHECKING:
    from ..draw import Draw


_LOSSES = {
    "softmax_cross_entropy": ("SoftMaxCrossEntropy", "{x}", "draw({seed}, {shape}, 0, 1)"),
    "cross_entropy": ("CrossEntropy", "autograd.softmax({x})", "draw({seed}, {shape}, 0, 1)"),
    "binary_cross_entropy": ("BinaryCrossEntropy", "{x}.sigmoid()", "draw({seed}, {shape}, 0, 1)"),
    "mse_loss": ("MeanSquareError", "{x}", "draw({seed}, {shape})"),
}
for _short, (_cls, _x, _t) in _LOSSES.items():
    RECIPES[f"autograd.{_short}"] = lambda d, f=f"autograd.{_short}({_x}, {_t})": rows(d, f)
    RECIPES[f"autograd.{_cls}()"] = lambda d, f=f"autograd.{_cls}({_t})({_x})[0]": rows(d, f)


def _loss_layer(d: Draw, name: str, x: str, t: str) -> Text:
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{name}()")
    return rows(d, f"{place}({x}, held({t}))")


for _cls, _x, _t in _LOSSES.values():
    RECIPES[f"layer.{_cls}"] = lambda d, args=(_cls, _x, _t): _loss_layer(d, *args)
RECIPES["autograd.RankingLoss()"] = lambda d: rows(d, "autograd.RankingLoss()({x}, {same})[0]")

# ---- losses of classes ---------------------------------------------------------------------------

_REDUCTIONS = ("'mean'", "'sum'", "'none'")


def _class_options(d: Draw, classes: int) -> list[str]:
    """Options of losses of classes, as texts."""
    weight = f"np.linspace(0.5, 1.5, {classes})"
    some = [f"weight={weight}", f"ignore_index={d.rng.choice([0, 1, -5])}"]
    some.append(f"reduction={d.rng.choice(_REDUCTIONS)}")
    return [one for one in some if d.rng.random() < 0.5]


def _labels(d: Draw, x: str, axis: int) -> str:
    shape = list(size(d, x))
    classes = shape.pop(axis)
    return f"whole({d.seed()}, {tuple(shape)}, {classes})"


def _of_classes(d: Draw, form: str, shares: bool) -> Text:
    """A loss of labels (or shares) of some tensor's rows, with options."""
    x = matrix(d) if d.rng.random() < 0.6 else d.any(lambda x: x.rank > 1 and x.dtype.is_float)
    if x is None or x not in d.pool or not d.value(x).numel or len(d.worlds) > 1:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    options = _class_options(d, size(d, x)[axis])
    t = _labels(d, x, axis)
    if shares:
        if d.rng.random() < 0.4:
            options.append("label_smoothing=0.1")
        if d.rng.random() < 0.3:
            options = [one for one in options if "ignore" not in one]
            t = f"draw({d.seed()}, {size(d, x)}, 0.1, 1)"
    return form.format(x=x, t=t, options=", ".join([f"axis={axis}", *options]))


def _layer_of_classes(d: Draw, name: str, shares: bool) -> Text:
    place = f"self.l{len(d.program.init)}"
    text = _of_classes(d, "{x} | {t} | {options}", shares)
    if text is None:
        return None
    x, t, options = text.split(" | ")
    d.define(f"{place} = layer.{name}({options})")
    return f"{place}({x}, held({t}))"


for _name, _cls, _shares in (
    ("softmax_cross_entropy", "SoftMaxCrossEntropy", True),
    ("nll_loss", "NLLLoss", False),
):
    RECIPES[f"autograd.{_name}"] = lambda d, n=_name, s=_shares: _of_classes(
        d, f"autograd.{n}({{x}}, {{t}}, {{options}})", s
    )
    RECIPES[f"layer.{_cls}"] = lambda d, c=_cls, s=_shares: _layer_of_classes(d, c, s)

# ---- losses of values ----------------------------------------------------------------------------

RECIPES["autograd.mse_loss"] = lambda d: rows(
    d, f"autograd.mse_loss({{x}}, draw({{seed}}, {{shape}}), {d.rng.choice(_REDUCTIONS)})"
)
_TARGET, _OTHER = "draw({seed}, {shape}, 0.1, 1)", "{same}"
#: Function and layer, what follows the predictions, and options, in the order of the layer's.
_OF_VALUES = {
    "binary_cross_entropy_with_logits": ("BCEWithLogitsLoss", (_TARGET,), ("weight=0.5",)),
    "kl_div": ("KLDivLoss", (_TARGET,), ("log_target=True",)),
    "l1_loss": ("L1Loss", (_OTHER,), ()),
    "smooth_l1_loss": ("SmoothL1Loss", (_OTHER,), ("beta=0.3",)),
    "huber_loss": ("HuberLoss", (_OTHER,), ("delta=0.3",)),
    "triplet_margin_loss": (
        "TripletMarginLoss", ("{x} * 0.5", "{x} - 0.25"), ("p=1", "swap=True", "margin=0.3"),
    ),
}  # fmt: skip


def _of_values(d: Draw, name: str, as_layer: bool) -> Text:
    cls, more, choices = _OF_VALUES[name]
    options = [one for one in choices if d.rng.random() < 0.5]
    options.append(f"reduction={d.rng.choice(_REDUCTIONS)}")
    if not as_layer:
        return rows(d, f"autograd.{name}({', '.join(['{x}', *more, *options])})")
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{cls}({', '.join(options)})")
    held = [f"held({one})" if one in (_TARGET, _OTHER) else one for one in more]
    return rows(d, f"{place}({', '.join(['{x}', *held])})")


for _name, (_cls, _, _) in _OF_VALUES.items():
    RECIPES[f"autograd.{_name}"] = lambda d, n=_name: _of_values(d, n, False)
    RECIPES[f"layer.{_cls}"] = lambda d, n=_name: _of_values(d, n, True)


def _angle(d: Draw, form: str) -> Text:
    """A function of two matrices, and of a sign for each row."""
    x = matrix(d)
    if x is None or x not in d.pool or len(d.worlds) > 1:
        return None
    signs = f"np.sign(draw({d.seed()}, {size(d, x)[:1]}))"
    return form.format(x=x, signs=signs)


RECIPES["autograd.cosine_similarity"] = lambda d: _angle(
    d, f"autograd.cosine_similarity({{x}}, {{x}} - 0.3, {d.rng.choice([0, 1, -1])})"
)
RECIPES["autograd.cosine_embedding_loss"] = lambda d: _angle(
    d,
    "autograd.cosine_embedding_loss({x}, {x} - 0.3, {signs}, "
    f"reduction={d.rng.choice(_REDUCTIONS)})",
)


def _angle_layer(d: Draw, text: str, call: str) -> Text:
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{text}")
    return _angle(d, place + call)


RECIPES["layer.CosineSimilarity"] = lambda d: _angle_layer(
    d, "CosineSimilarity()", "({x}, {x} - 0.3)"
)
RECIPES["layer.CosineEmbeddingLoss"] = lambda d: _angle_layer(
    d, "CosineEmbeddingLoss(0.1)", "({x}, {x} - 0.3, held({signs}))"
)


def _ctc(d: Draw, form: str) -> Text:
    """Alignments of some tensor of three axes."""
    x = d.any(lambda x: x.rank == 3 and x.dtype.is_float and x.numel, 12)
    if x is None or len(d.worlds) > 1 or size(d, x)[0] > 12:
        return None
    time, batch, classes = size(d, x)
    labels = f"whole({d.seed()}, {(batch, 2)}, {classes})"
    steps, counts = f"np.full({batch}, {time})", f"whole({d.seed()}, {(batch,)}, 3)"
    return form.format(x=f"autograd.log_softmax({x}, 2)", a=labels, b=steps, c=counts)


RECIPES["autograd.ctc_loss"] = lambda d: _ctc(
    d, "autograd.ctc_loss({x}, {a}, {b}, {c}, zero_infinity=True)"
)


@recipe_for("layer.CTCLoss")
def _ctc_layer(d: Draw) -> Text:
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.CTCLoss(zero_infinity=True)")
    return _ctc(d, place + "({x}, from_numpy({a}), from_numpy({b}), from_numpy({c}))")
