"""Windows over the last axes of images, as layers take them."""

from __future__ import annotations

from typing import Any

from ..autograd import windows
from ..errors import ShapeError
from ..tensor.keys import Settings
from .base import Layer
from .check import flag, numbers, paddings


class Window(Settings):
    """A checked window over the last `axes` axes. `pad_mode` SAME_UPPER and SAME_LOWER pad so that
    the result has ceil(size / stride) elements, with odd padding after or before; VALID does not
    pad. Padding may also be given as "same" or "valid", and be None where it follows from
    `pad_mode`."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    pad_mode: str
    ceil_mode: bool
    layer: str

    def __init__(
        self,
        layer: str,
        kernel_size: Any,
        stride: Any,
        pads: Any,
        dilation: Any = 1,
        pad_mode: str = "NOTSET",
        axes: int = 2,
        ceil_mode: bool = False,
    ) -> None:
        mode = windows.pad_mode(pad_mode, f"{layer}: pad_mode")
        if isinstance(pads, str):
            if mode != "NOTSET":
                raise ValueError(f"{layer}: padding: got {pads!r} with pad_mode {mode!r}, want 0")
            mode, pads = windows.pad_mode(pads, f"{layer}: padding"), 0
        if pads is None and mode != "NOTSET":
            pads = 0
        super().__init__(
            layer=layer,
            kernel=numbers(kernel_size, f"{layer}: kernel_size", axes),
            stride=numbers(stride, f"{layer}: stride", axes),
            dilation=numbers(dilation, f"{layer}: dilation", axes),
            pads=paddings(pads, f"{layer}: padding", axes),
            pad_mode=mode,
            ceil_mode=flag(ceil_mode, f"{layer}: ceil_mode"),
        )
        if self.pad_mode != "NOTSET" and any(self.pads):
            raise ValueError(f"{layer}: padding: got {pads!r} with pad_mode {pad_mode!r}, want 0")

    def changed(self, name: str, value: Any) -> Window:
        """A window with another setting. A `pad_mode` takes the place of padding."""
        of = {**vars(self), name: value}
        pads = 0 if name == "pad_mode" else of["pads"]
        how = (of["stride"], pads, of["dilation"], of["pad_mode"], len(self.kernel))
        return Window(self.layer, of["kernel"], *how, of["ceil_mode"])

    @property
    def is_same(self) -> bool:
        """Whether the padding depends on the input's size."""
        return self.pad_mode.startswith("SAME")

    @property
    def extent(self) -> tuple[int, ...]:
        """The size of the dilated window."""
        return windows.extents(self.kernel, self.dilation)

    def padding(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The padding before each axis, then after each, for an input of that shape.

        Raises:
            ShapeError: the window does not fit into the padded input.
        """
        axes, reach, pads = len(self.kernel), self.extent, self.pads
        if self.is_same:
            pads = windows.same(shape[-axes:], reach, self.stride, self.pad_mode)
        if self.ceil_mode:
            return pads
        for axis in range(axes):
            size = shape[axis - axes] + pads[axis] + pads[axes + axis]
            if size < reach[axis]:
                raise ShapeError(
                    f"{self.layer}: got shape {shape}, {size} with padding on axis {axis - axes}, "
                    f"want at least the window's {reach[axis]}"
                )
        return pads


#: A layer's settings, as its window has them.
SETTINGS = {"kernel_size": "kernel", "padding": "pads"}
SETTINGS |= {name: name for name in ("stride", "dilation", "pad_mode", "ceil_mode")}


class Windowed(Layer):
    """A layer whose settings may be assigned, which changes its window."""

    window: Window

    def __setattr__(self, name: str, value: Any) -> None:
        window, of = self.__dict__.get("window"), SETTINGS.get(name)
        if window is not None and of is not None:
            if getattr(window, of) != value:
                if of == "kernel" and "W" in self.__dict__:
                    want = f"want {window.kernel}, as W has"
                    raise ValueError(f"{type(self).__name__}.{name}: got {value!r}, {want}")
                self.window = window.changed(of, value)
                self.__dict__.pop("handle", None)
            value = getattr(self.window, of) if of in ("kernel", "stride", "dilation") else value
        super().__setattr__(name, value)
