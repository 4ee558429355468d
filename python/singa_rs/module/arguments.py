"""Checked arguments of `Module.compile`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..refusals import flag, is_integral
from ..tensor import Tensor, float16
from ..tensor.dtypes import incoming


def is_parallel(graph_alg: Any, sequential: Any) -> bool:
    """Whether operations may run concurrently.

    Raises:
        ValueError: another name, or "parallel" where SINGA's `sequential` is True.
        TypeError: `sequential` is neither a bool nor None.
    """
    sequential = sequential is not None and flag(sequential, "compile: sequential")
    if isinstance(graph_alg, bool):
        return False
    if sequential and graph_alg == "parallel":
        raise ValueError('compile: got graph_alg="parallel" and sequential=True, want one of them')
    if isinstance(graph_alg, str) and graph_alg in ("sequence", "parallel"):
        return graph_alg == "parallel"
    raise ValueError(f'compile: got graph_alg={graph_alg!r}, want "sequence" or "parallel"')


def every(value: Any) -> int | None:
    """`check_every`: None, or a number of replays, which is 0 for False.

    Raises:
        ValueError: anything else.
    """
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) and not value:
        return 0
    if not is_integral(value) or value < 1:
        raise ValueError(f"compile: got check_every={value!r}, want an integer from 1, or False")
    return int(value)


def comparisons(value: Any) -> tuple[bool, int | None]:
    """`verify`: whether first runs are compared, and every how many runs later ones are.

    Raises:
        ValueError: neither a bool nor an integer from 1.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value), None
    if not is_integral(value) or value < 1:
        raise ValueError(f"compile: got verify={value!r}, want a bool, or an integer from 1")
    return True, int(value)


def finite_checks(value: Any, use_graph: bool, short: Any) -> bool:
    """`check_finite`.

    Raises:
        TypeError: not a bool.
        ValueError: without graphs, which are what is checked; in float16, whose loss scale is found
            by steps that overflow.
    """
    if (checks := flag(value, "compile: check_finite")) and not use_graph:
        raise ValueError("compile: check_finite=True checks graphs, so it needs use_graph=True")
    if checks and short == float16:
        raise ValueError(
            'compile: got amp="float16" and check_finite=True, want one of them: the loss scale is '
            "found by steps that overflow, and skipped"
        )
    return checks


def check_inputs(inputs: Any) -> None:
    """Checks what `forward` is given.

    Raises:
        TypeError: no tensors in a list, or shapes in their place, as Keras takes them.
    """
    if not isinstance(inputs, (Tensor, np.ndarray, list, tuple)):
        kind = type(inputs).__name__
        raise TypeError(f"compile: got {kind} for inputs, want a list of tensors")
    for one in (inputs, *(inputs if isinstance(inputs, (list, tuple)) else ())):
        if isinstance(one, (list, tuple)) and one and all(map(is_integral, one)):
            raise TypeError(
                f"compile: got a shape, {one!r:.60}, want tensors: "
                f"compile([tensor.Placeholder({tuple(one)!r:.60})])"
            )


def dtype_of(x: Any) -> str:
    """The name of the dtype of a tensor, or of that which an array becomes."""
    return x.dtype.name if isinstance(x, Tensor) else incoming(x).name
