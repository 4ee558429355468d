"""The end of a recording's tape, and how tensors that outlive it are marked."""

from __future__ import annotations

from ..tensor import Tensor
from .mode import Nodes
from .tape import RELEASED, Edge, Operator, Port, made_by, release


def cut(nodes: Nodes) -> None:
    """Ends the tape of a recording: its nodes are released, and no tensor has one of them as its
    creator, so that the tape keeps nothing alive that was made in the recording. Tensors through
    which a gradient would have flowed back to a parameter are marked."""
    leading: set[int] = set()
    for node, ys in nodes.made:
        leads = node.edges is RELEASED or any(_leads(edge, leading) for edge in node.edges or ())
        if leads:
            leading.add(id(node))
        for y in ys:
            if leads and y._creator is not None:
                nodes.cut_off(y)
    for node, ys in nodes.made:
        release(node)
        for y in ys:
            y._creator = y._base = None
            y._views = ()
    nodes.made.clear()


def _leads(edge: Edge, leading: set[int]) -> bool:
    """Whether a gradient along an edge reaches a parameter; `leading` nodes lead to one."""
    node = _node(edge)
    return _is_end(edge) if node is None else id(node) in leading


def _node(edge: Edge) -> Operator | None:
    """The node that an edge leads to; None if it leads to a tensor that no node made."""
    return edge.node if type(edge) is Port else edge if isinstance(edge, Operator) else None


def _is_end(x: Tensor) -> bool:
    """Whether a tensor that no node made ends a gradient: it stores its own, or was cut off."""
    return x.requires_grad and (x._stores_grad or x._is_cut)


def has_history(x: Tensor) -> bool:
    """Whether a gradient flows back through a tensor to a parameter that it was made from."""
    if not x.requires_grad or x._creator is None:
        return x._is_cut and x.requires_grad
    open_, seen = [made_by(x)[0]], set()
    while open_:
        node = open_.pop()
        if node.edges is RELEASED:
            return True
        seen.add(id(node))
        for edge in node.edges or ():
            before = _node(edge)
            if before is None:
                if _is_end(edge):
                    return True
            elif id(before) not in seen:
                open_.append(before)
    return False
