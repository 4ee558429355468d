"""What a step needs, computed before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core, viz
from .._core import GraphError
from ..notices import in_notebooks, warn_user
from ..tensor import Placeholder, Tensor
from ..viz.layers import table
from .by_identity import ByIdentity
from .call import Call
from .effects import Undo
from .options import Options
from .snapshot import Snapshot
from .tracing import Traced, is_recording, trace, uncollected
from .trees import replace
from .verifier import fault_of

if TYPE_CHECKING:
    from ..dist.forecast import Forecast

_T = TypeVar("_T")
#: Accounts that are not memory of the step.
_NOT_COUNTED = ("pool", "kernels")


class Plan:
    """The memory of one step, stated without running it."""

    def __init__(
        self, name: str, options: Options, training: bool, traced: Traced, device: _core.Device
    ) -> None:
        self.name, self._options, self._recording = name, options, traced.recording
        self._device = device
        self._budget = options.budget(training)
        self._graph = graph = options.graph_of(traced.recording, training)
        #: The warning about the graph, if this package made a faulty one.
        self.fault = fault_of(graph)
        accounts = graph.memory()
        # The caller still holds the last results while the next ones are made.
        accounts["results"] += traced.results.nbytes
        #: Bytes by account of the device's ledger.
        self.accounts = {k: v for k, v in accounts.items() if k not in _NOT_COUNTED}
        #: How many operations, and how many blocks of memory they name.
        self.nodes, self.blocks = graph.nodes, graph.blocks
        #: Bytes of the arena, which holds all values that live only within the step, and the least
        #: that any arena for this order of operations needs.
        self.arena_bytes, self.lower_bound_bytes = graph.arena_bytes, graph.lower_bound_bytes
        #: How the step would go on several machines, where that was asked for.
        self.forecast: Forecast | None = None

    @property
    def peak_bytes(self) -> int:
        """The most memory that training takes at once: all accounts together."""
        return sum(self.accounts.values())

    @cached_property
    def verification(self) -> tuple[int, str]:
        """How many more bytes the first run takes than others, because it is compared with the
        operations as recorded, memory permitting; and a text that says so, or why it is not."""
        obstacle = self._options.unverified(self._graph)
        if obstacle is None:
            recorded = self._options.recorded(self._recording)
            obstacle = self._graph.obstacle(recorded)
        if obstacle is not None:
            return 0, f"not compared: {obstacle}"
        # What the graph's run updates is restored before the operations run as recorded.
        arena = recorded.arena_bytes - self.arena_bytes
        more = max(arena, self._graph.undo_bytes) + self.accounts["results"]
        return more, f"compared with the operations as recorded, taking up to {more:,} bytes more"

    @cached_property
    def unconstrained_bytes(self) -> int:
        """Bytes that the arena would take without recomputation, which a memory budget given as a
        fraction refers to. Planned on first use."""
        return self._options.unconstrained(self._recording)

    @property
    def budget_bytes(self) -> int | None:
        """The memory budget, which the arena does not exceed; None without one."""
        if isinstance(self._budget, float):
            return int(self._budget * self.unconstrained_bytes)
        return self._budget

    def picture(self, names: Mapping[int, str] | None = None) -> viz.Graph:
        """The planned graph, for pictures of it; `names` are those of states by `block_id`."""
        return viz.Graph(self._graph, self.name, names)

    def numbers(self, tensors: Iterable[Tensor]) -> dict[int, Tensor]:
        """Those of the tensors that outlive the step, by the numbers of their blocks."""
        captured = self._graph.captured()
        known = ((captured.get(t.block_id), t) for t in tensors)
        return {number: t for number, t in known if number is not None}

    def layers(self, depth: int | None = None) -> list[viz.OfLayer]:
        """The operations grouped by the layer whose call asked for them, as `viz.Graph.layers`
        groups them: their number, arithmetic and bytes moved."""
        return self.picture().layers(depth)

    def summary(self, by: str = "account") -> str:
        """A table of bytes by account and their sum, then the arena, its budget and the first run;
        or, by "layer", of the operations of each layer.

        Raises:
            ValueError: `by` is neither "account" nor "layer".
        """
        if by == "layer":
            return table(f"{self.name}: {self.nodes} operations", self.layers())
        if by != "account":
            raise ValueError(f'summary: got by={by!r}, want "account" or "layer"')
        return self._by_account()

    def _by_account(self) -> str:
        rows = [(name, size) for name, size in self.accounts.items() if size]
        width = max(len(name) for name, _ in [*rows, ("peak", 0)])
        lines = [f"{self.name}: {self.nodes} operations on {self.blocks} blocks"]
        lines += [f"  {name.ljust(width)}  {size:>15,} bytes" for name, size in rows]
        lines.append(f"  {'peak'.ljust(width)}  {self.peak_bytes:>15,} bytes")
        arena = f"arena: {self.arena_bytes:,} bytes"
        arena += f", {self.unconstrained_bytes:,} without recomputation"
        budget = self.budget_bytes
        lines.append(arena if budget is None else f"{arena}, within a budget of {budget:,}")
        lines.append(f"first run: {self.verification[1]}")
        amp = self._options.amp
        if amp is not None and not self._device.computes_in(amp):
            lines.append(f"amp: {amp.name} is converted to float32 here: slower than without amp")
        if self.forecast is not None:
            lines.append(self.forecast.summary())
        return "\n".join(lines)

    _repr_html_ = in_notebooks

    def __repr__(self) -> str:
        return f"Plan({self.name}, peak {self.peak_bytes:,} bytes)"


def blank(like: Tensor) -> Tensor:
    """A tensor of the shape, dtype and flag of another, row-major, which takes no memory."""
    made = _core.stand_in(like.shape, like.device, like.dtype)
    made.requires_grad = like.requires_grad
    return made


def stand_in(leaf: Any) -> Any:
    """For a Placeholder, a tensor like it that takes no memory."""
    return blank(leaf) if isinstance(leaf, Placeholder) else leaf


#: For each model, the count of changes at its last plan, and its attributes as that found them.
_seen = ByIdentity[tuple[int, Snapshot]]()


def _attributes(call: Call) -> Snapshot:
    """The attributes of a model; inspected again only if something may have changed."""
    if call.objects:
        return call.look()
    count = _core.changes()
    known = _seen.get(call.root)
    if known is None or known[0] != count or not known[1].watch.holds():
        known = count, call.look(watched=True)
        if not known[1].is_weak:
            _seen.set(call.root, known)
    return known[1]


@uncollected
def dry_run(
    look: Callable[[Call], Snapshot],
    use: Callable[[Traced], _T],
    function: Callable[..., Any],
    root: Any,
    training: bool,
    args: Any,
    kwargs: Any,
) -> _T:
    """What `use` makes of a recording of `function(root, *args, **kwargs)`, in whose arguments
    Placeholders may be unfilled. Leaves the model as it was, except that it has its parameters.
    `look` inspects its attributes."""
    call = Call(function, root, training, *replace((args, kwargs), stand_in))
    undo = Undo(call, look(call))
    try:
        made = use(trace(call.device, call.tensors, undo.tapping.around(call.run), undo))
    except BaseException:
        undo()
        raise
    undo(keep_state=True, runs_again=True)
    return made


def plan(
    name: str, options: Options, function: Any, root: Any, training: bool, *given: Any
) -> Plan:
    """Records and plans a call; `given` are its args and kwargs."""

    def make(traced: Traced) -> Plan:
        return Plan(name, options, training, traced, root.device)

    made = dry_run(_attributes, make, function, root, training, *given)
    if made.fault is not None:
        warn_user(f"{name}: {made.fault}")
    return made


def infer(
    function: Callable[..., Any], root: Any, training: bool, *given: Any, op: str = "infer"
) -> None:
    """Lets the layers of a model infer their shapes, without running anything: they create their
    parameters and states, which take no memory until they are needed. `op`: who asks.

    Raises:
        GraphError: the calling thread records; the function reads a value.
    """
    if is_recording():
        raise GraphError(
            f"{op}: got a call while operations are recorded (by device.record(), "
            "EnableGraph(True) or another model's step), want it before the recording begins"
        )
    dry_run(Call.look, lambda traced: None, function, root, training, *given)
