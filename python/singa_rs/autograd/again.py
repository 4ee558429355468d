"""The computation that has made tensors, once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import ref

from .._core import GraphError
from ..tensor import Tensor
from .rule import Rule
from .tape import Edge, Operator, output_of

#: Outputs by the identity of nodes.
_Made = dict[int, tuple[Tensor, ...]]


def maker(x: Tensor) -> tuple[Operator, int] | None:
    """The node that has made a tensor, and the index of its output; None if none is known."""
    if x._creator is not None:
        return output_of(x._creator)
    return None if x._source is None else (x._source.node, x._source.index)


#: Runs a rule's `forward`.
Run = Callable[[Rule, Sequence[Tensor]], tuple[Tensor, ...]]


def computed_again(ys: Sequence[Tensor], given: Sequence[Tensor], run: Run) -> list[Tensor]:
    """Tensors as the operations that made them compute them in evaluation, where normalisation
    takes its averages, from tensors that are given and those that no operation is known to have
    made. `run` runs each of them.

    Raises:
        GraphError: an operation of the user; a tensor that is gone, which an operation without a
            gradient took, or one that backward has been through.
    """
    made: _Made = {}
    kept = {id(x) for x in given}
    pending: list[tuple[Operator, list[Edge]]] = [found for y in ys for found in _node(y, kept)]
    while pending:
        node, inputs = pending[-1]
        needed = [one for x in inputs for one in _node(x, kept) if id(one[0]) not in made]
        if needed:
            pending += needed
            continue
        pending.pop()
        if id(node) not in made:
            xs = [_value(x, made, kept) for x in inputs]
            made[id(node)] = run(*_in_evaluation(node, xs))
    return [_value(y, made, kept) for y in ys]


def averages(ys: Sequence[Tensor]) -> set[int]:
    """The identities of the running averages of normalisations that tensors come from."""
    found: set[int] = set()
    seen: set[int] = set()
    pending = [one for y in ys for one in _node(y, set())]
    while pending:
        node, inputs = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if hasattr(node, "batch"):
            found.update(map(id, _attributes(node).values()))
        pending += [one for x in inputs for one in _node(x, set())]
    return found


def _node(x: Edge, kept: set[int]) -> Iterator[tuple[Operator, list[Edge]]]:
    """What made a value, with its inputs; nothing for a tensor that is taken as it is."""
    if not isinstance(x, Tensor):
        node = output_of(x)[0]
        yield node, [*_edges(node), *_attributes(node).values()]
    elif id(x) not in kept and x._creator is not None:
        yield from _node(x._creator, kept)
    elif id(x) not in kept and x._source is not None:
        node = x._source.node
        yield node, [*_alive(node, x._source.inputs), *_attributes(node).values()]


def _edges(node: Operator) -> list[Edge]:
    if node.edges is None or any(one is None for one in node.edges):
        raise GraphError(f"{node.name}: backward has been through an operation of the user")
    return _alive(node, node.edges)


def _alive(node: Operator, edges: Sequence[Any]) -> list[Edge]:
    """Edges some of which are references."""
    found = [one() if isinstance(one, ref) else one for one in edges]
    if any(one is None for one in found):
        raise GraphError(f"{node.name}: a tensor that it was computed from is gone")
    return found


def outputs(node: Rule, xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """What a rule's `forward` returns, always as a tuple."""
    made = node.forward(*xs)
    return made if type(made) is tuple else (made,)


def _attributes(node: Operator) -> dict[str, Tensor]:
    """The tensors among a rule's attributes, such as a condition or labels."""
    return {name: one for name, one in vars(node).items() if isinstance(one, Tensor)}


def _in_evaluation(node: Operator, xs: list[Tensor]) -> tuple[Rule, list[Tensor]]:
    """A rule for a call with these inputs, the last of which are attributes."""
    if not isinstance(node, Rule):
        raise GraphError(f"{node.name}: an operation of the user cannot be looked into")
    copy, names = node._again(), list(_attributes(node))
    if hasattr(copy, "batch"):  # of normalisation
        copy.batch = False
    count = len(xs) - len(names)
    vars(copy).update(zip(names, xs[count:], strict=True))
    return copy, xs[:count]


def _value(x: Edge, made: _Made, kept: set[int]) -> Tensor:
    """A value, as it was computed again or as it is."""
    if isinstance(x, Tensor):
        found = None if id(x) in kept else maker(x)
        return x if found is None else made[id(found[0])][found[1]]
    node, index = output_of(x)
    return made[id(node)][index]
