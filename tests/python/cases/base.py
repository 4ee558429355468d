"""A case of the operation table: how inputs are made, and which outputs are expected."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from singa_rs import _core, device

#: The device that operations are tested on: by default the CPU.
DEVICE = device.create_cuda_gpu() if "SINGA_RS_DEVICE" in os.environ else _core.cpu()

WIDE = ("float64", "float32")
FLOATS = (*WIDE, "float16", "bfloat16")
INTS = ("int64", "int32", "int8", "uint8")
NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, "bool")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Arg:
    """One input. `dtype` None means that it takes the dtype under test."""

    shape: Shape
    low: float = -2.0
    high: float = 2.0
    away: tuple[float, ...] = ()  # kinks and poles, from which values keep a distance
    dtype: str | None = None  # "wide": float32, but float64 next to float64
    integral: bool = False  # whole numbers, whatever the dtype
    fixed: tuple | None = None  # exactly these values

    def sample(self, rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray:
        """Draws float64 or int64 values that `dtype` can hold.

        Real numbers are all distinct, so that maxima are unique, and the same for every dtype.
        """
        if self.fixed is not None:
            return np.array(self.fixed).reshape(shape)
        if dtype == "bool":
            return rng.integers(0, 2, shape)
        if self.integral or dtype in INTS:
            low = max(math.ceil(self.low), 0) if dtype == "uint8" else math.ceil(self.low)
            return rng.integers(low, math.floor(self.high) + 1, shape)
        size = math.prod(shape)
        values = np.linspace(self.low, self.high, size + 2)[1:-1]
        gap = 0.01 * (self.high - self.low)
        for point in self.away:
            near = np.abs(values - point) < gap
            values[near] += np.where(values[near] >= point, gap, -gap)
        return rng.permutation(values).reshape(shape)


@dataclass(frozen=True)
class Bad:
    """Inputs that must be refused: shapes and dtypes (None: as usual), and the exception."""

    error: type[Exception]
    shapes: tuple[Shape, ...] | None = None
    dtypes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Case:
    """One operation with its attributes, on inputs, against a NumPy reference.

    `args` are sampled; `reference` takes the samples (float64 for every float dtype, else the dtype
    itself) and returns one array or a tuple of them. The operation takes the samples, too, or what
    `derive` makes of them: a gradient operation takes what forward saved. For an operation that
    updates inputs (`updates`), `reference` returns their new values.
    """

    family: str
    attrs: dict
    args: tuple[Arg, ...]
    reference: Callable | None
    label: str = ""
    dtypes: tuple[str, ...] = FLOATS
    out: str | tuple[str | None, ...] | None = None  # dtypes of the outputs; None: as tested
    derive: Callable | None = None
    derived: tuple[str | None, ...] = ()  # dtypes of what `derive` makes; None: as tested
    updates: tuple[int, ...] = ()
    gradient: Callable | None = None  # the public function of tensors that differentiates
    wrt: tuple[int, ...] | None = None  # inputs it differentiates; None: all of the tested dtype
    scale: float = 1.0  # how much looser than usual the comparison is
    specials: tuple[float, ...] = (np.nan, np.inf, -np.inf)  # put into the first input
    empty: tuple[tuple[Shape, ...], ...] = ()  # sample shapes without elements that must work
    large: tuple[Shape, ...] | None = None  # sample shapes big enough for threads
    bad: tuple[Bad, ...] = ()
    views: bool = True  # inputs may be any strided view
    check: Callable | None = None  # instead of `reference`: checks (inputs, outputs) itself

    @cached_property
    def op(self) -> _core.Op:
        """The operation, prepared."""
        if self.args:
            return _core.Op(self.family, **self.attrs)
        return _core.Op(self.family, device=DEVICE, **self.attrs)

    @property
    def name(self) -> str:
        """The operation's name, as `_core.operations()` lists it."""
        return self.op.name

    def __str__(self) -> str:
        """The id of the case in pytest's reports."""
        f = self.attrs.get("f")
        inner = next(iter(f)) if isinstance(f, dict) else f
        return "-".join(part for part in (self.family, inner, self.label) if part)

    def sample(self, dtype: str, shapes: tuple[Shape, ...] | None = None) -> list[np.ndarray]:
        """One array per argument, always the same for one case."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        shapes = shapes or tuple(arg.shape for arg in self.args)
        parts = zip(self.args, shapes, self.sample_dtypes(dtype), strict=True)
        return [arg.sample(rng, shape, kind) for arg, shape, kind in parts]

    def sample_dtypes(self, dtype: str) -> list[str]:
        """The dtypes of the samples where `dtype` is under test."""
        return [self.resolved(arg.dtype, dtype) for arg in self.args]

    def input_dtypes(self, dtype: str) -> list[str]:
        """The dtypes of the operation's inputs where `dtype` is under test."""
        if self.derive is None:
            return self.sample_dtypes(dtype)
        return [self.resolved(name, dtype) for name in self.derived]

    def output_dtypes(self, dtype: str, count: int) -> list[str]:
        """The dtypes of the outputs where `dtype` is under test."""
        if self.updates:
            kinds = self.input_dtypes(dtype)
            return [kinds[i] for i in self.updates]
        rule = self.out if isinstance(self.out, tuple) else (self.out,) * count
        return [self.resolved(name, dtype) for name in rule]

    @staticmethod
    def resolved(name: str | None, dtype: str) -> str:
        """The actual dtype for one that an argument or a result declares."""
        wide = "float64" if dtype == "float64" else "float32"
        return {None: dtype, "wide": wide}.get(name, name)

    def differentiable(self) -> tuple[int, ...]:
        """The inputs that have a gradient."""
        everything = (i for i, arg in enumerate(self.args) if arg.dtype in (None, "wide"))
        return tuple(everything) if self.wrt is None else self.wrt


class Table(list[Case]):
    """Cases, with shorthands for making them."""

    def case(self, family: str, reference, *args: Arg | Shape, attrs=None, **options) -> None:
        """Appends a case; a bare shape is an ordinary input."""
        made = tuple(a if isinstance(a, Arg) else Arg(a) for a in args)
        self.append(Case(family, attrs or {}, made, reference, **options))
