"""The forward pass of a tape once more."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import GraphError
from ..tensor import Tensor
from .order import postorder
from .rule import Rule
from .tape import Edge, Operator, Port, made_by


def nodes_of(ys: Sequence[Tensor]) -> list[Operator]:
    """The nodes that lead to these tensors, each after those that it uses."""
    found: dict[int, Operator] = {}
    for y in ys:
        if y._creator is not None:
            found.update((id(node), node) for node in postorder(made_by(y)[0]))
    return list(found.values())


def computed_again(ys: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of a tape as its operations compute them in evaluation: normalisation takes its
    averages.

    Raises:
        GraphError: backward has been through the tape, or it has an operation of the user.
    """
    made: dict[int, tuple[Tensor, ...]] = {}
    for node in nodes_of(ys):
        if not isinstance(node, Rule):
            raise GraphError(f"{node.name}: an operation of the user cannot be looked into")
        copy = node.again()
        if hasattr(copy, "batch"):
            copy.batch = False
        found = copy.forward(*(_value(one, made) for one in node.edges))
        made[id(node)] = found if type(found) is tuple else (found,)
    return [y if y._creator is None else _value(y._creator, made) for y in ys]


def _value(edge: Edge, made: dict[int, tuple[Tensor, ...]]) -> Tensor:
    """What an edge leads to."""
    if isinstance(edge, Tensor):
        return edge
    node, index = (edge.node, edge.index) if type(edge) is Port else (edge, 0)
    return made[id(node)][index]
