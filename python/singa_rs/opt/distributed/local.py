"""Steps without exchange, and averages of parameters after every few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ... import autograd
from ...layer.check import mapping
from ...record import once_run
from ...tensor import Tensor
from ..base import Optimizer
from ..exchange import Exchange, Pair, noting
from ..moments import Moments, Watched
from ..noted import restoring
from .agreement import Agreement
from .checksums import Beginning
from .options import size
from .own import own_place, warn_of_place
from .partial import average

#: The state that keeps each parameter's value at the beginning of a round.
ANCHOR = "anchor"


class _Turn(NamedTuple):
    """Where in a round a step is, as far as that decides what it does."""

    is_first: bool
    is_last: bool


class LocalSGD(Watched):
    """An optimizer that each process calls with the loss of its own batch, and that exchanges
    parameters in every `every`-th step alone.

    Without `outer`, that step replaces the parameters by their averages over all ranks (local SGD:
    Stich, 2019). With it, the round's change, averaged over all ranks, is the gradient by which
    `outer` updates the parameters that the round began with (DiLoCo: Douillard et al., 2023, with
    AdamW inside and `SGD(0.7, momentum=0.9, nesterov=True)` outside). Moments stay each rank's own.

    Every rank has to begin with the same parameters, as after the same `set_seed`, to run equally
    many steps, and to update the same parameters as all others in each. All parameters that were
    updated in any step so far are exchanged.

    Attributes:
        opt, outer: the optimizers.
        every: how many steps a round has.
        local_steps: how many steps were taken.
    """

    _hidden = frozenset({"_anchors", "_agreed", "_anchored"})

    def __init__(self, inner: Optimizer, every: int, outer: Optimizer | None = None) -> None:
        """`inner`: what updates parameters in every step.

        Raises:
            TypeError: no optimizer, or no int.
            ValueError: `every` is below 1; `outer` clips or has `params`, which it cannot use.
        """
        self.opt, self.outer, self.every = inner, outer, every
        #: How many steps were taken in this round.
        self.local_steps = self._place = 0
        self._anchors, self._agreed = Moments(ANCHOR), Agreement()
        #: The names of the anchors that have a value.
        self._anchored: set[str] = set()
        #: How many parameters were updated in any step.
        self._known = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "every":
            value = size(value, "LocalSGD: every")
        elif name in ("opt", "outer"):
            _check("inner" if name == "opt" else name, value)
        super().__setattr__(name, value)

    def _turn(self) -> _Turn:
        """Steps at the same place of their rounds share a recording, whatever their number."""
        return _Turn(self.outer is not None and self._place == 0, self._place >= self.every - 1)

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores the attributes; given True, it keeps later anchors."""
        return restoring(self, self._anchors)

    def __call__(self, loss: Tensor) -> None:
        """Backward, the update by this rank's own gradients, and `step`; at the end of a round,
        the exchange.

        Raises:
            DistError: another rank has failed, not come in time, or has other parameters.
        """
        _check("outer", self.outer)
        turn, begun = self._turn(), Beginning(self._agreed)
        noted = partial(self._noted, turn=turn)
        self.opt._train(loss, Exchange(lambda pairs: noted(begun.noted(pairs))))
        begun.check(self._place == 0)
        params = self._anchors.params()
        if len(params) != self._known:
            once_run(partial(setattr, self, "_known", len(params)), "a parameter was never updated")
        if turn.is_last:
            self._end(params)
        self._place = 0 if turn.is_last else self._place + 1
        self.local_steps += 1

    def _end(self, params: list[Tensor]) -> None:
        """The exchange at the end of a round, and the outer update."""
        self._agreed.of_names().check(params)
        average(params)
        if self.outer is not None:
            self._update(self.outer, [param for param in params if param.requires_grad])

    def _noted(self, pairs: Iterable[Pair], turn: _Turn) -> Iterable[Pair]:
        """The pairs as they are. Parameters are noted, and anchored if there is an outer update."""

        def note(param: Tensor, _: Tensor) -> None:
            name = self._anchors.name_of(param)
            if self.outer is not None:
                self._begin(param, name, turn.is_first)

        return noting(pairs, note)

    def _begin(self, param: Tensor, name: str, is_first: bool) -> None:
        """Anchors a parameter in the first step of a round, or where it first has a gradient."""
        if is_first:
            self._anchored.add(name)
        elif name in self._anchored:
            return
        else:
            once_run(lambda: self._anchored.add(name), "a round has a further parameter")
        self._anchor(param).copy_from(param)

    def _anchor(self, param: Tensor) -> Tensor:
        return self._anchors.of(param, param.name, ANCHOR)

    def _update(self, outer: Optimizer, params: list[Tensor]) -> None:
        """The outer update of averaged parameters."""
        with autograd.no_grad():
            for param in params:
                anchor = self._anchor(param)
                change = (anchor - param.as_type(anchor.dtype)).as_type(param.dtype)
                param.copy_from(anchor)
                outer.apply(param.name, param, change)
                anchor.copy_from(param)  # for rounds in whose first step it has no gradient
        outer.step()

    def accumulate(self, loss: Tensor) -> None:
        """`opt.accumulate(loss)`."""
        self.opt.accumulate(loss)

    def get_states(self) -> dict[str, Any]:
        """Those of the optimizers, "inner" and "outer", "local_steps", "place", which is how many
        of them are in this round, and the "anchor" of each parameter. They are this rank's own,
        which of several "rank" and "ranks" tell."""
        states: dict[str, Any] = {"inner": self.opt.get_states(), "local_steps": self.local_steps}
        states |= {"place": self._place, **own_place()}
        if self.outer is not None:
            states |= {"outer": self.outer.get_states(), ANCHOR: self._anchors.named(ANCHOR)}
        return states

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Copies what `get_states` returned into the tensors. The first such call warns of states
        that are another rank's.

        Raises:
            TypeError, ValueError, ShapeError: a state that is missing or does not fit. Nothing has
                been written.
        """
        name = "LocalSGD.set_states"
        found = mapping(states, name)
        wanted = ["inner", "local_steps", *(["outer", ANCHOR] if self.outer is not None else [])]
        if missing := [key for key in wanted if key not in found]:
            raise ValueError(f"{name}: got no {missing[0]!r}, want {wanted}")
        steps = size(found["local_steps"], f"{name}: local_steps", 0)
        place = size(found.get("place", steps % self.every), f"{name}: place", 0)
        self.opt._staged_states(found["inner"])
        warn_of_place(name, found)  # which may be raised as an error
        if self.outer is not None:
            write = self._anchors.staged(name, ANCHOR, mapping(found[ANCHOR], f"{name}: {ANCHOR}"))
            self.outer.set_states(found["outer"])
            write()
            self._anchored = set(found[ANCHOR])
        self.opt.set_states(found["inner"])
        self.local_steps, self._place = steps, place

    def _look_in(self, model: Any) -> None:
        """As those of the optimizers."""
        for one in filter(None, (self.opt, self.outer)):
            one._look_in(model)


def _check(argument: str, one: Any) -> None:
    """Refuses what is no optimizer, and an outer one that looks at all gradients before the first
    update."""
    kind = type(one).__name__
    if argument == "outer" and one is None:
        return
    if not isinstance(one, Optimizer):
        raise TypeError(f"LocalSGD: got {kind} for {argument}, want an Optimizer")
    used = [name for name in ("clip_norm", "clip_value") if one._uses(name)]
    used += [] if one._params is None else ["params"]
    if used and argument == "outer":
        raise ValueError(f"LocalSGD: got an outer {kind} with {used[0]}, want none")
