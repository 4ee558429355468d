"""Steps of training an LSTM and a GPT, and attention alone, against JAX's, in turns.

    python benches/python/jax_sequences.py                  # in an environment with jax
    python benches/python/jax_sequences.py --only LSTM

The models are those of `recurrent.py`, `gpt.py` and `attention.py`. JAX's steps are one jitted
function whose parameters and moments are donated; its LSTM has the product of the inputs for all
steps at once and scans over the rest. Prints the medians, their ratio, and the peak memory of a
process. Each contender lives in a process of its own.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import attention
import gpt
import numpy as np
import recurrent
from contenders import Contender, begin, compare

Step = Callable[[], Any]


def _our_lstm(name: str, threads: int) -> Step:
    step = recurrent.ours(recurrent.CASES[name], threads=threads)[0]
    return lambda: step().item()


def _our_gpt(name: str, threads: int) -> Step:
    return gpt.ours(gpt.MODELS[name], threads, False)


def _our_attention(name: str, threads: int) -> Step:
    return attention.ours(int(name), False, threads)


# ---- JAX's -----------------------------------------------------------------------------------


def _drawn(rng: np.random.Generator, *shape: int) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(rng.standard_normal(shape) * shape[0] ** -0.5, jnp.float32)


def _trained(loss: Callable[..., Any], parameters: Any, update: Callable[..., Any]) -> Step:
    """Steps of an optimizer on a loss of parameters alone; each waits for its loss."""
    import jax

    @partial(jax.jit, donate_argnums=0)
    def step(state: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(state[0])
        return update(state, slopes), value

    state = [
        (
            parameters,
            jax.tree.map(np.zeros_like, parameters),
            jax.tree.map(np.zeros_like, parameters),
            0,
        )
    ]

    def run() -> float:
        state[0], value = step(state[0])
        return float(value)

    return run


def _sgd(state: Any, slopes: Any) -> Any:
    import jax

    parameters, *rest = state
    return (jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slopes), *rest)


def _adamw(state: Any, slopes: Any) -> Any:
    import jax
    from jax import numpy as jnp

    parameters, m, v, count = state
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slopes)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, slopes)
    one, two = 1 - 0.9**count, 1 - 0.999**count
    moved = lambda p, m, v: p * (1 - 1e-5) - 1e-3 * (m / one) / (jnp.sqrt(v / two) + 1e-8)  # noqa: E731
    return jax.tree.map(moved, parameters, m, v), m, v, count


def _cross_entropy(logits: Any, labels: Any) -> Any:
    import jax
    from jax import numpy as jnp

    rows = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(rows, labels[:, None], 1).mean()


def their_lstm(name: str, threads: int) -> Step:
    import jax
    from jax import numpy as jnp

    case, rng = recurrent.CASES[name], np.random.default_rng(0)
    x, labels = (jnp.asarray(a) for a in recurrent.batches(case)[0])
    width = case.hidden if case.inputs == "embedded" else case.size
    sizes = [width, *[case.hidden] * (case.layers - 1)]
    parameters = {
        "table": _drawn(rng, case.size, width),
        "layers": [
            (_drawn(rng, n, 4 * case.hidden), _drawn(rng, case.hidden, 4 * case.hidden),
             jnp.zeros(4 * case.hidden))
            for n in sizes
        ],
        "head": (_drawn(rng, case.hidden, case.classes), jnp.zeros(case.classes)),
    }  # fmt: skip

    def layer(x: Any, weights: Any) -> Any:
        own, state, bias = weights

        def step(carry: Any, given: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(given + h @ state, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], state.shape[0]))
        return jax.lax.scan(step, (zeros, zeros), x @ own + bias)[1]

    def loss(p: Any) -> Any:
        y = x
        if case.inputs == "embedded":
            y = p["table"][x]
        elif case.inputs == "one-hot":
            y = jax.nn.one_hot(x, case.size)
        for weights in p["layers"]:
            y = layer(y, weights)
        logits = y.reshape(-1, case.hidden) @ p["head"][0] + p["head"][1]
        return _cross_entropy(logits, labels.reshape(-1))

    return _trained(loss, parameters, _sgd)


def their_gpt(name: str, threads: int) -> Step:
    import jax
    from jax import numpy as jnp

    sizes, rng = gpt.MODELS[name], np.random.default_rng(0)
    x, labels = (jnp.asarray(a) for a in gpt.batch(sizes))
    width, table = (
        sizes.width,
        jnp.asarray(rng.standard_normal((sizes.context, sizes.width)), jnp.float32),
    )
    norm = lambda: (jnp.ones(width), jnp.zeros(width))  # noqa: E731
    dense = lambda n, m: (_drawn(rng, n, m), jnp.zeros(m))  # noqa: E731
    parameters = {
        "embed": _drawn(rng, sizes.vocabulary, width),
        "blocks": [
            (norm(), dense(width, 3 * width), dense(width, width), norm(),
             dense(width, 4 * width), dense(4 * width, width))
            for _ in range(sizes.layers)
        ],
        "norm": norm(), "head": dense(width, sizes.vocabulary),
    }  # fmt: skip

    def normalised(x: Any, p: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        away = x - mean
        return away * jax.lax.rsqrt((away**2).mean(-1, keepdims=True) + 1e-5) * p[0] + p[1]

    def block(x: Any, p: Any) -> Any:
        first, joint, project, second, wide, narrow = p
        parts = normalised(x, first) @ joint[0] + joint[1]
        q, k, v = (one.reshape(*x.shape[:2], sizes.heads, -1) for one in jnp.split(parts, 3, -1))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
        x = x + y @ project[0] + project[1]
        y = jax.nn.gelu(normalised(x, second) @ wide[0] + wide[1], approximate=False)
        return x + y @ narrow[0] + narrow[1]

    def loss(p: Any) -> Any:
        y = p["embed"][x] + table
        for weights in p["blocks"]:
            y = block(y, weights)
        logits = normalised(y, p["norm"]) @ p["head"][0] + p["head"][1]
        return _cross_entropy(logits.reshape(-1, sizes.vocabulary), labels)

    return _trained(loss, parameters, _adamw)


def _their_attention(name: str, threads: int) -> Step:
    import jax

    q, k, v, dy = (jax.numpy.asarray(a.transpose(0, 2, 1, 3)) for a in attention.arrays(int(name)))

    @jax.jit
    def slopes(q: Any, k: Any, v: Any) -> Any:
        return jax.vjp(jax.nn.dot_product_attention, q, k, v)[1](dy)

    return lambda: jax.block_until_ready(slopes(q, k, v))


#: Titles, and both sides with the name of a model.
ROWS = {
    **{
        f"LSTM, {name}": (_our_lstm, their_lstm, name)
        for name in ("char", "char one-hot", "two layers")
    },
    **{f"GPT, {name}": (_our_gpt, their_gpt, name) for name in gpt.MODELS},
    **{
        f"attention, {n} steps": (_our_attention, _their_attention, str(n))
        for n in (512, 1024, 2048)
    },
}


def main() -> None:
    """Prints the table."""
    add = (parser := argparse.ArgumentParser(description=__doc__.split("\n")[0])).add_argument
    add("--only", default="")
    add("--threads", type=int, default=2)
    add("--turns", type=int, default=13)
    args = parser.parse_args()
    os.environ["NPROC"] = str(args.threads)
    begin("JAX", args.threads)
    for title, (ours, theirs, name) in ROWS.items():
        if args.only in title:
            pair = tuple(Contender(make, name, args.threads) for make in (ours, theirs))
            compare(title, pair, args.turns, 2)


if __name__ == "__main__":
    main()
