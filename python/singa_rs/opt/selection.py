"""Which parameters: by name, by predicate, by list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..tensor import Tensor
from .moments import is_same


class Selection:
    """Some parameters: a name, a path above names (`"decoder"` has `"decoder.W"`), a pattern of
    names (`"*.b"`); a function of a name and a tensor that says whether it is one of them; a
    tensor; or a sequence of these, or the values of a mapping, as from `get_params`.

    Names and functions also select parameters that do not exist yet.
    """

    def __init__(self, given: Any, argument: str) -> None:
        """`argument` is what errors name.

        Raises:
            TypeError: anything else.
            ValueError: nothing.
        """
        items = list(given.values()) if isinstance(given, Mapping) else given
        if isinstance(items, (str, Tensor)) or callable(items):
            items = [items]
        if not isinstance(items, Sequence):
            raise TypeError(f"{argument}: got {given!r:.80}, want names, tensors or a function")
        for one in items:
            if not (isinstance(one, (str, Tensor)) or callable(one)):
                raise TypeError(f"{argument}: got {one!r:.80}, want a name, tensor or function")
        if not items:
            raise ValueError(
                f"{argument}: got nothing to select; parameters that do not exist yet are selected "
                "by their names"
            )
        self.items: tuple[str | Tensor | Callable[[str, Tensor], Any], ...] = tuple(items)

    def has(self, name: str, param: Tensor) -> bool:
        """Whether a parameter is one of them."""
        return any(_is_one(item, name, param) for item in self.items)


def _is_one(item: Any, name: str, param: Tensor) -> bool:
    if isinstance(item, Tensor):
        return item is param or is_same(item, param)
    if isinstance(item, str):
        return name == item or name.startswith(f"{item}.") or fnmatchcase(name, item)
    return bool(item(name, param))
