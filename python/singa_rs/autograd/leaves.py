"""Leaves whose gradients are stored: parameters, and tensors of which a program asks for a gradient
by `requires_grad_`, such as inputs, which no optimizer is to train of its own accord."""

from __future__ import annotations

from .._core import note_change
from ..tensor import Tensor

#: `_stores_grad` of a tensor that is no more than asked for its gradient, in the place of True.
_ASKED = 2
#: The same of a frozen parameter, whose gradient is not stored for a while, in the place of False.
_PAUSED = 0


def ask(leaf: Tensor, wanted: bool) -> None:
    """Sets whether the gradient of a leaf is stored, which makes no parameter of it."""
    now = leaf._stores_grad
    if bool(now) == wanted:
        return
    note_change()
    if wanted:
        leaf._stores_grad = _ASKED if now is False else True
    else:
        leaf._stores_grad = _PAUSED if now is True else False


def is_member(leaf: Tensor) -> bool:
    """Whether a tensor is, or was, an attribute of a layer."""
    return "_is_member" in leaf.__dict__


def is_parameter(leaf: Tensor) -> bool:
    """Whether a tensor with a gradient is to be trained where nobody says what is: it has a place
    in a model, or the program has set its `stores_grad`."""
    return leaf._stores_grad != _ASKED or is_member(leaf)
