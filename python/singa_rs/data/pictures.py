"""Pictures in files, read by Pillow, which is not a dependency of the package."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import files
from ..errors import CheckpointError


def pillow(op: str) -> Any:
    """Pillow's module `Image`.

    Raises:
        ModuleNotFoundError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{op}: reads pictures by Pillow (PIL), which is not installed: pip install pillow"
        ) from error
    return Image


def read_picture(op: str, path: Any, mode: str = "RGB") -> Any:
    """A picture, as Pillow's images are, upright and in the colours of `mode`.

    Raises:
        CheckpointError: the file is damaged, no picture, or has far too many pixels; its pixels are
            floats, or integers of 32 bits; or it is missing (then also an OSError).
        ModuleNotFoundError: Pillow is not installed.
    """
    image, name = pillow(op), files.path_of(op, path)
    from PIL import ImageOps

    with files.reading(op, name) as file:
        try:
            with image.open(file) as opened:
                upright = ImageOps.exif_transpose(opened)
                return in_colours(f"{op}: {name}", upright, mode, opened.format)
        except (CheckpointError, MemoryError):
            raise
        except Exception as error:  # decoders raise whatever damaged files lead them to
            raise CheckpointError(f"{op}: {name}: no picture, or damaged: {error}") from error


def in_colours(op: str, picture: Any, mode: str, form: str | None = None) -> Any:
    """A picture of Pillow's in the colours of `mode`. Pixels of 16 bits, which Pillow would clip at
    255, are scaled to 8.

    Args:
        op: who asks, and of which file.
        picture: of any mode.
        mode: "RGB" or "L".
        form: the format of its file. PNG and PPM have 16 bits where Pillow has integers of 32.

    Raises:
        CheckpointError: floats, or other integers of 32 bits, whose range nothing tells.
    """
    if picture.mode.startswith("I;16") or (picture.mode == "I" and form in ("PNG", "PPM")):
        wide = np.asarray(picture).astype(np.uint32)
        picture = pillow(op).fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))
    elif picture.mode in ("I", "F"):
        have = f"pixels of Pillow's mode {picture.mode!r}"
        raise CheckpointError(f"{op}: got {have}, whose range is not known, want 8 or 16 bits")
    return picture.convert(mode)


def pixels(picture: Any, dtype: Any = np.float32) -> np.ndarray:
    """The pixels of a picture, from 0 to 255: (channels, height, width)."""
    values = np.asarray(picture, dtype)
    return np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1))
