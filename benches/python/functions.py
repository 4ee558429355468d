"""Functions of usual sizes, forward and with their gradient, next to PyTorch's in the same run.

    python benches/python/functions.py        # in an environment with singa_rs and torch
    python benches/python/functions.py sort   # those with `sort` in their name

Prints the median times of interleaved rounds on two threads, and the median of their ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from singa_rs import autograd, device, tensor

Call = Callable[[], object]

#: Seconds of a turn that are not timed, and that are.
SETTLING, TURN = 0.03, 0.05

RNG = np.random.default_rng(0)
#: Functions that take parameters of the last axis beside x.
PARAMETERS = {"layer_norm": 2, "rms_norm": 1}


def with_shape(function: Callable) -> Callable:
    """PyTorch's function of x, the normalised shape and the parameters, as one of x and these."""
    return lambda x, *parameters: function(x, x.shape[1:], *parameters)


def both(array: np.ndarray) -> tuple[tensor.Tensor, torch.Tensor]:
    """An array of either library."""
    return tensor.from_numpy(array), torch.from_numpy(array)


def vector(length: int) -> tuple[tensor.Tensor, torch.Tensor]:
    """A vector of either library."""
    return both(RNG.normal(size=length).astype(np.float32))


def products(k: int, n: int) -> Iterator[tuple]:
    """Products of a row or a column with a matrix, and with each other."""
    (a, b), (c, d) = vector(k), vector(n)
    yield "row @ matrix", (k, n), *[lambda x, r=r[None]: r @ x for r in (a, b)], False
    yield "row @ transposed matrix", (k, n), *[lambda x, r=r[None]: r @ x.T for r in (c, d)], False
    yield "matrix @ column", (k, n), *[lambda x, r=r[:, None]: x @ r for r in (c, d)], False
    yield f"column @ row of {n}", (k, 1), *[lambda x, r=r[None]: x @ r for r in (c, d)], False


_PLACES = RNG.integers(0, 1000, (1000, 1000))
#: Places along the last axis, of either library.
PLACES = both(_PLACES)


#: Places along the last axis of (256, 1024) and what meets there; rows of 1,000 and what is added.
INTO, MET = both(_PLACES[:256, :900]), both(RNG.normal(size=(256, 900)).astype(np.float32))
ROWS, ADDED = both(_PLACES[:5].ravel()), both(RNG.normal(size=(5000, 256)).astype(np.float32))

_LABELS = RNG.integers(0, 8192, 512)
_LABELS[::4] = -100
#: Classes of rows, a quarter of which does not count, of either library.
LABELS = both(_LABELS)

#: name, shape, ours, PyTorch's, whether a gradient is timed, too.
CASES = [
    ("tanh", (512, 1024), autograd.tanh, torch.tanh, True),
    ("gelu", (512, 1024), autograd.gelu, F.gelu, True),
    *(
        (name, (512, 1024), *[lambda x, n=name: getattr(abs(x), n)()] * 2, True)
        for name in ("exp2", "log1p", "log2", "log10")
    ),
    ("leaky_relu", (1000, 1000), autograd.leaky_relu, F.leaky_relu, True),
    (
        "take_along_axis",
        (1000, 1000),
        lambda x: autograd.take_along_axis(x, PLACES[0], 1),
        lambda x: torch.gather(x, 1, PLACES[1]),
        True,
    ),
    *(
        (f"power {n}", (1000, 1000), lambda x, n=n: abs(x) ** n, lambda x, n=n: abs(x) ** n, True)
        for n in (2, 3, 0.5, -1, -0.5, 2.5)
    ),
    *(
        (f"{name} axis {axis}", shape, *[lambda x, n=name, a=axis: getattr(x, n)(*a)] * 2, False)
        for name in ("sum", "amax")
        for shape in ((100, 100), (1000, 1000), (4000, 1000))
        for axis in ((), (0,), (1,))
    ),
    *(
        row
        for sizes in ((768, 768), (768, 3072), (2048, 1000), (4096, 4096))
        for row in products(*sizes)
    ),
    ("softmax", (4096, 1024), lambda x: autograd.softmax(x, -1), lambda x: F.softmax(x, -1), True),
    ("layer_norm", (4096, 384), autograd.layer_norm, with_shape(F.layer_norm), True),
    ("layer_norm", (2048, 1024), autograd.layer_norm, with_shape(F.layer_norm), True),
    ("rms_norm", (4096, 384), autograd.rms_norm, with_shape(F.rms_norm), True),
    (
        "cross entropy with rows to ignore",
        (512, 8192),
        lambda x: autograd.softmax_cross_entropy(x, LABELS[0], ignore_index=-100),
        lambda x: F.cross_entropy(x, LABELS[1]).reshape(1),
        True,
    ),
    (
        "nll_loss",
        (512, 8192),
        lambda x: autograd.nll_loss(x, LABELS[0], ignore_index=-100),
        lambda x: F.nll_loss(x, LABELS[1]).reshape(1),
        True,
    ),
    *(
        (
            f"{name} {window}",
            shape,
            lambda x, n=name, w=window, s=step: getattr(autograd, n)(x, w, s),
            lambda x, n=name, w=window, s=step: getattr(F, n)(x, w, s),
            True,
        )
        for name in ("max_pool2d", "avg_pool2d")
        for shape, window, step in (
            ((16, 512, 7, 7), 7, 7),
            ((16, 64, 56, 56), 2, 2),
            ((8, 64, 112, 112), 3, 2),
        )
    ),
    *(
        (
            f"scatter_reduce {how}",
            (256, 1024),
            lambda x, how=how: autograd.scatter_reduce(x, 1, INTO[0], MET[0], how),
            lambda x, how=how: x.scatter_reduce(1, INTO[1], MET[1], how),
            True,
        )
        for how in ("sum", "prod", "amax")
    ),
    (
        "index_add",
        (1000, 256),
        lambda x: autograd.index_add(x, 0, ROWS[0], ADDED[0]),
        lambda x: x.index_add(0, ROWS[1], ADDED[1]),
        True,
    ),
    ("roll", (512, 1024), lambda x: autograd.roll(x, 3, 1), lambda x: torch.roll(x, 3, 1), True),
    ("remainder", (512, 1024), lambda x: x % 0.3, lambda x: x % 0.3, True),
    *(
        (
            f"cummax axis {axis}",
            (1000, 1000),
            lambda x, a=axis: x.cummax(a)[0],
            lambda x, a=axis: x.cummax(a)[0],
            True,
        )
        for axis in (1, 0)
    ),
    *(
        (
            f"cumsum axis {axis}",
            shape,
            lambda x, a=axis: x.cumsum(a),
            lambda x, a=axis: x.cumsum(a),
            g,
        )
        for shape, axis, g in (
            ((1000, 1000), 1, True),
            ((1000, 1000), 0, True),
            ((1_000_000,), 0, False),
            ((32, 50257), 1, False),
        )
    ),
    *(
        (
            f"sort axis {axis}",
            shape,
            lambda x, a=axis: x.sort(a)[0],
            lambda x, a=axis: x.sort(a)[0],
            g,
        )
        for shape, axis, g in (
            ((1000, 1000), 1, True),
            ((1000, 1000), 0, False),
            ((1_000_000,), 0, False),
            ((32, 50257), 1, False),
        )
    ),
    *(
        (f"topk {k}", shape, lambda x, k=k: x.topk(k)[0], lambda x, k=k: x.topk(k)[0], g)
        for shape, k, g in (
            ((1000, 1000), 5, True),
            ((1000, 1000), 50, True),
            ((32, 50257), 50, False),
            ((1_000_000,), 100, False),
        )
    ),
]


def pairs(only: str) -> Iterator[tuple[str, Call, Call]]:
    """Name, our call and PyTorch's of each comparison."""
    for name, shape, ours, theirs, has_gradient in CASES:
        if only not in name:
            continue
        array = RNG.normal(size=shape).astype(np.float32)
        width = RNG.normal(size=shape[-1:]).astype(np.float32)
        arrays = [array, *[width] * PARAMETERS.get(name, 0)]
        label = f"{name} {'x'.join(map(str, shape))}"
        yield label, *forward(ours, theirs, arrays)
        if has_gradient:
            yield f"{label}, gradient", *backward(ours, theirs, arrays)


def forward(ours: Callable, theirs: Callable, arrays: list[np.ndarray]) -> list[Call]:
    """The functions alone."""
    xs, ts = map(tensor.from_numpy, arrays), map(torch.from_numpy, arrays)
    xs, ts = tuple(xs), tuple(t.clone() for t in ts)

    def with_torch() -> object:
        with torch.no_grad():
            return theirs(*ts)

    def with_ours() -> object:
        with autograd.no_grad():
            return ours(*xs)

    return [with_ours, with_torch]


def backward(ours: Callable, theirs: Callable, arrays: list[np.ndarray]) -> list[Call]:
    """The functions, and the gradients of their results' products with a constant."""
    xs = [tensor.from_numpy(array) for array in arrays]
    ts = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    for x in xs:
        x.stores_grad = True
    dy = RNG.normal(size=theirs(*ts).shape).astype(np.float32)
    mine, other = tensor.from_numpy(dy), torch.from_numpy(dy)

    def with_ours() -> object:
        with autograd._training_scope(True):
            return autograd.gradients(ours(*xs), mine, xs=xs)

    return [with_ours, lambda: torch.autograd.grad(theirs(*ts), ts, other)]


def seconds(call: Call) -> float:
    """How long one call takes, on average over a turn. Threads of the other library go on waiting
    actively for a while, so a turn begins with calls that are not timed."""
    repeat(call, SETTLING)
    return repeat(call, TURN)


def repeat(call: Call, least: float) -> float:
    """Calls for so many seconds at least; the mean time."""
    count, start = 0, time.perf_counter()
    while (past := time.perf_counter() - start) < least:
        call()
        count += 1
    return past / count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("only", nargs="?", default="")
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    device.get_default_device().set_num_threads(2)
    torch.set_num_threads(2)
    print(f"{'':36} {'singa_rs':>12} {'PyTorch':>12}  ratio")
    for name, ours, theirs in pairs(given.only):
        rounds = [(seconds(ours), seconds(theirs)) for _ in range(given.rounds)]
        a, b = (statistics.median(side) for side in zip(*rounds, strict=True))
        ratio = statistics.median(x / y for x, y in rounds)
        print(f"{name:36} {a * 1e3:9.3f} ms {b * 1e3:9.3f} ms {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
