"""SINGA's iterator over a list of pictures."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Iterator
from itertools import count
from os import PathLike
from typing import Any

import numpy as np

from .. import files, refusals
from ..errors import CheckpointError
from .draws import drawing, key, order
from .pictures import in_colours, pillow, pixels
from .pipeline import Pipeline

#: A label: an integer, or text; None if a list has none for a picture.
Label = int | str | None
#: The labels of a batch.
Labels = np.ndarray | list[Label]
#: A picture's path and its label.
Row = tuple[str, Label]

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")


class ImageBatchIter:
    """Batches of the pictures in a list, without end (SINGA data.ImageBatchIter).

    A background thread reads pictures; SINGA's forks a process. When all pictures were read, they
    are read again, in another order if `shuffle`. What `data.rng()` draws for a batch depends on
    `seed` and the batch's number alone.

    Args:
        img_list_file: a file with a line for each picture: its path, `delimiter`, its label. There
            may be no label, and what follows another delimiter is ignored.
        batch_size: the number of images in a batch.
        image_transform: a function of a picture's path which gives a list of Pillow images, such as
            `image_tool.ImageTool().load(path).random_crop((96, 96)).get()`.
        shuffle: whether pictures come in random order.
        delimiter: what stands between path and label.
        image_folder: the folder that paths are relative to.
        capacity: how many batches are kept ready.
        seed: of the order and of `data.rng()`.

    Raises:
        CheckpointError: a line of the list is no text, or has a label beyond int32, or the list is
            missing (then also an OSError).
        ModuleNotFoundError: Pillow is not installed.
        TypeError: an argument of the wrong type.
        ValueError: an argument out of range, or a list without pictures.
    """

    def __init__(
        self,
        img_list_file: str | PathLike[str],
        batch_size: int,
        image_transform: Callable[[str], list[Any]],
        shuffle: bool = True,
        delimiter: str = " ",
        image_folder: str | PathLike[str] | None = None,
        capacity: int = 10,
        seed: int = 0,
    ) -> None:
        pillow("ImageBatchIter")
        self.img_list_file = files.path_of("ImageBatchIter", img_list_file)
        self.batch_size = refusals.count(batch_size, "ImageBatchIter: batch_size")
        self.capacity = refusals.count(capacity, "ImageBatchIter: capacity")
        self.seed = key(seed, "ImageBatchIter: seed")
        if not callable(image_transform):
            raise TypeError(
                f"ImageBatchIter: got image_transform {image_transform!r:.80}, want a function"
            )
        if not isinstance(delimiter, str) or not delimiter:
            raise TypeError(f"ImageBatchIter: got delimiter {delimiter!r:.80}, want text")
        self.shuffle = refusals.strict_flag(shuffle, "ImageBatchIter: shuffle")
        self.image_transform, self.delimiter = image_transform, delimiter
        self.image_folder = (
            "" if image_folder is None else files.path_of("ImageBatchIter", image_folder)
        )
        self._rows = _listed(self.img_list_file, delimiter, self.image_folder)
        self.num_samples = len(self._rows)
        self._line: Pipeline | None = None

    def start(self) -> None:
        """Begins to read, from the first batch.

        Raises:
            RuntimeError: it has begun already.
        """
        if self._line is not None:
            raise RuntimeError("start: it has begun already; call end() first")
        reader = _Reader(
            self._rows, self.image_transform, self.batch_size, bool(self.shuffle), self.seed
        )
        self._line = Pipeline(reader.batches(), _as_it_is, 1, self.capacity)
        self._stop = weakref.finalize(self, self._line.stop)
        self._line.start()

    def next(self) -> tuple[np.ndarray, Labels]:
        """The next batch: pixels from 0 to 255, float32 (batch_size, 3, height, width), and labels,
        int32 (batch_size,). If not all labels of the list are integers, they are a list of texts,
        and of None where there is none.

        Raises:
            RuntimeError: `start` was not called.
            ValueError: `image_transform` gave no images, images of different sizes, or more of a
                picture than there was room for in the batch. Its own errors are raised as they are.
        """
        line = self._line
        if line is None:
            raise RuntimeError("next: nothing is being read; call start() first")
        try:
            return line.take()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Stops reading."""
        if self._line is not None:
            self._stop()
            self._line.join()
        self._line = None

    def __iter__(self) -> Iterator[tuple[np.ndarray, Labels]]:
        return self

    def __next__(self) -> tuple[np.ndarray, Labels]:
        return self.next()

    def run(self) -> None:
        """`start`, unless it has begun (in SINGA, what the forked process runs)."""
        if self._line is None:
            self.start()


def _as_it_is(_number: int, batch: Any) -> Any:
    return batch


class _Reader:
    """Reads pictures in the background; knows nothing of who wants them."""

    def __init__(
        self,
        rows: list[Row],
        transform: Callable[[str], list[Any]],
        size: int,
        is_shuffled: bool,
        seed: int,
    ) -> None:
        self._rows, self._transform, self._size = rows, transform, size
        self._is_shuffled, self._seed = is_shuffled, seed
        self._is_numbered = isinstance(rows[0][1], int)

    def batches(self) -> Iterator[tuple[np.ndarray, Labels]]:
        """The batches, without end."""
        rows = self._endless()
        for number in count():
            images: list[np.ndarray] = []
            labels: list[Label] = []
            with drawing(self._seed, 0, number):
                while len(images) < self._size:
                    path, label = next(rows)
                    made = self._images(path, self._size - len(images))
                    images += made
                    labels += [label] * len(made)
            _check_sizes(images)
            yield np.stack(images), np.array(labels, np.int32) if self._is_numbered else labels

    def _endless(self) -> Iterator[Row]:
        """The pictures again and again."""
        many = len(self._rows)
        for epoch in count():
            places = order(many, self._seed, epoch) if self._is_shuffled else range(many)
            yield from (self._rows[i] for i in places)

    def _images(self, path: str, room: int) -> list[np.ndarray]:
        made = self._transform(path)
        if not isinstance(made, (list, tuple)) or not 1 <= len(made) <= room:
            got = f"{len(made)} images" if isinstance(made, (list, tuple)) else type(made).__name__
            raise ValueError(
                f"ImageBatchIter: image_transform gave {got} of {path}, want a list of 1 to "
                f"{room}, the room that is left in the batch"
            )
        op = f"ImageBatchIter: {path}"
        return [pixels(in_colours(op, one, "RGB", getattr(one, "format", None))) for one in made]


def _check_sizes(images: list[np.ndarray]) -> None:
    shapes = sorted({image.shape for image in images})
    if len(shapes) > 1:
        raise ValueError(
            f"ImageBatchIter: image_transform gave images of shapes {shapes[0]} and {shapes[1]}, "
            "want one size"
        )


def _listed(path: str, delimiter: str, folder: str) -> list[Row]:
    """The paths and labels in a list of pictures; labels are integers if all are."""
    found: list[tuple[str, str | None]] = []
    with files.reading("ImageBatchIter", path) as file:
        for number, raw in enumerate(file, 1):
            name, *rest = _fields(path, number, raw, delimiter)
            if name or rest:
                found.append((os.path.join(folder, name), rest[0] if rest else None))
    if not found:
        raise ValueError(f"ImageBatchIter: {path}: lists no pictures")
    if all(label is not None and _INTEGER.fullmatch(label) for _, label in found):
        return [(name, _number(path, str(label))) for name, label in found]
    return list(found)


def _fields(path: str, number: int, raw: bytes, delimiter: str) -> list[str]:
    """What stands between the delimiters of a line, without blanks around it."""
    try:
        line = raw.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(
            f"ImageBatchIter: {path}: line {number}: got {raw!r:.80}, want text in UTF-8"
        ) from error
    return [field.strip() for field in line.split(delimiter)] if line.strip() else [""]


def _number(path: str, label: str) -> int:
    if not -(2**31) <= int(label) < 2**31:
        raise CheckpointError(f"ImageBatchIter: {path}: got label {label:.80}, want one of int32")
    return int(label)
