"""SINGA's `utils`: a bar that tells how far a program has come, and the geometry of windows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ...errors import ShapeError
from ...layer.check import number

__all__ = ["force_unicode", "get_output_shape", "get_padding_shape", "update_progress"]

#: How many dots a full bar has.
_DOTS = 20


def update_progress(progress: float, info: str) -> None:
    """Shows a bar and a text on the current line, over those shown before (SINGA update_progress).

    Args:
        progress: the share that is done; negative means that the program has stopped, and 1 or more
            that it is done.
        info: the text behind the bar.

    Raises:
        TypeError, ValueError: `progress` is not a finite number.
    """
    given = number(progress, "update_progress: progress")
    share = min(max(given, 0.0), 1.0)
    status = "Halt. " if given < 0 else "Done. " if given >= 1 else ""
    dots = "." * round(_DOTS * share)
    text = f"[{dots:{_DOTS}}] {100 * share:3.1f}% {status}{info}"
    sys.stdout.write(text + "\b" * len(text))
    sys.stdout.flush()


def get_output_shape(
    auto_pad: str,
    input_spatial_shape: Sequence[int],
    kernel_spatial_shape: Sequence[int],
    strides_spatial: Sequence[int],
) -> list[int]:
    """The extents of what a window is moved over to give (SINGA get_output_shape).

    Args:
        auto_pad: "SAME_UPPER" or "SAME_LOWER", with which an extent is that of the input divided by
            the stride, rounded up; or "VALID", without padding.
        input_spatial_shape: the extents that the window moves along.
        kernel_spatial_shape: those of the window.
        strides_spatial: the window's steps.

    Raises:
        ValueError: another `auto_pad`.
        ShapeError: sequences of different lengths.
    """
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        want = "one of SAME_UPPER, SAME_LOWER, VALID"
        raise ValueError(f"get_output_shape: auto_pad: got {auto_pad!r}, want {want}")
    axes = _axes(input_spatial_shape, kernel_spatial_shape, strides_spatial)
    lost = 1 if auto_pad == "VALID" else 0
    return [-(-(size - lost * (kernel - 1)) // stride) for size, kernel, stride in axes]


def get_padding_shape(
    pad_mode: str,
    input_spatial_shape: Sequence[int],
    kernel_spatial_shape: Sequence[int],
    strides_spatial: Sequence[int],
) -> tuple[list[int], list[int]]:
    """The padding of a window (SINGA get_padding_shape): what both ends of an axis have, and what
    one of them has besides. Both lists hold the start and the end of each axis in turn.

    Args:
        pad_mode: "SAME_UPPER", with which the odd element is at the end; "SAME_LOWER", at the
            start.
        input_spatial_shape: the extents that the window moves along.
        kernel_spatial_shape: those of the window.
        strides_spatial: the window's steps.

    Raises:
        ValueError: another `pad_mode`.
        ShapeError: sequences of different lengths.
    """
    given = input_spatial_shape, kernel_spatial_shape, strides_spatial
    whole: list[int] = []
    odd: list[int] = []
    for out, axis in zip(get_output_shape(pad_mode, *given), _axes(*given), strict=True):
        size, kernel, stride = axis
        total = max((out - 1) * stride + kernel - size, 0)
        whole += [total // 2] * 2
        odd += [0, total % 2] if pad_mode == "SAME_UPPER" else [total % 2, 0]
    return whole, odd


def _axes(*sequences: Sequence[int]) -> list[tuple[int, ...]]:
    """What sequences have for each axis."""
    lengths = [len(one) for one in sequences]
    if len(set(lengths)) != 1:
        raise ShapeError(
            f"got {lengths} extents of inputs, windows and strides, want as many of each"
        )
    return list(zip(*sequences, strict=True))


def force_unicode(s: str | bytes) -> str:
    """A string, or the one that bytes are in UTF-8 (SINGA force_unicode)."""
    return s.decode() if isinstance(s, bytes) else s
