"""The layers of a graph's operations, found when they are asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import record, viz
from ..layer.node import apart, now

if TYPE_CHECKING:
    from ..record.origins import Origin
    from .graphs import Graphed


def locator(
    module: Graphed,
    options: record.Options,
    function: Callable[..., Any],
    training: bool,
    given: tuple[Any, Any] | None,
) -> viz.graph.Locate | None:
    """What finds the origins of the operations of a call's graph; None without its arguments, whose
    values do not matter. Does not keep the module alive."""
    if given is None:
        return None
    module_of = weakref.ref(module)

    def locate(nodes: Sequence[Mapping[str, Any]]) -> list[Origin] | None:
        root = module_of()
        if root is None or record.is_recording():
            return None
        with apart():
            return record.locate(options, function, root, training, given, _running, nodes)

    return locate


def _running() -> str:
    """The path of the layer that is running."""
    return now.running[-1]._node.path if now.running else ""
