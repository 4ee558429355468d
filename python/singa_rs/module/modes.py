"""Training and evaluation: of modules, and what `autograd.training` has been told to be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import autograd
from ..layer.collect import below

if TYPE_CHECKING:
    from . import Module


class _Told(threading.local):
    """What `train` or `eval` of any module last assigned to `autograd.training`; within `in_mode`
    of the calling thread alone. The class attribute applies to every thread outside of it."""

    value: bool | None = None


_told = _Told()


def _note(training: bool | None) -> None:
    if "value" in _told.__dict__:
        _told.value = training
    else:
        _Told.value = training


def tell(training: bool) -> None:
    """Assigns `autograd.training`, as `train` and `eval` do."""
    autograd.training = training
    _note(training)


def is_assigned() -> bool:
    """Whether the program has assigned `autograd.training` since the last `train` or `eval`."""
    return autograd.training != _told.value


def remembered() -> Callable[[], None]:
    """Returns a function that restores `autograd.training`."""
    training, told = autograd.training, _told.value

    def restore() -> None:
        autograd.training = training
        _note(told)

    return restore


@contextmanager
def in_mode(model: Module, training: bool) -> Iterator[None]:
    """The model in training or evaluation in the block, and `autograd.training` for the calling
    thread alone, as others may train their own models meanwhile; afterwards it and all modules
    below it are as they were."""
    from . import Module

    inside = (one for one in below(model) if isinstance(one, Module))
    before, told = [(one, one.training, one._has_mode) for one in inside], dict(_told.__dict__)
    try:
        with autograd._training_scope(training):
            _told.value = training
            model.train(training)
            yield
    finally:
        _told.__dict__.clear()
        _told.__dict__.update(told)
        for one, *was in before:
            one.training, one._has_mode = was
