"""Augmentation of pictures under SINGA's names (`singa.image_tool`), by Pillow.

    tool = image_tool.ImageTool()
    for image in tool.load("a.png").resize_by_list([112]).crop5((96, 96), 5).enhance().flip().get():
        ...

Random choices are drawn from `data.rng()`: in a loader they depend on its seed, the epoch and the
batch; elsewhere `data.set_seed` makes them repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..data.draws import rng
from ..data.pictures import pillow, read_picture
from ..refusals import count, flag
from ..shown import shown

__all__ = [
    "ImageTool",
    "color_cast",
    "crop",
    "crop_and_resize",
    "enhance",
    "flip",
    "flip_down",
    "get_list_sample",
    "load_img",
    "resize",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_CORNERS = ("left_top", "left_bottom", "right_top", "right_bottom", "center")
_ACROSS, _DOWN = ("left", "center", "right"), ("top", "middle", "bottom")
#: Where each position lies, in halves of the room across and down.
_PLACES = {
    "left_top": (0, 0), "left_bottom": (0, 2), "right_top": (2, 0), "right_bottom": (2, 2),
    "center": (1, 1),
}  # fmt: skip
_ENHANCERS = ("Color", "Contrast", "Brightness", "Sharpness")


def load_img(path: Any, grayscale: bool = False) -> Any:
    """The picture in a file, as a Pillow image in RGB, or in shades of grey.

    Raises:
        CheckpointError: the file is damaged, or missing (then also an OSError).
    """
    is_grey = flag(grayscale, "load_img: grayscale")
    return read_picture("load_img", path, "L" if is_grey else "RGB")


def crop(img: Any, patch: Sequence[int], position: str) -> Any:
    """The part of an image of a size (width, height) at a position: left_top, left_bottom,
    right_top, right_bottom or center.

    Raises:
        ValueError: another position, or an image smaller than the part.
    """
    if position not in _PLACES:
        raise ValueError(f"crop: got position {position!r:.80}, want one of {', '.join(_CORNERS)}")
    room = _room("crop", img, patch)
    left, top = (space * half // 2 for space, half in zip(room, _PLACES[position], strict=True))
    return img.crop((left, top, left + patch[0], top + patch[1]))


def crop_and_resize(img: Any, patch: Sequence[int], position: str) -> Any:
    """The largest square in an image at a position (left, center or right of a wide one, top,
    middle or bottom of a high one), scaled to a size (width, height). SINGA scales the whole image.

    Raises:
        ValueError: another position, or one outside of the image.
    """
    _check_picture("crop_and_resize", img)
    width, height = _size("crop_and_resize", patch)
    if position not in _ACROSS + _DOWN:
        want = ", ".join(_ACROSS + _DOWN)
        raise ValueError(f"crop_and_resize: got position {position!r:.80}, want one of {want}")
    is_across, edge = position in _ACROSS, min(img.size)
    names = _ACROSS if is_across else _DOWN
    if img.size[0 if is_across else 1] < max(img.size):
        raise ValueError(
            f"crop_and_resize: got position {position!r} for an image of {img.size[0]} x "
            f"{img.size[1]}, want one along its longer side"
        )
    start = (max(img.size) - edge) * names.index(position) // 2
    left, top = (start, 0) if is_across else (0, start)
    return _scaled(img.crop((left, top, left + edge, top + edge)), (width, height))


def resize(img: Any, small_size: int) -> Any:
    """An image scaled so that its shorter side has a length in pixels."""
    _check_picture("resize", img)
    small_size = count(small_size, "resize: small_size", 1, 2**16)
    width, height = img.size
    if width < height:
        return _scaled(img, (small_size, small_size * height // width))
    return _scaled(img, (small_size * width // height, small_size))


def color_cast(img: Any, offset: int) -> Any:
    """An RGB image to each channel of which, with a chance of one half, a number from -offset to
    offset is added; results stay from 0 to 255."""
    _check_picture("color_cast", img)
    offset = count(offset, "color_cast: offset", 0, 255)
    if img.mode != "RGB":
        raise ValueError(f"color_cast: got an image of mode {img.mode}, want RGB")
    draws = rng().integers(-offset, offset + 1, 3) * rng().integers(0, 2, 3)
    cast = np.clip(np.asarray(img, np.int16) + draws, 0, 255)
    return pillow("color_cast").fromarray(cast.astype(np.uint8))


def enhance(img: Any, scale: float) -> Any:
    """An image whose colour, contrast, brightness and sharpness are each, with a chance of one
    half, enhanced by a factor from 1 - scale to 1 + scale."""
    _check_picture("enhance", img)
    scale = _share("enhance", scale)
    from PIL import ImageEnhance

    for name in _ENHANCERS:
        is_drawn, factor = rng().random() < 0.5, rng().uniform(1 - scale, 1 + scale)
        if is_drawn:
            img = getattr(ImageEnhance, name)(img).enhance(factor)
    return img


def flip(img: Any) -> Any:
    """An image mirrored from left to right."""
    _check_picture("flip", img)
    return img.transpose(pillow("flip").Transpose.FLIP_LEFT_RIGHT)


def flip_down(img: Any) -> Any:
    """An image mirrored from top to bottom."""
    _check_picture("flip_down", img)
    return img.transpose(pillow("flip_down").Transpose.FLIP_TOP_BOTTOM)


def get_list_sample(l: Sequence[Any], sample_size: int) -> list[Any]:  # noqa: E741 - SINGA's name
    """Random items of a list, each at most once, in the list's order."""
    _check_list("get_list_sample", "l", l)
    sample_size = count(sample_size, "get_list_sample: sample_size", 0, len(l))
    return [l[i] for i in sorted(rng().permutation(len(l))[:sample_size])]


def _check_picture(op: str, img: Any, argument: str = "img") -> None:
    if not isinstance(img, pillow(op).Image):
        raise TypeError(f"{op}: got {argument} {shown(img)}, want a Pillow image")


def _check_list(op: str, argument: str, value: Any) -> None:
    if not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(f"{op}: got {argument} {shown(value)}, want a list")


def _scaled(img: Any, size: tuple[int, int]) -> Any:
    return img.resize(size, pillow("resize").Resampling.BILINEAR)


def _size(op: str, patch: Any) -> tuple[int, int]:
    if not isinstance(patch, (tuple, list)) or len(patch) != 2:
        raise TypeError(f"{op}: got patch {patch!r:.80}, want a width and a height")
    width, height = (count(one, f"{op}: patch", 1, 2**16) for one in patch)
    return width, height


def _room(op: str, img: Any, patch: Any) -> tuple[int, int]:
    """By how much an image is wider and higher than a part."""
    _check_picture(op, img)
    width, height = _size(op, patch)
    if img.size[0] < width or img.size[1] < height:
        raise ValueError(
            f"{op}: got patch {width} x {height} of an image of {img.size[0]} x {img.size[1]}, "
            "want one that fits"
        )
    return img.size[0] - width, img.size[1] - height


def _share(op: str, scale: Any) -> float:
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 <= scale <= 1:
        raise ValueError(f"{op}: got scale {scale!r:.80}, want a number from 0 to 1")
    return float(scale)


class ImageTool:
    """Images, and operations that replace each by one or several others (SINGA ImageTool).

    Operations with `inplace` replace the images and return the tool, so that they can be chained;
    otherwise they return the new images. `num_case` is how many of the possible cases are made of
    each image, drawn at random: 1 for training, as a rule, and all for testing.
    """

    def __init__(self) -> None:
        self.imgs: list[Any] = []

    def load(self, path: Any, grayscale: bool = False) -> ImageTool:
        """Takes the picture in a file."""
        self.imgs = [load_img(path, grayscale)]
        return self

    def set(self, imgs: list[Any]) -> ImageTool:
        """Takes a list of Pillow images."""
        _check_list("set", "imgs", imgs)
        for i, img in enumerate(imgs):
            _check_picture("set", img, f"imgs[{i}]")
        self.imgs = imgs
        return self

    def append(self, img: Any) -> ImageTool:
        """Takes one more image."""
        _check_picture("append", img)
        self.imgs.append(img)
        return self

    def get(self) -> list[Any]:
        """The images."""
        return self.imgs

    def num_augmentation(self) -> int:
        """How many images there are now."""
        return len(self.imgs)

    def _each(self, make: Callable[[Any], list[Any]], inplace: bool) -> Any:
        """Replaces each image by those that `make` gives, or returns them."""
        return self._answer([new for img in self.imgs for new in make(img)], inplace)

    def _answer(self, made: list[Any], inplace: bool) -> Any:
        if not inplace:
            return made
        self.imgs = made
        return self

    def resize_by_range(self, rng: Sequence[int], inplace: bool = True) -> Any:
        """Scales the shorter side to a length from rng[0] to rng[1] - 1."""
        return self.resize_by_list(_range("resize_by_range", rng), 1, inplace)

    def resize_by_list(
        self, size_list: Sequence[int], num_case: int = 1, inplace: bool = True
    ) -> Any:
        """Scales the shorter side to lengths in a list."""
        _check_list("resize_by_list", "size_list", size_list)
        num_case = count(num_case, "resize_by_list: num_case", 1, len(size_list))
        return self._each(
            lambda img: [resize(img, size) for size in _cases(size_list, num_case)], inplace
        )

    def rotate_by_range(self, rng: Sequence[int], inplace: bool = True) -> Any:
        """Rotates by an angle from rng[0] to rng[1] - 1 degrees, counter-clockwise."""
        return self.rotate_by_list(_range("rotate_by_range", rng), 1, inplace)

    def rotate_by_list(
        self, angle_list: Sequence[float], num_case: int = 1, inplace: bool = True
    ) -> Any:
        """Rotates by angles in a list, in degrees, counter-clockwise."""
        _check_list("rotate_by_list", "angle_list", angle_list)
        num_case = count(num_case, "rotate_by_list: num_case", 1, len(angle_list))
        return self._each(
            lambda img: [img.rotate(angle) for angle in _cases(angle_list, num_case)], inplace
        )

    def crop5(self, patch: Sequence[int], num_case: int = 1, inplace: bool = True) -> Any:
        """Parts of a size (width, height) at the corners and in the centre."""
        num_case = count(num_case, "crop5: num_case", 1, 5)
        return self._each(
            lambda img: [crop(img, patch, where) for where in _cases(_CORNERS, num_case)], inplace
        )

    def crop3(self, patch: Sequence[int], num_case: int = 1, inplace: bool = True) -> Any:
        """The largest squares at both ends and in the middle of the longer side, scaled to a
        square size."""
        num_case = count(num_case, "crop3: num_case", 1, 3)
        width, height = _size("crop3", patch)
        if width != height:
            raise ValueError(f"crop3: got patch {width} x {height}, want a square")

        def make(img: Any) -> list[Any]:
            places = _ACROSS if img.size[0] > img.size[1] else _DOWN
            return [crop_and_resize(img, patch, where) for where in _cases(places, num_case)]

        return self._each(make, inplace)

    def crop8(self, patch: Sequence[int], num_case: int = 1, inplace: bool = True) -> Any:
        """The cases of `crop5` and `crop3` together."""
        num_case = count(num_case, "crop8: num_case", 1, 8)
        fives = sum(case < 5 for case in _cases(range(8), num_case))
        made = self.crop5(patch, fives, False) if fives else []
        made += self.crop3(patch, num_case - fives, False) if num_case > fives else []
        return self._answer(made, inplace)

    def random_crop(self, patch: Sequence[int], inplace: bool = True) -> Any:
        """A part of a size (width, height) anywhere in each image."""

        def make(img: Any) -> list[Any]:
            left, top = (int(rng().integers(n + 1)) for n in _room("random_crop", img, patch))
            return [img.crop((left, top, left + patch[0], top + patch[1]))]

        return self._each(make, inplace)

    def random_crop_resize(self, patch: Sequence[int], inplace: bool = True) -> Any:
        """A part of 8 to 100% of each image's area, whose sides are in a ratio from 3:4 to 4:3,
        scaled to a size (width, height); the central square if ten draws do not fit."""
        size = _size("random_crop_resize", patch)
        return self._each(lambda img: [_scaled(_drawn_part(img), size)], inplace)

    def flip(self, num_case: int = 1, inplace: bool = True) -> Any:
        """Mirrors from left to right: with 1 case at random, with 2 both as it is and mirrored."""
        return self._flipped("flip", flip, num_case, inplace)

    def flip_down(self, num_case: int = 1, inplace: bool = True) -> Any:
        """Mirrors from top to bottom: with 1 case at random, with 2 both as it is and mirrored."""
        return self._flipped("flip_down", flip_down, num_case, inplace)

    def _flipped(
        self, op: str, function: Callable[[Any], Any], num_case: int, inplace: bool
    ) -> Any:
        num_case = count(num_case, f"{op}: num_case", 1, 2)
        return self._each(
            lambda img: [function(img) if case else img for case in _cases((1, 0), num_case)],
            inplace,
        )

    def color_cast(self, offset: int = 20, inplace: bool = True) -> Any:
        """`color_cast` of each image."""
        return self._each(lambda img: [color_cast(img, offset)], inplace)

    def enhance(self, scale: float = 0.2, inplace: bool = True) -> Any:
        """`enhance` of each image."""
        return self._each(lambda img: [enhance(img, scale)], inplace)


def _cases(cases: Sequence[Any], num_case: int) -> Sequence[Any]:
    return cases if num_case == len(cases) else get_list_sample(cases, num_case)


def _range(op: str, bounds: Any) -> range:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"{op}: got rng {bounds!r:.80}, want two ints")
    first, end = (count(one, f"{op}: rng", -(2**31), 2**31) for one in bounds)
    if first >= end:
        raise ValueError(f"{op}: got rng {bounds!r}, want the first below the second")
    return range(first, end)


def _drawn_part(img: Any) -> Any:
    """A part of an image, of random size, ratio and place."""
    width, height = img.size
    for _ in range(10):
        area, ratio = rng().uniform(0.08, 1) * width * height, rng().uniform(3 / 4, 4 / 3)
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 1 <= across <= width and 1 <= down <= height:
            left, top = (int(rng().integers(n + 1)) for n in (width - across, height - down))
            return img.crop((left, top, left + across, top + down))
    edge = min(img.size)
    return crop(img, (edge, edge), "center")
