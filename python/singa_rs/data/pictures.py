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
        CheckpointError: the file is damaged, no picture, or has far too many pixels; or it is
            missing (then also an OSError).
        ModuleNotFoundError: Pillow is not installed.
    """
    image, name = pillow(op), files.path_of(op, path)
    from PIL import ImageOps

    with files.reading(op, name) as file:
        try:
            with image.open(file) as opened:
                return ImageOps.exif_transpose(opened).convert(mode)
        except MemoryError:
            raise
        except Exception as error:  # decoders raise whatever damaged files lead them to
            raise CheckpointError(f"{op}: {name}: no picture, or damaged: {error}") from error


def pixels(picture: Any, dtype: Any = np.float32) -> np.ndarray:
    """The pixels of a picture, from 0 to 255: (channels, height, width)."""
    values = np.asarray(picture, dtype)
    return np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1))
