"""How layers find their names: a walk from the outermost layer gives each layer and tensor a path.

A layer below another is named by, in this order: `register_layers`, the attribute that holds it
(with an index or key where that is a list, tuple or dictionary), or, if it was only made in the
other's constructor or first called in its forward, `<ClassName>_<i>`. A layer or tensor with
several places has the name of the first.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..record.places import read
from ..tensor import Tensor

if TYPE_CHECKING:
    from .base import Layer

#: Between the parts of a name.
SEPARATOR = "."
_DEFAULT_NAME = re.compile(r"\w*#\d+(:\d+)?$")


def join(path: str, name: str) -> str:
    """`name` below `path`."""
    return f"{path}{SEPARATOR}{name}" if path else name


def members(name: str, value: Any, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """The layers and tensors in an attribute's value, with their names."""
    if isinstance(value, Tensor) or hasattr(type(value), "_is_layer"):
        yield name, value
    elif isinstance(value, (list, tuple, dict)) and id(value) not in seen:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for index, (key, item) in enumerate(list(items)):
            at = key if isinstance(key, (str, int, float)) else index  # text of objects may be long
            yield from members(f"{name}.{at}", item, seen | {id(value)})


def named_members(layer: Layer) -> Iterator[tuple[str, Any]]:
    """The layers and tensors directly below a layer that have a name of their own."""
    yield from layer._layer_node.registered.items()
    for name, value in list(layer.__dict__.items()):
        yield from members(name, value)


def closes_over_layers(value: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a value is a function, or holds one, that closes over a layer."""
    if id(value) in seen:
        return False
    seen |= {id(value)}
    if isinstance(value, (list, tuple, dict)):
        held = value.values() if isinstance(value, dict) else value
        return any(closes_over_layers(one, seen) for one in held)
    if not isinstance(value, FunctionType):
        return False
    kept = [read(cell, "cell_contents") for cell in value.__closure__ or ()]
    kept += value.__defaults__ or ()
    kept += (value.__kwdefaults__ or {}).values()
    found = [member for one in kept for _, member in members("", one)]
    layers = any(not isinstance(member, Tensor) for member in found)
    return layers or any(closes_over_layers(one, seen) for one in kept)


def _fresh_name(layer: Layer, child: Layer) -> str:
    stem, index = type(child).__name__, 0
    taken = {name.partition(SEPARATOR)[0] for name, _ in named_members(layer)} | set(
        layer._layer_node.given
    )
    while f"{stem}_{index}" in taken:
        index += 1
    return f"{stem}_{index}"


def alive(layer: Layer) -> list[Layer]:
    """The layers that were made in a layer's constructor or called in its forward."""
    return [child for ref in layer._layer_node.unnamed if (child := ref()) is not None]


class Tree:
    """One walk: the path of every layer and the name of every tensor below `root`."""

    def __init__(self, root: Layer) -> None:
        self.paths: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.layers: list[Layer] = []
        self.token = root._layer_node.token
        self._visit(root, "")
        for layer in self.layers:  # grows while it is walked
            for child in self._unnamed(layer):
                name = next((n for n, c in layer._layer_node.given.items() if c is child), None)
                if name is None:
                    name = _fresh_name(layer, child)
                    layer._layer_node.given[name] = child
                self._visit(child, join(self.paths[id(layer)], name), layer)

    def _unnamed(self, layer: Layer) -> list[Layer]:
        """The children that nothing holds by a name. The others are no longer noted here, so that
        they leave the model when what holds them lets go."""
        children = [child for child in alive(layer) if id(child) not in self.paths]
        layer._layer_node.unnamed = [weakref.ref(child) for child in children]
        return children

    def _visit(self, layer: Layer, path: str, owner: Layer | None = None) -> None:
        if id(layer) in self.paths:
            return
        self.paths[id(layer)] = path
        self.layers.append(layer)
        layer._layer_node.path = path
        layer._layer_node.roots.add(self.token)
        if owner is not None:
            layer._layer_node.owner = weakref.ref(owner)
        for name, member in list(named_members(layer)):
            if isinstance(member, Tensor):
                self._name(member, join(path, name))
            else:
                self._visit(member, join(path, name), layer)

    def _name(self, tensor: Tensor, name: str) -> None:
        if id(tensor) in self.names:
            tensor.__dict__["_is_tied"] = True
            return
        self.names[id(tensor)] = name
        rename(tensor, name)


def rename(tensor: Tensor, name: str) -> None:
    """Names a tensor by its path, unless the user named it or an operation made it."""
    if tensor._creator is not None:
        return
    tensor.__dict__["_is_member"] = True
    given, known = tensor.name, getattr(tensor, "_path_name", None)
    if given == known == name:
        return  # so that recorded steps need not look for what has changed
    if given == known or not given or _DEFAULT_NAME.match(given):
        tensor.name = name
        tensor._path_name = name


def root_of(layer: Layer) -> Layer:
    """The outermost layer that holds this one."""
    return owners(layer)[-1]


def owners(layer: Layer) -> list[Layer]:
    """The layer, the one that holds it, and so on outwards."""
    chain = [layer]
    while chain[-1]._layer_node.owner is not None:
        owner = chain[-1]._layer_node.owner()
        if owner is None or any(owner is one for one in chain):
            break
        chain.append(owner)
    return chain


def name_of(layer: Layer) -> str:
    """A layer's path as far as it is known, else its class. Changes nothing."""
    node, chain = layer._layer_node, owners(layer)
    if chain[-1]._layer_node.token in node.roots:
        return node.path or type(layer).__name__
    path = ""
    for one, owner in reversed(list(zip(chain, chain[1:], strict=False))):
        places = (*named_members(owner), *owner._layer_node.given.items())
        name = next((name for name, member in places if member is one), type(one).__name__)
        path = join(path, name)
    return path or type(layer).__name__


def join_model(layer: Layer, running: list[Layer]) -> None:
    """Gives a layer that a model calls for the first time its place in it: where the model holds
    it, else below the layer that calls it."""
    root = root_of(running[0])
    if id(layer) not in Tree(root).paths:
        running[-1]._layer_node.unnamed.append(weakref.ref(layer))
        Tree(root)
    layer._layer_node.roots.add(running[0]._layer_node.token)


def hold(layer: Layer, holder: Layer) -> None:
    """Notes that `holder` holds a layer, unless the layer holds `holder`."""
    if not any(layer is owner for owner in owners(holder)):
        layer._layer_node.owner = weakref.ref(holder)


def hold_members(holder: Layer) -> None:
    """Notes that a copied layer holds those below it."""
    for _, member in list(named_members(holder)):
        if not isinstance(member, Tensor):
            hold(member, holder)


def let_go(layer: Layer, holder: Layer) -> None:
    """Forgets that a layer belongs to `holder` and the layers around it."""
    layer._layer_node.roots.clear()
    for owner in owners(holder):
        owner._layer_node.unnamed = [ref for ref in owner._layer_node.unnamed if ref() is not layer]


class Collection:
    """One call of get_params, get_states, set_params or set_states on a whole model."""

    def __init__(self, layer: Layer) -> None:
        tree = Tree(root_of(layer))
        self.tree = tree if id(layer) in tree.paths else Tree(layer)
        self.open: list[Layer] = []

    def children(self, layer: Layer) -> list[Layer]:
        """The layers directly below one, without those that hold it."""
        found = [m for _, m in named_members(layer) if not isinstance(m, Tensor)]
        found += [child for child in alive(layer) if child._layer_node.owner() is layer]
        known = {id(one): one for one in found if id(one) in self.tree.paths}
        return [one for one in known.values() if not any(one is o for o in self.open)]
