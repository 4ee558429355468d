"""A call of a graph function: its arguments, and the key that distinguishes it from others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any

import numpy as np

from .. import _core
from .._core import GraphError, signature
from ..autograd.inplace import is_intermediate
from ..autograd.mode import mode, training_scope
from ..autograd.order import has_history
from ..device import get_default_device
from ..tensor import Placeholder, Tensor, from_numpy
from ..tensor.keys import EXACT, Same
from .places import slots
from .snapshot import Snapshot
from .tracers import is_itself
from .trees import (
    attributes,
    containers,
    first_ones,
    flatten,
    is_marked,
    is_numeric,
    leaves,
    replace,
)


class Call:
    """One call: its arguments, and the key that distinguishes it from other calls."""

    def __init__(
        self,
        function: Callable[..., Any],
        root: Any,
        training: bool,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.function, self.root, self.training = function, root, training
        self.args, self.kwargs = admitted(args, kwargs, root)
        self.paused = bool(mode.paused)
        self.tensors: list[Tensor] = []
        self.tree = flatten((self.args, self.kwargs), self.tensors)
        #: The arguments that are known only by identity, and tensors with attributes that the
        #: program gave them.
        self.objects = [one for one in leaves((self.args, self.kwargs)) if is_object(one)]
        self.objects += [x for x in self.tensors if is_marked(x)]
        self.objects += attributes((self.args, self.kwargs))
        #: By path, tensors that steps replace in attributes: arguments of the graph, too, the last.
        self.carried: dict[str, Tensor] = {}
        self.device = self.tensors[0].device if self.tensors else _device_of(root)
        #: The lists and dictionaries among them, and which of these are identical.
        self.lists = list(containers((self.args, self.kwargs)))
        self.shared = first_ones(self.lists)
        #: In the key: operations are prepared for it, and their bits may depend on it.
        self.threads = self.device.num_threads

    def look(self, watched: bool = False) -> Snapshot:
        """What the call may read besides the tensors that it is given."""
        return Snapshot(self.root, self.objects, watched)

    def run(self, given: tuple[Any, Any] | None = None) -> Any:
        """Calls the function itself, with `given` in place of its arguments."""
        args, kwargs = given or (self.args, self.kwargs)
        _core.begin_step()
        with training_scope(self.training):
            return self.function(self.root, *args, **kwargs)

    def is_eager(self) -> bool:
        """Whether gradients of the step would flow on, through an argument, to what made it; or an
        argument is an array of text or objects, which no key describes, or a tensor with slots,
        which its tracer would lack."""
        if any(isinstance(one, np.ndarray) for one in self.objects):
            return True
        if any(type(x) is not Tensor and slots(type(x)) for x in self.tensors):
            return True
        return self.training and not self.paused and any(map(has_history, self.tensors))

    def check(self, name: str) -> None:
        """Rejects arguments that have no value.

        Raises:
            GraphError: an argument has no value.
        """
        for x in self.tensors:
            if isinstance(x, Placeholder):
                raise GraphError(f"{name}: got an unfilled {x!r}; fill it with copy_from first")

    def carry(self, paths: Iterable[str], now: Snapshot) -> None:
        """Takes the tensors at these paths as arguments, unless the program may tell them from what
        takes their place in a replay."""
        given = {x.block_id for x in self.tensors}
        found = {path: now.tensors[path] for path in sorted(paths) if path in now.tensors}
        if now.known is None:
            self.carried = {p: x for p, x in found.items() if _is_bare(x, given)}
        self.tensors += self.carried.values()

    def identify(self, known: frozenset[int] | None, turns: Hashable = ()) -> None:
        """Computes the key; `known` are tensors that the program also reaches in another way, if
        it may compare tensors by identity; `turns` as in `Snapshot`."""
        self.signature = signature(self.tensors)
        self.requires_grad = [x.requires_grad for x in self.tensors]
        #: Which of the tensors are identical, if the program may compare them.
        self.same = None if known is None else first_ones(self.tensors)
        self.known = known = known or frozenset()
        self.parameters = [
            (Same(x), x.block_id, x.offset) if is_itself(x, known) else None for x in self.tensors
        ]
        # Parameters have no tracers, so each has graphs of its own. Writes into what operations
        # have made are part of the tape, writes into other tensors are not.
        self.made = tuple(map(is_intermediate, self.tensors))
        of_tensors = (tuple(self.requires_grad), self.made, tuple(self.parameters))
        flags = (self.training, self.paused, self.same, self.shared, tuple(self.carried))
        kinds = (self.tree, self.signature, of_tensors, flags)
        self.key: Hashable = (self.function, *kinds, self.threads, turns)

    def let_go(self) -> None:
        """Forgets the arguments."""
        self.args, self.kwargs, self.tensors, self.objects, self.lists = (), {}, [], [], []
        self.carried = dict.fromkeys(self.carried)

    def shown(self) -> list[str]:
        """The key as text."""
        names = [f"argument {i}" for i in range(len(self.tensors) - len(self.carried))]
        names += [f"attribute {path}, an argument" for path in self.carried]
        lines = [
            f"{name}: {t.dtype.name} {t.shape}" + ("" if t.requires_grad else ", no gradient")
            for name, t in zip(names, self.tensors, strict=True)
        ]
        given = leaves((self.args, self.kwargs))
        lines += [f"argument {leaf!r}" for leaf in given if not isinstance(leaf, Tensor)]
        mode_ = "training" if self.training else "evaluation"
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return [*lines, mode_ + (" within no_grad" if self.paused else ""), threads]


def _device_of(root: Any) -> _core.Device:
    """Where a step without tensors among its arguments runs."""
    found = getattr(root, "device", None)
    return found if isinstance(found, _core.Device) else get_default_device()


def _is_bare(x: Tensor, given: Collection[int]) -> bool:
    """Whether a tensor in an attribute is no more than a value, and none of these blocks."""
    is_more = x.stores_grad or is_marked(x) or has_history(x) or x._is_cut or x._divided is not None
    return type(x) is Tensor and not is_more and x.block_id not in given


def is_object(leaf: Any) -> bool:
    """Whether a part of an argument is an object, which may change and still be the same one."""
    return not isinstance(leaf, (Tensor, float, complex)) and type(leaf) not in EXACT


def staged(array: np.ndarray, device: _core.Device) -> Tensor:
    """A copy of an array, which the caller may go on using."""
    made = from_numpy(array, device)
    made.set_account("staging")
    return made


def admitted(args: Any, kwargs: Any, root: Any) -> tuple[Any, Any]:
    """Arguments with copies of their NumPy arrays on the model's device; arrays of other things
    than numbers stay."""
    given = (args, kwargs)
    if not any(map(is_numeric, leaves(given))):
        return given
    to = root.device
    return replace(given, lambda one: staged(one, to) if is_numeric(one) else one)
