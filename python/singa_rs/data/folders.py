"""Pictures in folders named after their classes."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from .. import files
from .pictures import pillow, pixels, read_picture

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


class ImageFolder:
    """The pictures below a folder that has one folder for each class, as (picture, label) pairs
    (torchvision.datasets.ImageFolder).

    Labels are the places of the classes' names in alphabetical order. Files whose names begin with
    a dot or do not end as pictures do are left out. Pictures are read when they are asked for.

    Args:
        root: the folder.
        transform: a function of a Pillow image (RGB), which gives what the sample has in its
            place; images that it gives are converted as without it. By default a picture is a
            float32 array (3, height, width) from 0 to 1.

    Attributes: `classes`, the names; `class_to_idx`, their labels; `samples`, the (path, label)
    pairs; `targets`, the labels.

    Raises:
        ModuleNotFoundError: Pillow is not installed.
        TypeError: `root` is not a path, or `transform` not a function.
        FileNotFoundError: there is no such folder.
        ValueError: the folder has no folders, or there are no pictures in them.
        CheckpointError: when a picture is asked for: its file is damaged.
    """

    def __init__(
        self, root: str | PathLike[str], transform: Callable[[Any], Any] | None = None
    ) -> None:
        pillow("ImageFolder")
        self.root = files.path_of("ImageFolder", root)
        if transform is not None and not callable(transform):
            raise TypeError(f"ImageFolder: got transform {transform!r:.80}, want a function")
        self.transform = transform
        self.classes = _classes(Path(self.root))
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        self.samples = [
            (str(path), label)
            for name, label in self.class_to_idx.items()
            for path in _pictures(Path(self.root, name))
        ]
        self.targets = [label for _, label in self.samples]
        if not self.samples:
            raise ValueError(
                f"ImageFolder: {self.root}: has no pictures in its {len(self.classes)} folders"
            )

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, label = self.samples[index]
        picture = read_picture("ImageFolder", path)
        found = picture if self.transform is None else self.transform(picture)
        is_image = isinstance(found, pillow("ImageFolder").Image)
        return pixels(found) / 255 if is_image else found, label


def _classes(root: Path) -> list[str]:
    if not root.is_dir():
        raise FileNotFoundError(f"ImageFolder: {root}: no such folder")
    names = sorted(one.name for one in root.iterdir() if one.is_dir() and one.name[0] != ".")
    if not names:
        raise ValueError(f"ImageFolder: {root}: has no folders, want one for each class")
    return names


def _pictures(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    return sorted(path for path in found if path.name[0] != "." and path.is_file())
