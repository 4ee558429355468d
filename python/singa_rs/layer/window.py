"""What convolution and pooling share: kernel, stride, padding."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..tensor.plain import Settings
from .check import one_of, padding, pair

PAD_MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER")
Padding = tuple[int, int, int, int]


class Window(Settings):
    """A checked window over the last two axes. `pad_mode` SAME_UPPER and SAME_LOWER pad so that
    the result has ceil(size / stride) elements, with odd padding after or before."""

    def __init__(
        self,
        layer: str,
        kernel_size: Any,
        stride: Any,
        pads: Any,
        dilation: Any = 1,
        pad_mode: str = "NOTSET",
    ) -> None:
        super().__init__(
            layer=layer,
            kernel=pair(kernel_size, f"{layer}: kernel_size"),
            stride=pair(stride, f"{layer}: stride"),
            dilation=pair(dilation, f"{layer}: dilation"),
            pads=padding(pads, f"{layer}: padding"),
            pad_mode=one_of(pad_mode, f"{layer}: pad_mode", PAD_MODES),
        )
        if self.pad_mode != "NOTSET" and any(self.pads):
            raise ValueError(f"{layer}: padding: got {pads!r} beside pad_mode {pad_mode!r}, want 0")

    @property
    def extent(self) -> tuple[int, int]:
        """The size of the dilated window."""
        height, width = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return height, width

    def padding(self, shape: tuple[int, ...]) -> Padding:
        """(top, left, bottom, right) for an input of that shape.

        Raises:
            ShapeError: the window does not fit into the padded input.
        """
        pads = self.pads if self.pad_mode == "NOTSET" else self._same(shape[-2:])
        for axis, reach in enumerate(self.extent):
            size = shape[axis - 2] + pads[axis] + pads[axis + 2]
            if size < reach:
                raise ShapeError(
                    f"{self.layer}: got shape {shape}, {size} with padding on axis {axis - 2}, "
                    f"want at least the window's {reach}"
                )
        return pads

    def _same(self, size: tuple[int, ...]) -> Padding:
        before, after = [], []
        for n, reach, stride in zip(size, self.extent, self.stride, strict=True):
            total = max(0, (-(-n // stride) - 1) * stride + reach - n)
            small, large = total // 2, total - total // 2
            before.append(small if self.pad_mode == "SAME_UPPER" else large)
            after.append(large if self.pad_mode == "SAME_UPPER" else small)
        return (before[0], before[1], after[0], after[1])
