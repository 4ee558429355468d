"""Images with their classes: synthetic patterns, or a folder of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from singa_rs import data

#: Pictures are normalised by ImageNet's mean and standard deviation of red, green and blue.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
#: One in so many images is held out.
HELD_OUT = 5


class Images(NamedTuple):
    """Images with labels (N,) in 0 ... classes - 1: arrays (N, 3, size, size), or paths of
    pictures, which are read when their batch is needed."""

    x: np.ndarray
    y: np.ndarray
    classes: int
    size: int

    def batches(
        self, batch: int, rng: np.random.Generator | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The images in batches (N, 3, size, size); with `rng` for training: shuffled, randomly
        cropped and mirrored, without a smaller last batch."""
        for x, y in data.batches(self.x, self.y, size=batch, rng=rng, partial=rng is None):
            yield x if self.x.ndim == 4 else np.stack([read(p, self.size, rng) for p in x]), y

    def split(self) -> tuple[Images, Images]:
        """The images to train on and those held out, always the same ones."""
        order = np.random.default_rng(0).permutation(len(self.x))
        count = len(order) // HELD_OUT
        kept, held = order[count:], order[:count]
        return self._at(kept), self._at(held)

    def _at(self, rows: np.ndarray) -> Images:
        return self._replace(x=self.x[rows], y=self.y[rows])


def synthetic(count: int, size: int, classes: int) -> Images:
    """Images whose class is a coarse random pattern, faint under noise, at a random position."""
    rng = np.random.default_rng(0)
    coarse = rng.normal(size=(classes, 3, 8, 8)).astype(np.float32)
    scale = -(-size // 8)
    patterns = coarse.repeat(scale, 2).repeat(scale, 3)[:, :, :size, :size]
    y = rng.integers(0, classes, count).astype(np.int32)
    x = rng.normal(size=(count, 3, size, size)).astype(np.float32)
    for image, label in zip(x, y, strict=True):
        image += np.roll(patterns[label], rng.integers(-scale, scale + 1, 2), (1, 2))
    return Images(x, y, classes, size)


def folder(root: str, size: int) -> Images:
    """The pictures in a folder with one subfolder per class, numbered in alphabetical order.

    Raises:
        ModuleNotFoundError: Pillow is missing.
        ValueError: fewer than two classes, or too few pictures to hold one out.
    """
    try:
        import PIL  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("--data reads pictures by Pillow: pip install pillow") from error
    classes = sorted(path for path in Path(root).iterdir() if path.is_dir())
    found = [
        (str(path), label)
        for label, one in enumerate(classes)
        for path in sorted(one.rglob("*"))
        if path.suffix.lower() in SUFFIXES
    ]
    if len(classes) < 2 or len(found) < HELD_OUT:
        raise ValueError(
            f"--data {root}: has {len(found)} pictures in {len(classes)} folders, want at least "
            f"{HELD_OUT} pictures and a folder for each of two classes or more"
        )
    paths, labels = zip(*found, strict=True)
    return Images(np.array(paths), np.array(labels, np.int32), len(classes), size)


def read(path: str, size: int, rng: np.random.Generator | None = None) -> np.ndarray:
    """A picture as a normalised array (3, size, size): its centre, or with `rng` a random part of
    it (at least three quarters of each side), mirrored at random.

    Raises:
        OSError: the file cannot be read, or is no picture.
    """
    from PIL import Image, ImageOps

    share, centre, mirrored = 1.0, (0.5, 0.5), False
    if rng is not None:
        share, centre = rng.uniform(0.75, 1), tuple(rng.uniform(size=2))
        mirrored = rng.random() < 0.5
    with Image.open(path) as image:
        try:
            whole = ImageOps.exif_transpose(image).convert("RGB")
        except (OSError, SyntaxError) as error:
            raise OSError(f"{path}: damaged picture: {error}") from error
    edge = share * min(whole.size)
    left, top = ((side - edge) * at for side, at in zip(whole.size, centre, strict=True))
    part = whole.resize(
        (size, size), Image.Resampling.BILINEAR, (left, top, left + edge, top + edge)
    )
    pixels = np.asarray(ImageOps.mirror(part) if mirrored else part, np.float32) / 255
    return ((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)
