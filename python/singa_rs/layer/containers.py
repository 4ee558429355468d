"""Lists and dictionaries of layers, which have no computation of their own."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .base import Layer

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as Defaulted

    L = Defaulted("L", bound=Layer, default=Layer)
else:  # `typing` has variables with a default from Python 3.13 on
    L = TypeVar("L", bound=Layer)


class _Container(Layer):
    """Layers that another layer calls; they are named by their places (`blocks.0.W`)."""

    def __len__(self) -> int:
        return len(self._layer_node.registered)

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def _replace(self, layers: Mapping[str, Layer]) -> None:
        """Holds these layers from now on, and no others.

        Raises:
            TypeError: one of them is not a layer; nothing has changed then.
        """
        for name, one in layers.items():
            if not isinstance(one, Layer):
                raise TypeError(f"{type(self).__name__}: got {one!r} for {name!r}, want a Layer")
        for name in list(self._layer_node.registered):
            delattr(self, name)
        self.register_layers(dict(layers))


class ModuleList(_Container, Generic[L]):
    """A list of layers (PyTorch ModuleList)."""

    def __init__(self, layers: Iterable[L] = ()) -> None:
        """`layers`: those that it holds at first.

        Raises:
            TypeError: one of them is not a layer.
        """
        super().__init__()
        self._set(_listed(layers))

    def _set(self, layers: list[Layer]) -> None:
        self._replace({str(i): one for i, one in enumerate(layers)})

    def __iter__(self) -> Iterator[L]:
        return iter(list(self._layer_node.registered.values()))

    @overload
    def __getitem__(self, index: int) -> L: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList[L]: ...
    def __getitem__(self, index: Any) -> Any:
        """A layer, or for a slice another list of the same layers."""
        found = list(self)[index]
        return ModuleList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, layer: L) -> None:
        layers = list(self)
        layers[index] = layer
        self._set(layers)

    def __delitem__(self, index: int | slice) -> None:
        layers = list(self)
        del layers[index]
        self._set(layers)

    def append(self, layer: L) -> Self:
        """Adds a layer at the end; returns the list."""
        self._set([*self, layer])
        return self

    def extend(self, layers: Iterable[L]) -> Self:
        """Adds layers at the end; returns the list."""
        self._set([*self, *_listed(layers)])
        return self

    def insert(self, index: int, layer: L) -> None:
        """Puts a layer before the one at an index."""
        held = list(self)
        held.insert(index, layer)
        self._set(held)

    def pop(self, index: int = -1) -> L:
        """Removes the layer at an index, and returns it."""
        held = list(self)
        taken = held.pop(index)
        self._set(held)
        return taken


def _listed(layers: Any) -> list[Any]:
    if isinstance(layers, (str, bytes, Mapping)) or not isinstance(layers, Iterable):
        raise TypeError(f"ModuleList: got {layers!r}, want layers")
    return list(layers)


class ModuleDict(_Container, Generic[L]):
    """A dictionary of layers (PyTorch ModuleDict)."""

    def __init__(self, layers: Mapping[str, L] | None = None) -> None:
        """`layers`: those that it holds at first.

        Raises:
            TypeError: a value that is not a layer, or a key that is not a str.
            ValueError: a key that is empty or has a dot, which paths are divided by.
        """
        super().__init__()
        self.update({} if layers is None else layers)

    def update(self, layers: Mapping[str, L]) -> None:
        """Takes layers in, in the places of those with the same keys."""
        if not isinstance(layers, Mapping):
            raise TypeError(f"ModuleDict: got {layers!r}, want a mapping")
        for key in layers:
            if not isinstance(key, str):
                raise TypeError(f"ModuleDict: got key {key!r}, want a str")
            if not key or "." in key or key in self.__dict__:
                raise ValueError(f"ModuleDict: got key {key!r}, want a name without dots")
        self._replace({**self._layer_node.registered, **layers})

    def __getitem__(self, key: str) -> L:
        return self._layer_node.registered[key]

    def __setitem__(self, key: str, layer: L) -> None:
        self.update({key: layer})

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._layer_node.registered))

    def __contains__(self, key: object) -> bool:
        return key in self._layer_node.registered

    def keys(self) -> KeysView[str]:
        """The keys, in the order in which they came."""
        return dict(self._layer_node.registered).keys()

    def values(self) -> ValuesView[L]:
        """The layers."""
        return dict(self._layer_node.registered).values()

    def items(self) -> ItemsView[str, L]:
        """The keys and layers."""
        return dict(self._layer_node.registered).items()

    def pop(self, key: str) -> L:
        """Removes the layer with a key, and returns it."""
        taken = self._layer_node.registered[key]
        self._replace({name: one for name, one in self.items() if name != key})
        return taken
