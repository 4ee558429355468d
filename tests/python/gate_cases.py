"""Layers that pad, fold, gate and measure: how each is made and called, and the same in NumPy."""

import math

import numpy as np
from layer_calls import normal
from margin_cases import multi
from singa_rs import autograd, layer

LINES, IMAGES, VOLUMES = normal(2, 3, 5), normal(2, 3, 4, 5), normal(1, 2, 3, 3, 4)
ROWS, CLASSES = normal(6, 5), np.int32([1, 0, 4, 2, 2, 3])
SIGNS, POSITIVE = np.sign(ROWS), np.abs(ROWS)
OTHER = normal(6, 5)


def padded(mode, spatial, sides):
    """With PyTorch's order of sides."""
    pairs = [(0, 0)] * 2 + [sides[2 * i : 2 * i + 2] for i in reversed(range(spatial))]
    return lambda x: np.pad(x, pairs, mode)


def softmax(x, axis):
    made = np.exp(x - x.max(axis, keepdims=True))
    return made / made.sum(axis, keepdims=True)


def relu(x):
    return np.maximum(x, 0)


def columns(x):
    """Windows of 2 by 3, 2 apart."""
    ends = [(i, j) for i in (0, 1) for j in (0, 1, 2)]
    parts = [x[:, :, None, i : i + 3 : 2, j : j + 3 : 2] for i, j in ends]
    return np.concatenate(parts, 2).reshape(2, 18, -1)


SIDES = (1, 2, 0, 1, 2, 0)
KINDS = {"Zero": "constant", "Reflection": "reflect", "Replication": "edge", "Circular": "wrap"}
#: By the layer's name: the layer, its arguments, the reference.
CASES = {
    **{
        f"{kind}Pad{n}d": (
            getattr(layer, f"{kind}Pad{n}d")(SIDES[: 2 * n]),
            [(LINES, IMAGES, VOLUMES)[n - 1]],
            padded(mode, n, SIDES),
        )
        for kind, mode in KINDS.items()
        for n in (1, 2, 3)
    },
    **{
        f"ConstantPad{n}d": (
            getattr(layer, f"ConstantPad{n}d")(2, 1.5),
            [(LINES, IMAGES, VOLUMES)[n - 1]],
            lambda x, n=n: np.pad(x, [(0, 0)] * 2 + [(2, 2)] * n, constant_values=1.5),
        )
        for n in (1, 2, 3)
    },
    "CELU": (layer.CELU(0.7), [ROWS], lambda x: relu(x) + np.minimum(0, 0.7 * np.expm1(x / 0.7))),
    "Hardtanh": (layer.Hardtanh(-0.5, 0.7), [ROWS], lambda x: np.clip(x, -0.5, 0.7)),
    "ReLU6": (layer.ReLU6(), [ROWS * 5], lambda x: np.clip(x, 0, 6)),
    "Threshold": (layer.Threshold(0.2, 7.0), [ROWS], lambda x: np.where(x > 0.2, x, 7)),
    "Hardshrink": (layer.Hardshrink(0.4), [ROWS], lambda x: np.where(np.abs(x) > 0.4, x, 0)),
    "Softshrink": (layer.Softshrink(), [ROWS], lambda x: np.sign(x) * relu(np.abs(x) - 0.5)),
    "Tanhshrink": (layer.Tanhshrink(), [ROWS], lambda x: x - np.tanh(x)),
    "LogSigmoid": (layer.LogSigmoid(), [ROWS], lambda x: -np.logaddexp(0, -x)),
    "GLU": (layer.GLU(0), [ROWS], lambda x: x[:3] / (1 + np.exp(-x[3:]))),
    "LogSoftmax": (layer.LogSoftmax(), [IMAGES], lambda x: np.log(softmax(x, -1))),
    "Softmin": (layer.Softmin(1), [IMAGES], lambda x: softmax(-x, 1)),
    "Softmax2d": (layer.Softmax2d(), [IMAGES], lambda x: softmax(x, 1)),
    "RReLU": (layer.RReLU(), [ROWS], lambda x: np.where(x < 0, x * (1 / 8 + 1 / 3) / 2, x)),
    "PReLU": (layer.PReLU(), [ROWS], lambda x: np.where(x < 0, 0.25 * x, x)),
    "PReLU, channels": (layer.PReLU(3, 0.1), [IMAGES], lambda x: np.where(x < 0, 0.1 * x, x)),
    "Unfold": (
        layer.Unfold((2, 3), 1, 0, 2),
        [IMAGES],
        columns,
    ),
    "Fold": (
        layer.Fold((4, 6), 2, stride=2),
        [normal(2, 12, 6)],
        lambda x: x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6),
    ),
    "Unflatten": (layer.Unflatten(0, (2, -1)), [ROWS], lambda x: x.reshape(2, 3, 5)),
    "ChannelShuffle": (
        layer.ChannelShuffle(2),
        [normal(2, 6, 3)],
        lambda x: x.reshape(2, 2, 3, 3).swapaxes(1, 2).reshape(x.shape),
    ),
    "LocalResponseNorm": (
        layer.LocalResponseNorm(1, 0.5, 0.6, 2.0),
        [IMAGES],
        lambda x: x / (2 + 0.5 * x * x) ** 0.6,
    ),
    "AlphaDropout": (layer.AlphaDropout(), [ROWS], lambda x: x),
    "FeatureAlphaDropout": (layer.FeatureAlphaDropout(0.2), [IMAGES], lambda x: x),
    "PairwiseDistance": (
        layer.PairwiseDistance(1, 0.0, True),
        [ROWS, OTHER],
        lambda a, b: np.abs(a - b).sum(-1, keepdims=True),
    ),
    "UpsamplingNearest2d": (
        layer.UpsamplingNearest2d(scale_factor=2),
        [IMAGES],
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
    "UpsamplingBilinear2d": (
        layer.UpsamplingBilinear2d((7, 5)),
        [IMAGES],
        lambda x: np.stack(
            [(x[:, :, i // 2] + x[:, :, (i + 1) // 2]) / 2 for i in range(7)], 2
        ),
    ),
    "CrossEntropyLoss": (
        layer.CrossEntropyLoss(),
        [ROWS, CLASSES],
        lambda x, t: [-np.log(softmax(x, 1))[range(6), t].mean()],
    ),
    "MSELoss": (layer.MSELoss("sum"), [ROWS, OTHER], lambda x, t: [((x - t) ** 2).sum()]),
    "BCELoss": (
        layer.BCELoss(),
        [softmax(ROWS, 1), softmax(OTHER, 1)],
        lambda x, t: [-(t * np.log(x) + (1 - t) * np.log(1 - x)).mean()],
    ),
    "MarginRankingLoss": (
        layer.MarginRankingLoss(0.3),
        [ROWS, OTHER, SIGNS],
        lambda a, b, t: [relu(0.3 - t * (a - b)).mean()],
    ),
    "HingeEmbeddingLoss": (
        layer.HingeEmbeddingLoss(reduction="sum"),
        [OTHER, SIGNS],
        lambda x, t: [np.where(t > 0, x, relu(1 - x)).sum()],
    ),
    "SoftMarginLoss": (
        layer.SoftMarginLoss(), [OTHER, SIGNS], lambda x, t: [np.logaddexp(0, -t * x).mean()]
    ),
    "MultiLabelSoftMarginLoss": (
        layer.MultiLabelSoftMarginLoss(),
        [OTHER, np.float32(SIGNS > 0)],
        lambda x, t: [(t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)).mean()],
    ),
    "MultiMarginLoss": (
        layer.MultiMarginLoss(2, 0.5), [ROWS, CLASSES], lambda x, t: [multi(x, 2, 0.5).mean()]
    ),
    "MultiLabelMarginLoss": (
        layer.MultiLabelMarginLoss(),
        [ROWS, np.int32([[0, -1, 1, 1, 1]] * 6)],
        lambda x, t: [(relu(1 - x[:, :1] + x[:, 1:]).sum(1) / 5).mean()],
    ),
    "TripletMarginWithDistanceLoss": (
        layer.TripletMarginWithDistanceLoss(autograd.cosine_similarity, 0.5),
        [ROWS, OTHER, POSITIVE],
        lambda a, b, c: [relu(cosine(a, b) - cosine(a, c) + 0.5).mean()],
    ),
    "PoissonNLLLoss": (
        layer.PoissonNLLLoss(), [ROWS, POSITIVE], lambda x, t: [(np.exp(x) - t * x).mean()]
    ),
    "GaussianNLLLoss": (
        layer.GaussianNLLLoss(True),
        [ROWS, OTHER, POSITIVE],
        lambda x, t, v: [
            (np.log(v) + (x - t) ** 2 / v + math.log(2 * math.pi)).mean() / 2
        ],
    ),
}  # fmt: skip


def cosine(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


#: Those whose result depends on what they draw or make.
OWN = {
    "Bilinear": (layer.Bilinear(3), [ROWS, OTHER[:, :2]]),
    "Bilinear, sizes": (layer.Bilinear(5, 2, 3, bias=False), [ROWS, OTHER[:, :2]]),
    "EmbeddingBag": (layer.EmbeddingBag(5, 3, "max", padding_idx=-1), [CLASSES[None]]),
}
MADE = {**{name: (one, given) for name, (one, given, _) in CASES.items()}, **OWN}
