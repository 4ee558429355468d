"""What a step needs, known before it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from .. import _core
from ..tensor import Placeholder
from .attempt import Call
from .changes import Undo
from .options import Options
from .snapshot import Snapshot
from .taking import take, uncollected
from .taps import Tapping
from .trees import replace

#: Accounts that are no memory of the step.
_NOT_COUNTED = ("pool", "kernels")


class Plan:
    """The memory of one step, stated without running it."""

    def __init__(self, name: str, graph: _core.Graph, returned: int) -> None:
        self.name = name
        accounts = graph.memory()
        # The caller still holds the last results while the next ones are made.
        accounts["results"] += returned
        #: Bytes by account of the device's ledger.
        self.accounts = {k: v for k, v in accounts.items() if k not in _NOT_COUNTED}
        #: How many operations, and how many blocks of memory they name.
        self.nodes, self.blocks = graph.nodes, graph.blocks
        #: Bytes of the arena, in which all lies that lives and dies within the step, and the least
        #: that any arena for this order of operations needs.
        self.arena_bytes, self.lower_bound_bytes = graph.arena_bytes, graph.lower_bound_bytes

    @property
    def peak_bytes(self) -> int:
        """The most memory that training takes at once: all accounts together."""
        return sum(self.accounts.values())

    def summary(self) -> str:
        """A table: bytes by account, and their sum."""
        rows = [(name, size) for name, size in self.accounts.items() if size]
        width = max(len(name) for name, _ in [*rows, ("peak", 0)])
        lines = [f"{self.name}: {self.nodes} operations on {self.blocks} blocks"]
        lines += [f"  {name.ljust(width)}  {size:>15,} bytes" for name, size in rows]
        lines.append(f"  {'peak'.ljust(width)}  {self.peak_bytes:>15,} bytes")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Plan({self.name}, peak {self.peak_bytes:,} bytes)"


def stand_in(leaf: Any) -> Any:
    """For a Placeholder a tensor of its shape and dtype, which takes no memory."""
    if not isinstance(leaf, Placeholder):
        return leaf
    made = _core.stand_in(leaf.shape, leaf.device, leaf.dtype)
    made.requires_grad = leaf.requires_grad
    return made


#: What the last plan of a model saw of its attributes, and the count of changes then.
_seen: WeakKeyDictionary[Any, tuple[int, Snapshot]] = WeakKeyDictionary()


def _attributes(root: Any) -> Snapshot:
    """The attributes of a model; looked up again only where something may have changed."""
    count = _core.changes()
    known = _seen.get(root)
    if known is None or known[0] != count or not known[1].watch.holds():
        known = _seen[root] = (count, Snapshot(root))
    return known[1]


@uncollected()
def plan(
    name: str,
    options: Options,
    function: Callable[..., Any],
    root: Any,
    training: bool,
    *given: Any,
) -> Plan:
    """Records and plans `function(root, *args, **kwargs)`; `given` are args and kwargs, in which
    Placeholders may be unfilled. Leaves the model as it was, but that it has its parameters."""
    args, kwargs = replace(given, stand_in)
    call = Call(function, root, training, args, kwargs)
    undo = Undo(root, _attributes(root))
    try:
        taken = take(call.device, call.tensors, Tapping().around(call.run))
        graph = options.graph_of(taken.recording, training)
    except BaseException:
        undo()
        raise
    undo(keep_state=True)
    return Plan(name, graph, taken.results.nbytes)


@uncollected()
def infer(function: Callable[..., Any], root: Any, training: bool, *given: Any) -> None:
    """Lets the layers of a model find their shapes, without running anything: they make their
    parameters and states, which take no memory until they are needed. Arguments as in `plan`."""
    args, kwargs = replace(given, stand_in)
    call = Call(function, root, training, args, kwargs)
    undo = Undo(root, Snapshot(root))
    try:
        take(call.device, call.tensors, Tapping().around(call.run))
    except BaseException:
        undo()
        raise
    undo(keep_state=True)
