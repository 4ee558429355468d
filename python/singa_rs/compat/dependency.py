"""How often the results of operations are used (SINGA infer_dependency)."""

from __future__ import annotations

from collections import Counter

from ..autograd import Dummy, Operator
from ..autograd.tape import Port, alive, output_of
from ..errors import name_functions
from ..tensor import Tensor

#: An output of an operation, whose tensor the tape does not keep: the operation and its index.
Output = tuple[Operator, int]


def infer_dependency(op: Operator) -> tuple[Counter[Operator], Counter[int | Output]]:
    """How many inputs of the operations that lead to `op`, and of `op` itself, are results of each
    of them, a Dummy for each leaf; and how many are each leaf, by `id`, or each output of an
    operation, by the operation and the output's index, where SINGA has the `id` of a tensor (SINGA
    infer_dependency).

    Raises:
        GraphError: an operation that was not recorded, or that backward has passed through.
    """
    if not isinstance(op, Operator):
        raise TypeError(f"infer_dependency: got {type(op).__name__}, want an Operator")
    operations: Counter[Operator] = Counter()
    tensors: Counter[int | Output] = Counter()
    leaves: dict[int, Dummy] = {}
    waiting = [op]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Dummy):
            continue
        alive(node)
        for edge in node.edges or ():
            source, key = _source(edge, leaves)
            if source not in operations:
                waiting.append(source)
            operations[source] += 1
            tensors[key] += 1
    return operations, tensors


def _source(
    edge: Tensor | Port | Operator, leaves: dict[int, Dummy]
) -> tuple[Operator, int | Output]:
    """The operation that an input comes from, and the key of that result."""
    if isinstance(edge, Tensor):
        return leaves.setdefault(id(edge), Dummy(edge, edge.name)), id(edge)
    node, index = output_of(edge)
    return node, (node, index)


name_functions(globals(), {"alive"})
