"""The steps of `workloads.py` in plain JAX: one jitted function whose parameters, momentum and
running statistics are donated. Images are NHWC and kernels HWIO."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from workloads import Case, batches, blocks, weights

IMAGES = ("NHWC", "HWIO", "NHWC")


def conv(x: jax.Array, w: jax.Array, stride: int, pad: int) -> jax.Array:
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=IMAGES
    )


def max_pool(x: jax.Array, size: int, stride: int, pad: int) -> jax.Array:
    padding = [(0, 0), (pad, pad), (pad, pad), (0, 0)]
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), padding
    )


class Running:
    """Batch normalisation with running averages, whose new values are collected."""

    def __init__(self, old: list) -> None:
        self.old, self.new = iter(old), []

    def normalise(self, x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        n = x.size // x.shape[-1]
        for batch in (mean, var * n / (n - 1)):
            self.new.append(0.9 * next(self.old) + 0.1 * lax.stop_gradient(batch))
        return (x - mean) * (scale * lax.rsqrt(var + 1e-5)) + bias


def residual(case: Case, x: jax.Array, p: Iterator, running: Running) -> jax.Array:
    """The residual network before its last dense layer."""

    def unit(x: jax.Array, kernel: int, stride: int) -> jax.Array:
        y = conv(x, next(p), stride, kernel // 2)
        return running.normalise(y, next(p), next(p))

    x = max_pool(jax.nn.relu(unit(x, 7, 2)), 3, 2, 1)
    for block in blocks(case.depth):
        y = x
        for one in block.units[:-1]:
            y = jax.nn.relu(unit(y, one.kernel, one.stride))
        last, short = block.units[-1], block.shortcut
        y = unit(y, last.kernel, last.stride)
        x = jax.nn.relu(y + (unit(x, 1, short.stride) if short else x))
    return x.mean((1, 2))


def lenet(x: jax.Array, p: Iterator) -> jax.Array:
    """LeNet before its last two dense layers."""
    for _ in range(2):
        x = max_pool(conv(x, next(p), 1, 0) + next(p), 2, 2, 0)
    return x.transpose(0, 3, 1, 2).reshape(len(x), -1)


def loss_of(case: Case, params: list, running: list, x: jax.Array, y: jax.Array):
    """The cross entropy and the new running averages."""
    p, norms = iter(params), Running(running)
    if case.depth:
        x = residual(case, x, p, norms)
    elif not case.widths:
        x = lenet(x, p)
    left = list(p)
    for w, b in zip(left[:-2:2], left[1:-2:2], strict=True):
        x = jax.nn.relu(x @ w + b)
    scores = jax.nn.log_softmax(x @ left[-2] + left[-1])
    return -jnp.take_along_axis(scores, y[:, None], 1).mean(), norms.new


def update(case: Case, state: tuple, x: jax.Array, y: jax.Array) -> tuple:
    """One step: the new parameters, momentum and running averages, and the loss."""
    params, momentum, running = state
    gradient = jax.value_and_grad(partial(loss_of, case), has_aux=True)
    (loss, running), grads = gradient(params, running, x, y)
    if case.momentum:
        momentum = [case.momentum * m + g for m, g in zip(momentum, grads, strict=True)]
        grads = momentum
    params = [p - case.lr * g for p, g in zip(params, grads, strict=True)]
    return (params, momentum, running), loss


def start(case: Case, dtype: str) -> tuple:
    """The initial state."""
    arrays = weights(case, dtype)
    params = [jnp.asarray(a.transpose(2, 3, 1, 0) if a.ndim == 4 else a) for a in arrays]
    momentum = [jnp.zeros_like(p) for p in params] if case.momentum else []
    scales = [p for p in params[1:-2:3] if case.depth]  # of convolution, scale, bias
    running = [make(scale) for scale in scales for make in (jnp.zeros_like, jnp.ones_like)]
    return params, momentum, running


def make(case: Case, how: str, threads: int, dtype: str = "float32") -> Callable[[], jax.Array]:
    """A call that makes one step and returns the loss before it. The number of threads is that of
    the cores that the process may use."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", dtype == "float64")

    def images(x: np.ndarray) -> np.ndarray:
        return x.transpose(0, 2, 3, 1) if x.ndim == 4 else x

    data = cycle([(jnp.asarray(images(x)), jnp.asarray(y)) for x, y in batches(case, dtype)])
    jitted = jax.jit(partial(update, case), donate_argnums=0)
    state = start(case, dtype)

    def step() -> jax.Array:
        nonlocal state
        state, loss = jitted(state, *next(data))
        return loss.block_until_ready()

    return step
