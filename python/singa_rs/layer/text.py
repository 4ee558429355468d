"""Layers as text: a line for each, with its arguments, its tensors and their sizes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from .collect import below, own_params

if TYPE_CHECKING:
    from .base import Layer

_PLAIN = (bool, int, float, str, type(None))


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments of a constructor as they may be written, "..." for those that are no numbers,
    text or tuples of these. Nothing of them is kept alive."""
    given = [_shown(one) for one in args if not hasattr(one, "_layer_node")]
    return ", ".join([*given, *(f"{name}={_shown(one)}" for name, one in kwargs.items())])


def _shown(value: Any) -> str:
    if isinstance(value, (tuple, list)) and all(isinstance(one, _PLAIN) for one in value):
        return repr(value) if len(value) < 9 else "..."
    if isinstance(value, _PLAIN):
        return f"{value!r:.60}"
    return getattr(value, "__name__", None) or "..."


def tree(layer: Layer) -> str:
    """The layer and those below it, each indented below the nearest layer that its path begins
    with. Parameters that several layers have are counted once."""
    lines: list[str] = []
    counted: set[int] = set()
    parents: list[str] = []
    start = len(layer._layer_node.path) + 1 if layer._layer_node.path else 0
    for one in below(layer):
        path = one._layer_node.path if one is layer else one._layer_node.path[start:]
        while parents and not path.startswith(f"{parents[-1]}."):
            parents.pop()
        name = path[len(parents[-1]) + 1 :] if parents else path
        is_root = one is layer
        lines.append(
            "  " * (len(parents) + (not is_root)) + _line(one, "" if is_root else name, counted)
        )
        if not is_root:
            parents.append(path)
    if len(lines) > 1:
        total = sum(prod(t.shape) for t in layer.get_params().values())
        lines[0] += f": {total:,} parameters"
    return "\n".join(lines)


def _line(layer: Layer, name: str, counted: set[int]) -> str:
    own = own_params(layer)
    fresh = {id(t): t for t in own.values() if id(t) not in counted}
    counted.update(fresh)
    label = f"{name}: " if name else ""
    made = f"{label}{type(layer).__name__}({layer._layer_node.arguments})"
    if layer._makes_tensors():
        return f"{made}  not called yet"
    if not own:
        return made
    shapes = ", ".join(f"{name} {tuple(t.shape)}" for name, t in own.items())
    return f"{made}  {shapes}  {sum(prod(t.shape) for t in fresh.values()):,} parameters"
