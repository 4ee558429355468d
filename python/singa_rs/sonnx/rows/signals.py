"""Signals: Fourier transforms, as products with matrices of cosines, and weights of frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import autograd
from ...errors import ShapeError
from ...tensor import Tensor
from ...tensor.numbers import real, whole, wholes
from ..running import Frame
from ..table import reads
from ..values import dtype_name, to_tensor
from .arranging import axis_of

#: Up to this length a transform is one product; longer ones are those of two factors.
_DIRECT = 128
#: The greatest prime factor: its matrices have as many rows and columns.
_MOST = 8192
#: Frames that overlap so often are gathered.
_MOST_BLOCKS = 16

# ---- transforms ----------------------------------------------------------------------------------


class _Complex:
    """Real parts and imaginary ones, None where they are 0, along the last axis."""

    def __init__(self, re: Tensor, im: Tensor | None) -> None:
        self.re, self.im = re, im

    def times(self, a: Tensor, b: Tensor, product: Any) -> _Complex:
        """The product with `a + i b`."""
        if self.im is None:
            return _Complex(product(self.re, a), product(self.re, b))
        return _Complex(
            product(self.re, a) - product(self.im, b), product(self.re, b) + product(self.im, a)
        )

    def map(self, function: Callable[[Tensor], Tensor]) -> _Complex:
        """A function of each part."""
        return _Complex(function(self.re), None if self.im is None else function(self.im))

    def turned(self, order: tuple[int, ...]) -> _Complex:
        """The axes in another order."""
        return self.map(lambda t: autograd.transpose(t, order))


def _roots(phases: np.ndarray, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of whole numbers of n-th parts of a turn, which are exact up to rounding
    for any number."""
    angles = (phases % n) * (2 * math.pi / n)
    made = (f(angles).astype(like.dtype.name) for f in (np.cos, np.sin))
    return tuple(to_tensor(one, like.device) for one in made)


def _factor(n: int) -> int:
    """The factor of a length next to its square root from below; 1 for a prime."""
    return next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)


def _transform(x: _Complex, sign: int) -> _Complex:
    """The sums of `x * exp(sign 2 pi i j k / n)` along the last axis (Cooley and Tukey, 1965)."""
    *front, n = x.re.shape
    rows = 1 if n <= _DIRECT else _factor(n)
    if rows == 1:
        if n > _MOST:
            raise ValueError(f"DFT: got length {n}, want prime factors of {_MOST} at most")
        phases = sign * np.outer(np.arange(n), np.arange(n))
        return x.times(*_roots(phases, n, x.re), autograd.matmul)
    columns, rank = n // rows, len(front)
    swap = (*range(rank), rank + 1, rank)
    parts = _transform(x.map(lambda t: t.reshape((*front, rows, columns))).turned(swap), sign)
    phases = sign * np.outer(np.arange(columns), np.arange(rows))
    parts = parts.times(*_roots(phases, n, x.re), lambda a, b: a * b)
    made = _transform(parts.turned(swap), sign).turned(swap)
    return made.map(lambda t: t.reshape((*front, n)))


def _sized(x: Tensor, n: int) -> Tensor:
    """The first `n` elements along the last axis, with zeros behind fewer."""
    more = n - x.shape[-1]
    if more > 0:
        return autograd.pad(x, "constant", [0] * (2 * x.rank - 1) + [more])
    return x[..., :n] if more else x


def _parts(op: str, x: Tensor) -> _Complex:
    """Numbers whose parts are the last axis: one or two."""
    if not x.rank or x.shape[-1] not in (1, 2):
        raise ShapeError(f"{op}: got shape {x.shape}, want one or two parts of numbers last")
    return _Complex(x[..., 0], x[..., 1] if x.shape[-1] == 2 else None)


def _joined(x: _Complex) -> Tensor:
    return autograd.stack([x.re, autograd.zeros_like(x.re) if x.im is None else x.im], -1)


@reads("DFT", since=17, host="length axis")
def dft(
    x: Tensor, length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0,
) -> Tensor:  # fmt: skip
    """The discrete Fourier transform along an axis, an attribute below opset 20; `onesided` leaves
    out, or lacks in the inverse, the frequencies that real signals have twice."""
    (at,) = (-2,) if axis is None else wholes(axis, "DFT: axis")
    along = axis_of(at, x.rank, "DFT")
    if along == x.rank - 1:
        raise ValueError(f"DFT: got axis {at} for shape {x.shape}, want one before the parts")
    given = _parts("DFT", x)
    order = (*(i for i in range(x.rank - 1) if i != along), along)
    given = given.turned(order)
    n = given.re.shape[-1]
    if length is not None:
        (n,) = wholes(length, "DFT: dft_length")
    elif inverse and onesided:
        n = 2 * (n - 1)
    made = _inverse(given, n, bool(onesided)) if inverse else _forward(given, n, bool(onesided))
    return _back(made, order, bool(inverse and onesided))


def _forward(x: _Complex, n: int, onesided: bool) -> _Complex:
    if onesided and x.im is not None:
        raise ValueError("DFT: got complex numbers and onesided, want real ones")
    made = _transform(x.map(lambda t: _sized(t, n)), -1)
    return made.map(lambda t: t[..., : n // 2 + 1]) if onesided else made


def _inverse(x: _Complex, n: int, onesided: bool) -> _Complex:
    if onesided:
        x = _whole(x, n)
    made = _transform(x.map(lambda t: _sized(t, n)), 1)
    return made.map(lambda t: t / n)


def _whole(x: _Complex, n: int) -> _Complex:
    """All frequencies of a real signal from the first half of them."""
    half = n // 2 + 1
    x, behind = x.map(lambda t: _sized(t, half)), slice(n - half, 0, -1)
    re = autograd.cat([x.re, x.re[..., behind]], -1)
    return _Complex(re, None if x.im is None else autograd.cat([x.im, -x.im[..., behind]], -1))


def _back(x: _Complex, order: tuple[int, ...], is_real: bool) -> Tensor:
    """The axes in their places again, and the parts as the last one."""
    made = x.turned(tuple(order.index(i) for i in range(len(order))))
    return made.re.reshape((*made.re.shape, 1)) if is_real else _joined(made)


def _frames(signal: Tensor, size: int, step: int) -> Tensor:
    """Frames of signals, (N, length) to (N, frames, size): each is a few blocks of `step` elements
    in a row. The places of all elements would take more memory than the frames."""
    count = (signal.shape[1] - size) // step + 1
    blocks = -(-size // step)
    if blocks > _MOST_BLOCKS:
        places = np.arange(count)[:, None] * step + np.arange(size)
        return autograd.gather(signal, 1, to_tensor(places, signal.device))
    rows = _sized(signal, (count + blocks - 1) * step).reshape((signal.shape[0], -1, step))
    return autograd.cat([rows[:, i : i + count] for i in range(blocks)], 2)[..., :size]


@reads("STFT", since=17, host="frame_step frame_length")
def stft(
    signal: Tensor, frame_step: Any, window: Tensor | None = None, frame_length: Any = None, *,
    onesided: int = 1,
) -> Tensor:  # fmt: skip
    """The transforms of frames of a signal, (N, frames, frequencies, 2)."""
    if signal.rank == 2:
        signal = signal.reshape((*signal.shape, 1))
    (step,) = wholes(np.ravel(frame_step), "STFT: frame_step")
    if frame_length is None and window is None:
        raise ValueError("STFT: got no window and no frame_length, want one of them")
    sizes = window.shape if frame_length is None else wholes(np.ravel(frame_length), "STFT")
    size, have = sizes[0], signal.shape[1]
    if step < 1 or not 1 <= size <= have:
        got = f"frames of {size}, {step} apart, of {have} elements"
        raise ValueError(f"STFT: got {got}, want frames that fit, 1 apart at least")
    framed = _parts("STFT", signal).map(lambda t: _frames(t, size, step))
    if window is not None:
        framed = framed.map(lambda t: t * window)
    return _joined(_forward(framed, size, bool(onesided)))


# ---- weights of frequencies ----------------------------------------------------------------------


@reads("MelWeightMatrix", since=17, host="bins length rate low high")
def mel_weight_matrix(
    bins: Any, length: Any, rate: Any, low: Any, high: Any, *, output_datatype: int = 1,
    frame: Frame,
) -> Tensor:  # fmt: skip
    """Triangles of frequencies around points that are evenly spaced in the mel scale, (length // 2
    + 1, bins)."""
    count, n, samples = (
        whole(np.ravel(one)[0], f"MelWeightMatrix: {what}")
        for one, what in ((bins, "num_mel_bins"), (length, "dft_length"), (rate, "sample_rate"))
    )
    ends = [real(np.ravel(one)[0], "MelWeightMatrix: edge") for one in (low, high)]
    first, last = (2595 * math.log10(1 + hertz / 700) for hertz in ends)
    mels = first + np.arange(count + 2) * ((last - first) / (count + 2))
    points = ((n + 1) * (700 * (10 ** (mels / 2595) - 1)) // samples).astype(int)
    made = np.stack([_triangle(*points[i : i + 3], n // 2 + 1) for i in range(count)], 1)
    return to_tensor(made.astype(dtype_name(output_datatype)), frame.device)


def _triangle(left: int, top: int, right: int, size: int) -> np.ndarray:
    """1 at the top, and less towards both sides."""
    at = np.arange(size)
    rising = (at - left) / max(top - left, 1)
    falling = (right - at) / max(right - top, 1)
    made = np.where((at >= left) & (at < top), rising, 0.0)
    made = np.where((at >= top) & (at < right), falling, made)
    made[top] = 1.0
    return made
