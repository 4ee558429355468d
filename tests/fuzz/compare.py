"""Compares what a run showed with what eager execution did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .program import Program
from .run import CPU, DEVICE, Seen

#: Tolerances of results that need not be exact, relative to the largest element of a tensor.
ROUNDING = {"float64": 1e-6, "float32": 5e-3, "float16": 0.2}


def difference(want: Seen, got: Seen, way: Any) -> str | None:
    """The first difference that is not allowed, or None."""
    if _is_refused(got) or _is_sooner(want, got) or type(got.error).__name__ in way.may_raise:
        return _first(want.items, got.items[:-1], same)
    found = _first(want.items, got.items, same)
    if found is None and len(want.items) != len(got.items):
        found = f"{len(want.items)} values were seen, {len(got.items)} with a graph"
    if found is not None and got.error is not None:
        found += f" ({type(got.error).__name__}: {str(got.error)[:300]})"
    return found


def apart(want: Seen, got: Seen, program: Program) -> str | None:
    """The first difference beyond rounding; only of the first step if later ones amplify it."""
    if program.is_rough() or want.error is not None or got.error is not None:
        is_like = type(want.error) is type(got.error) or _is_refused(got)
        return None if is_like else f"raises {got.error!r}"
    count = len(want.items)
    if program.amplifies():
        starts = [i for i, (label, _) in enumerate(want.items) if label.startswith("see 0")]
        count = len(starts)
    return _first(want.items[:count], got.items[:count], close)


#: What runs are refused for that eager execution does: a gradient would go back through a step that
#: ran as a graph; on a GPU, a step that uses a tensor of the CPU.
_APART = ("in a step on Device(", "a step on one device") if DEVICE is not CPU else ()
_REFUSALS = ("ran as a graph", *_APART)


def _is_refused(got: Seen) -> bool:
    return any(text in str(got.error) for text in _REFUSALS)


def _is_sooner(want: Seen, got: Seen) -> bool:
    """Whether a step with two faults raised the one that recording finds, where eager execution
    first reaches a fault in values."""
    both = want.error is not None and got.error is not None
    return both and len(want.items) == len(got.items) and "divided by zero" in str(want.error)


def _first(want: list, got: list, equal: Callable[[Any, Any], bool]) -> str | None:
    for (label, a), (other, b) in zip(want, got, strict=False):
        if label != other:
            return f"{label} was seen, {other} with a graph (value {_short(a)}, {_short(b)})"
        if not equal(a, b):
            return f"{label}: eager {_short(a)}, with a graph {_short(b)}"
    return None


def same(a: Any, b: Any) -> bool:
    """Whether two values are bitwise equal, any NaN being like any other."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return type(a) is type(b) and (a == b or (a != a and b != b))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind != "f":
        return False
    bits = f"u{a.dtype.itemsize}"
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    return bool((equal | (np.isnan(a) & np.isnan(b))).all())


def close(a: Any, b: Any) -> bool:
    """Whether two values are equal within rounding."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return isinstance(a, float) or type(a) is type(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f" or not a.size:
        return True  # rounding may decide otherwise
    known = np.isfinite(a) & np.isfinite(b)
    if not known.all():
        return True
    scale = max(1.0, float(np.abs(a.astype(np.float64)).max()))
    apart = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
    return bool(apart <= ROUNDING[a.dtype.name] * scale)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{value.shape} {np.array2string(value.ravel()[:6], precision=9)}"
    return repr(value)[:200]
