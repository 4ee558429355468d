"""ONNX's preview domains: optimizers, gradients and attention with bodies of the model's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import autograd
from ...autograd.casting import cast
from ...tensor import Tensor, float64
from ..body import Body, body, reads_of
from ..running import Frame
from ..table import reads
from ..values import dtype_name

_TRAINING = "ai.onnx.preview.training"

#: A step of an optimizer: of the rate, the step's number, a weight, its gradient and its states.
Step = Callable[..., tuple[Tensor, ...]]


def _grouped(states: int, step: Step) -> Callable[..., tuple[Tensor, ...]]:
    """An optimizer of several weights: inputs and outputs come in groups, all weights first."""

    def run(rate: Tensor, count: Tensor, *xs: Tensor, **attributes: Any) -> tuple[Tensor, ...]:
        n, rest = divmod(len(xs), 2 + states)
        if rest:
            raise ValueError(f"got {len(xs)} tensors, want groups of {2 + states}")
        made = [step(cast(rate, xs[i].dtype), count, *xs[i::n], **attributes) for i in range(n)]
        return tuple(value for group in zip(*made, strict=True) for value in group)

    return run


def _adagrad(
    rate: Tensor, count: Tensor, x: Tensor, g: Tensor, h: Tensor, *, norm_coefficient: float = 0.0,
    decay_factor: float = 0.0, epsilon: float = 1e-6,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Duchi et al., 2011."""
    g = x * norm_coefficient + g
    h = h + g * g
    slower = rate / (cast(count, rate.dtype) * decay_factor + 1.0)
    return x - slower * g / (autograd.sqrt(h) + epsilon), h


def _adam(
    rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor, h: Tensor, *,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0, alpha: float = 0.9,
    beta: float = 0.999, epsilon: float = 1e-6,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Kingma and Ba, 2015; step 0 makes up for no start of the averages."""
    g = x * norm_coefficient + g
    v, h = v * alpha + g * (1 - alpha), h * beta + g * g * (1 - beta)
    steps = cast(count, rate.dtype)
    start = autograd.where(steps > 0, steps, 1.0)
    scale = autograd.sqrt(1.0 - beta**start) / (1.0 - alpha**start)
    adjusted = rate * autograd.where(steps > 0, scale, 1.0)
    moved = x - adjusted * v / (autograd.sqrt(h) + epsilon)
    return moved * (1 - norm_coefficient_post), v, h


def _momentum(
    rate: Tensor, count: Tensor, x: Tensor, g: Tensor, v: Tensor, *, norm_coefficient: float,
    alpha: float, beta: float, mode: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Polyak's momentum, "standard", or Nesterov's."""
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"Momentum: got mode {mode!r}, want 'standard' or 'nesterov'")
    g = x * norm_coefficient + g
    v = v * alpha + g * autograd.where(cast(count, g.dtype) > 0, beta, 1.0)
    return x - rate * (v if mode == "standard" else g + v * alpha), v


for _name, _states, _step in (("Adagrad", 1, _adagrad), ("Adam", 2, _adam)):
    reads(_name, domain=_TRAINING)(_grouped(_states, _step))
reads("Momentum", domain=_TRAINING)(_grouped(1, _momentum))


@reads("Gradient", domain=_TRAINING)
def gradient(
    *values: Tensor, xs: tuple[str, ...], y: str, zs: tuple[str, ...] = (), frame: Frame
) -> tuple[Tensor, ...]:
    """The gradients of the value named `y` for those named `xs`, at the values that are given for
    `xs` and `zs`: the nodes between them are run again."""
    names = (*xs, *zs)
    given = dict(zip(names, values, strict=True))
    for name in xs:
        given[name] = given[name].detach()
        given[name].requires_grad = True
    with autograd._training_scope(True):
        (made,) = Frame(_between(frame.body, names, y), frame.device, frame).run(given)
        return autograd.gradients(made, xs=[given[name] for name in xs], create_graph=True)


def _between(whole: Body, names: tuple[str, ...], y: str) -> Body:
    """The part of a body that makes `y` of the values that are named."""
    wanted, nodes = {y} - set(names), []
    for node in reversed(whole.nodes):
        if wanted & set(node.outputs):
            nodes.append(node)
            wanted = (wanted | reads_of(node)) - set(names)
    return body("Gradient", names, (y,), tuple(reversed(nodes)), whole.constants)


@reads("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None,
    softmax_precision: int | None = None, score_mod: Body | None = None,
    prob_mod: Body | None = None, frame: Frame,
) -> Tensor:  # fmt: skip
    """Attention whose scores and probabilities a body of the model's may change (PyTorch
    flex_attention); queries (batch, heads, steps, size), several heads of which may share one of
    the keys and values."""
    shared = q.shape[1] // k.shape[1]
    k, v = (autograd.repeat(x, shared, 1) if shared > 1 else x for x in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    wide = dtype_name(softmax_precision) if softmax_precision else _at_least_float32(q)
    scores = cast(autograd.matmul(q, autograd.swapaxes(k, -1, -2)) * factor, wide)
    if score_mod is not None:
        (scores,) = frame.call(score_mod, [scores])
    weights = autograd.softmax(scores, -1)
    if prob_mod is not None:
        (weights,) = frame.call(prob_mod, [weights])
    return autograd.matmul(cast(weights, v.dtype), v)


def _at_least_float32(x: Tensor) -> str:
    return "float64" if x.dtype == float64 else "float32"
