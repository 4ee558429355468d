"""Which parameters: by name, by predicate, by list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set, ValuesView
from fnmatch import fnmatchcase
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..autograd.mode import mode
from ..notices import once
from ..shown import kind_of
from ..tensor import Tensor
from .moments import Moments, is_same

_NO_UPDATE = (
    "no parameter is updated, as optimizers read no gradients that loss.backward() has left; want "
    "optimizer(loss) in the place of both, or optimizer.apply(name, t, t.grad) of each parameter, "
    "and then t.grad = None, as backward() adds to it"
)
_NOT_TAKEN = (
    "no parameter is updated by what accumulate(loss) has added up; want optimizer(loss) of the "
    "last part of a batch, which updates by the sums and by its own gradients, and steps"
)


class Selection:
    """Some parameters: a name, a path above names (`"decoder"` has `"decoder.W"`), a pattern of
    names (`"*.b"`); a function of a name and a tensor that says whether it is one of them; a
    tensor; or several of these, in any iterable; or the values of a mapping, as from `get_params`.

    Names and functions also select parameters that do not exist yet.
    """

    def __init__(self, given: Any, argument: str) -> None:
        """`argument` is what errors name.

        Raises:
            TypeError: anything else.
            ValueError: nothing is selected.
        """
        items = list(given.values()) if isinstance(given, Mapping) else given
        if isinstance(items, (str, Tensor)) or callable(items):
            items = [items]
        if not isinstance(items, Iterable) or isinstance(items, (bytes, np.ndarray)):
            raise TypeError(f"{argument}: got {given!r:.80}, want names, tensors or a function")
        items = list(items)
        for one in items:
            if not (isinstance(one, (str, Tensor)) or callable(one)):
                raise TypeError(f"{argument}: got {one!r:.80}, want a name, tensor or function")
        if not items:
            raise ValueError(
                f"{argument}: got nothing to select; parameters that do not exist yet are selected "
                "by their names"
            )
        self._hold(items)

    def _hold(self, items: Iterable[str | Tensor | Callable[[str, Tensor], Any]]) -> None:
        self.items = tuple(items)
        self._ids = {id(one) for one in self.items if isinstance(one, Tensor)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores a copied or pickled selection, whose tensors are other objects."""
        self._hold(state["items"])

    def has(self, name: str, param: Tensor) -> bool:
        """Whether a parameter is one of them."""
        return id(param) in self._ids or any(_is_one(item, name, param) for item in self.items)


#: What optimizers have left out, by `id`.
_LEFT_OUT: WeakValueDictionary[int, Tensor] = WeakValueDictionary()


def leave_out(op: str, leaf: Tensor) -> None:
    """Warns of a tensor that an optimizer without `params` leaves out, once that happens again:
    inputs are others in each step."""
    if _LEFT_OUT.get(id(leaf)) is leaf:
        once(
            ("left out", op),
            f"{op}: leaves out a tensor of shape {leaf.shape} that is no attribute of a layer, and "
            "whose gradient only requires_grad_() asked for; to train it, set its stores_grad to "
            "True, or give params=",
        )
    _LEFT_OUT[id(leaf)] = leaf


def none_updated(op: str, params: Selection | None, has_others: bool) -> None:
    """Refuses a loss that has no gradient of what an optimizer updates; where it has none at all,
    as where everything is frozen, an optimizer of all parameters warns once.

    Raises:
        ValueError: it was given `params`, or the loss `has_others`.
    """
    if params is not None:
        raise ValueError(f"{op}: none of its params has a gradient of the loss")
    if has_others:
        raise ValueError(
            f"{op}: the loss has no gradient of a parameter, only of tensors whose "
            "requires_grad_() was called; to train these, set their stores_grad to True, or give "
            "params="
        )
    once(
        ("none updated", op),
        f"{op}: the loss leads to no parameter that requires a gradient, so none is updated",
    )


def check_rate(op: str, lr: Any) -> None:
    """Refuses parameters in the place of a learning rate, where PyTorch has them.

    Raises:
        TypeError: it is a mapping, a list, or what else holds several.
    """
    if isinstance(lr, (Mapping, list, tuple, Set, ValuesView, Iterator)):
        hint = f"what it updates is {op}(lr, params=...), by default everything"
        raise TypeError(f"{op}: lr: got {kind_of(lr)}, want a number; {hint}")


def step_alone(op: str, moments: Moments) -> None:
    """Warns once of a step after gradients that no update has taken: those that backward has left,
    and those that have been added up."""
    if mode.has_left_gradients:
        mode.has_left_gradients = False
        once(("step", op), f"{op}.step: {_NO_UPDATE}")
    if moments.has_added:
        once(("step of sums", op), f"{op}.step: {_NOT_TAKEN}")


def _is_one(item: Any, name: str, param: Tensor) -> bool:
    if isinstance(item, Tensor):
        return is_same(item, param)
    if isinstance(item, str):
        return name == item or name.startswith(f"{item}.") or fnmatchcase(name, item)
    return bool(item(name, param))
