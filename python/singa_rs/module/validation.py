"""Validation of a model within `Module.fit`, and the data sets that `fit` takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..layer.arrays import admit
from ..metric import Running
from ..record.trees import replace
from ..refusals import is_real
from ..shown import is_foreign, shown
from ..tensor import Tensor
from ..tensor.numbers import lent
from .history import Means, parts_of
from .modes import in_mode

if TYPE_CHECKING:
    from ..device import Device
    from . import Module

#: Rows in a batch of arrays, unless something else is asked for.
_ROWS = 32


def check_parts(op: str, given: Any, step: Callable[..., Any]) -> None:
    """Rejects an array alone, and a list of arrays, each of which would be a batch, for a step of
    several arguments.

    Raises:
        TypeError: it is one of these.
    """
    is_list = isinstance(given, list) and len(given) > 0
    if not all(map(_is_array, given if is_list else [given])):
        return
    taken = inspect.signature(step)
    try:
        taken.bind(given)
    except TypeError:
        got = f"a list of {len(given)} arrays" if is_list else shown(given)
        names = ", ".join(taken.parameters)
        raise TypeError(f"{op}: got {got}, want a tuple of arrays, such as (x, y), as "
                        f"train_one_batch takes {names}") from None  # fmt: skip


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Tensor)) or is_foreign(value)


def batches_of(
    op: str, given: Any, batch_size: int | None, shuffle: bool, passes: int, to: Device
) -> Any:
    """What is iterated for an epoch: a loader, any iterable of batches, or arrays in a tuple or a
    dictionary, of which a loader is made, with tensors on a device. Arrays may be of other
    libraries.

    Raises:
        TypeError: none of these.
        ValueError: an iterator, for several epochs; a batch size for what has batches already.
    """
    from ..data import DataLoader  # which few programs need that only define a model
    from ..data.sources import are_arrays

    if _are_rows(given):
        kind = type(given).__name__
        raise TypeError(f"{op}: got numbers in a {kind}, want arrays in a tuple, or a DataLoader")
    if are_arrays(given):
        size = _ROWS if batch_size is None else batch_size
        return DataLoader(given, size, shuffle=shuffle, device=to)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise TypeError(f"{op}: got {kind}, want a DataLoader, an iterable of batches, or arrays "
                        "in a tuple")  # fmt: skip
    if batch_size is not None and op == "fit":
        raise ValueError(f"{op}: got batch_size={batch_size} for {type(given).__name__}, which "
                         "gives batches; it is for arrays in a tuple")  # fmt: skip
    if isinstance(given, Iterator) and passes > 1:
        raise ValueError(f"{op}: got an iterator, {type(given).__name__}, for {passes} epochs; "
                         "it can be iterated only once")  # fmt: skip
    return given


def _are_rows(given: Any) -> bool:
    """Whether it is numbers in nested lists, whose rows would be taken for batches."""
    return isinstance(given, (tuple, list)) and any(map(_begins_with_number, given))


def _begins_with_number(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return is_real(value)


def call_with(function: Callable[..., Any], batch: Any) -> Any:
    """A call with the parts of a batch as arguments."""
    if isinstance(batch, (tuple, list)):
        return function(*batch)
    return function(**batch) if isinstance(batch, Mapping) else function(batch)


def batches_in(loader: Iterable[Any]) -> Iterator[Any]:
    """The batches of a loader, in which other libraries' arrays are NumPy's on their memory."""
    return (replace(batch, lambda leaf: lent(leaf, "fit")) for batch in loader)


def rows_of(batch: Any) -> int:
    """How many rows a batch has that count: those of its first array, 1 if it has none; 0 of those
    that a loader gives another process."""
    from ..data import sharing

    if not sharing.are_counting():
        return 0
    parts = batch.values() if isinstance(batch, Mapping) else batch
    for one in parts if isinstance(batch, (tuple, list, Mapping)) else (batch,):
        if shape := getattr(one, "shape", ()):
            return shape[0]
    return 1


def targets_of(batch: Any) -> Any:
    """What outputs are compared with: the last part of a batch of several; None without."""
    return batch[-1] if isinstance(batch, (tuple, list)) and len(batch) > 1 else None


class Validation:
    """Figures of a data set in evaluation: the model's `validate_one_batch`, or else `loss` and
    the metrics of what `forward` makes of all parts of a batch but the last, its targets."""

    def __init__(
        self, model: Module, batches: Any, loss: Any, metrics: Mapping[str, Running]
    ) -> None:
        self._model, self._batches, self._metrics = model, batches, metrics
        self._own = getattr(model, "validate_one_batch", None)
        self._loss = vars(model).get("loss") if loss is None else loss
        if self._loss is not None and not callable(self._loss):
            raise TypeError(f"fit: got loss {self._loss!r:.80}, want a function")
        if self._own is None and self._loss is None and not metrics:
            raise ValueError(
                f"fit: got validation, but nothing to compute of it: give loss= or metrics=, or "
                f"let {type(model).__name__} have an attribute loss or a method validate_one_batch"
            )

    def __call__(self, epoch: int) -> dict[str, tuple[Any, int]]:
        """The figures by name, `val_` before them, and of how many rows they are."""
        means, is_empty = Means(f"fit: validation of epoch {epoch}", refuses=False), True
        for metric in self._metrics.values():
            metric.reset()
        with in_mode(self._model, False):
            for batch in batches_in(self._batches):
                outputs, figures = self._figures(batch)
                if (rows := rows_of(batch)) or not means.rows:
                    self._measure(outputs, batch)
                means.add(rows, figures)
                is_empty = False
        if is_empty:
            raise ValueError(f"fit: validation of epoch {epoch}: got no batches")
        found: dict[str, Any] = means.compute()
        found |= {name: (one.compute(), means.rows) for name, one in self._metrics.items()}
        return {f"val_{name}": value for name, value in found.items()}

    def _figures(self, batch: Any) -> tuple[Any, dict[str, Any]]:
        if self._own is not None:
            return parts_of("fit: validate_one_batch", call_with(self._own, batch))
        targets = targets_of(batch)
        if targets is None:
            raise TypeError(
                f"fit: validation: got a batch of {type(batch).__name__}, want inputs and targets, "
                "or a method validate_one_batch"
            )
        outputs = self._model(*batch[:-1])
        if self._loss is None:
            return outputs, {}
        loss = self._loss(outputs, admit(targets, self._model.device))
        return outputs, parts_of("fit: loss", loss)[1]

    def _measure(self, outputs: Any, batch: Any) -> None:
        if not self._metrics:
            return
        targets = targets_of(batch)
        if outputs is None or targets is None:
            raise TypeError(
                "fit: metrics: got no outputs of validate_one_batch, or no targets, want both"
            )
        for metric in self._metrics.values():
            metric.update(outputs, targets)
