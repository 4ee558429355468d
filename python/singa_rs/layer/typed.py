"""Types that only checkers import: how a call of a layer is its `forward`, or a model's
`train_one_batch`, and what constructors take.

A layer's class declares `forward` with types of its own; the protocols take them from there, so
that no class has to declare them a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from ..tensor import Tensor

#: One number for all axes, or one for each.
Sizes: TypeAlias = int | Sequence[int]
Padding: TypeAlias = int | Sequence[int] | str | None
#: Names, or callables.
Activation: TypeAlias = str | Callable[[Tensor], Tensor] | None
Fill: TypeAlias = str | Callable[[Tensor], object] | None
#: What a model is called with.
Given: TypeAlias = Tensor | np.ndarray[Any, Any]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Forwards(Protocol[P, R]):
    """An object with `forward`."""

    @property
    def forward(self) -> Callable[P, R]:
        """What a call computes."""
        ...


class Trains(Protocol[P, R]):
    """An object with `train_one_batch`."""

    @property
    def train_one_batch(self) -> Callable[P, R]:
        """What a call in training does."""
        ...
