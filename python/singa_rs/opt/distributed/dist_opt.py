"""DistOpt: an optimizer whose gradients are those of all processes together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...dist.communicator import Communicator
from ...dist.measured import DEFAULT, bucket_size
from ...dist.meeting import NcclIdHolder
from ...dist.sparse import check_sparsity
from ...layer.check import flag, mapping
from ...refusals import is_real
from ...tensor import Tensor
from .. import names
from ..base import Optimizer
from ..exchange import Exchange
from ..moments import Watched, are_whole
from ..noted import restoring
from ..sgd import SGD
from .agreement import Agreement
from .checksums import Beginning
from .gradients import RESIDUAL, VELOCITY, Clipped, Sparsified, averages, check_unscaled, started
from .low_rank import FACTOR, Factored, LowRank
from .options import form, joined, size, stage
from .own import of_all_ranks, of_this_rank, own_place, warn_of_place
from .partial import Partitions
from .parts import Parts
from .sharded import Shares, check
from .whole import copied, divided_states, gathered_states

_KINDS = (RESIDUAL, VELOCITY, FACTOR)
#: The state that tells where partial updates are.
_PARTIAL = "partial"


class DistOpt(Parts, Watched):
    """An optimizer that each process calls with the loss of its own part of a batch (SINGA
    DistOpt).

    Gradients are averaged over all ranks while backward makes the next ones, so a step does what
    the inner optimizer would do in one process with the whole batch, if its parts are equally
    large: accumulated gradients are added before, and clipping and the loss scale see averages.
    Every rank has to begin with the same parameters, as after the same `set_seed`, and to run the
    same steps.

    The hyperparameters of the inner optimizer, `opt`, are attributes of this one, too.

    Attributes:
        opt: the optimizer.
        communicator: SINGA's view of the processes.
        shard, compress: as given; `shard` is a number.
        world_size, local_rank, global_rank: how many there are, and which this one is, on its
            machine and among all.
        partial: which part of the parameters the next partial update averages.
    """

    _hidden = frozenset({"communicator", "_kept", "_shares", "_agreed", "_is_apart"})
    opt: Optimizer
    communicator: Communicator
    partial: int
    #: Hyperparameters of the inner optimizer, those that it has.
    lr: Any
    momentum: Any
    weight_decay: Any

    def __init__(
        self,
        opt: Optimizer | None = None,
        nccl_id: NcclIdHolder | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
        buffSize: int = 4194304,  # SINGA's name
        *,
        communicator: Communicator | None = None,
        shard: int | bool = 0,
        compress: str | None = None,
    ) -> None:
        """Joins the processes that were started together (`dist.init`), or, with `nccl_id`, those
        of this machine that have the same token.

        Args:
            opt: SGD of the default learning rate if it is None.
            local_rank, world_size: which of how many processes this is, for a token.
            buffSize: the most elements of several gradients that are exchanged in one piece.
            communicator: the processes, joined before; they may not be given twice.
            shard: what is divided among the ranks in `backward_and_update` (ZeRO's stages): 1, the
                optimizer's moments; 2, gradients that add up, too; 3, parameters, too, which all
                ranks use together then; 0, nothing. For optimizers that update each element by
                itself.
            compress: how gradients travel when the optimizer is called: "float16" and "bfloat16"
                (`backward_and_update_half`), "sparse" (`backward_and_sparse_update`) or "low_rank"
                (`backward_and_low_rank_update`), with their defaults; None, as they are.

        Raises:
            TypeError, ValueError: an argument of the wrong type, or out of range.
            DistError: as `dist.init`.
        """
        if opt is not None and not isinstance(opt, Optimizer):
            raise TypeError(f"DistOpt: got {type(opt).__name__} for opt, want an Optimizer")
        if nccl_id is None and not (local_rank is None and world_size is None):
            raise TypeError("DistOpt: got local_rank or world_size without nccl_id")
        limit = size(buffSize, "DistOpt: buffSize")
        divided, compressed = stage(shard), form(compress, shard)
        made = joined(communicator, nccl_id, local_rank, world_size, limit)
        self.__dict__.update(opt=SGD() if opt is None else opt, communicator=made, partial=0)
        self.world_size, self.buffSize = made.world_size, min(limit, made.buffSize)
        self.local_rank, self.global_rank = made.local_rank, made.global_rank
        self.shard, self.compress = divided, compressed
        self._kept, self._agreed = Factored(*_KINDS), Agreement()
        #: Whether ranks have updated by their own gradients.
        self._is_apart = False
        is_divided = divided > 0 and made.world_size > 1
        self._shares = Shares(made.global_rank, made.world_size, divided) if is_divided else None

    if not TYPE_CHECKING:  # so that checkers refuse attributes that no class declares

        def __getattr__(self, name: str) -> Any:
            """The inner optimizer's hyperparameters are attributes."""
            inner = self.__dict__.get("opt")
            if inner is None or name not in inner.hyperparameters:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.opt.hyperparameters:
            setattr(self.opt, name, value)
        else:
            super().__setattr__(name, value)

    def _turn(self) -> Hashable:
        """Where it is in the cycle of partial updates, each of which is recorded by itself; and
        which parameters are yet to be divided."""
        return self.partial, () if self._shares is None else self._shares.turn()

    def _remember(self) -> Callable[[bool], None]:
        """Returns a function that restores the attributes; given True, it keeps later residuals."""
        return restoring(self, self._kept, *([] if self._shares is None else [self._shares]))

    # ---- steps -----------------------------------------------------------------------------------

    def __call__(self, loss: Tensor) -> None:
        """`backward_and_update(loss)`, or what `compress` says."""
        if self.compress is None:
            self.backward_and_update(loss)
        elif self.compress == "sparse":
            self.backward_and_sparse_update(loss)
        elif self.compress == "low_rank":
            self.backward_and_low_rank_update(loss)
        else:
            self.backward_and_update_half(loss, wire=self.compress)

    def backward_and_update(self, loss: Tensor, threshold: int | None = None) -> None:
        """Backward, averages of the gradients over all ranks, the update, and `step`.

        Args:
            threshold: gradients are exchanged together until they have more elements than this,
                and larger ones alone: by default `dist.bucket_size()`, or 2,097,152 where
                results would depend on it, with `shard` and `clip_norm`. With `shard`, the same in
                all steps.

        Raises:
            ValueError: with `shard`, other gradients than in earlier steps, or an optimizer that
                does not update each element by itself.
            DistError: another rank has failed, not come in time, or computed other gradients.
        """
        limit = self._limit(threshold, "backward_and_update", measures=True)
        if self.shard:
            check(self.opt, self.shard)
            if self._owns("update", "all_reduce", "fused_all_reduce", "wait"):
                got = f"shard={self.shard} and methods of its own"
                raise ValueError(f"{type(self).__name__}: got {got}, want shard=0")
        if self._shares is not None:
            self._agreed.check_numbers(self.opt)
            self._shares.train(self.opt, loss, limit)
        else:
            self._train(loss, self._by(averages(limit, self._equal), limit, ""))

    def backward_and_update_half(
        self,
        loss: Tensor,
        threshold: int | None = None,
        clipping: bool = False,
        clip_Value: float = 100,  # SINGA's name
        wire: str = "float16",
    ) -> None:
        """As `backward_and_update`, of float32 gradients that travel in 16 bits.

        Args:
            clipping: whether each rank limits the elements of its gradients to `-clip_Value` and
                `clip_Value` before they are exchanged.
            wire: "float16" or "bfloat16".

        Raises:
            TypeError: a gradient that is not float32.
            DistError: as `backward_and_update`.
        """
        limit = self._limit(threshold, "backward_and_update_half", divides=False, measures=True)
        is_clipping = flag(clipping, "backward_and_update_half: clipping")
        if wire not in ("float16", "bfloat16"):
            raise ValueError(
                f"backward_and_update_half: got wire {wire!r:.80}, want 'float16' or 'bfloat16'"
            )
        passed = averages(limit, self._equal, partial(started, wire=wire))
        make = partial(Clipped, clip_Value) if is_clipping else Exchange
        self._train(loss, self._by(passed, limit, "_half", make))

    def backward_and_partial_update(self, loss: Tensor, threshold: int | None = None) -> None:
        """Backward, the update by this rank's own gradients, averages of some parameters over all
        ranks, and `step`. Each step averages the next part of the parameters, in turn; `threshold`
        is how many elements a part has, as for `backward_and_update`.

        Raises:
            DistError: as `backward_and_update`.
        """
        limit = self._limit(threshold, "backward_and_partial_update", False)
        found, begun, are_equal = Partitions(limit), Beginning(self._agreed), not self._is_apart
        self.__dict__["_is_apart"] = True  # which is nothing that a recorded step reads
        self.opt._train(loss, Exchange(lambda pairs: found.noted(begun.noted(pairs))))
        begun.check(are_equal)
        parts = found.parts()
        if parts:
            now = self.partial % len(parts)
            self._equal.check(parts[now])
            self._average(parts[now], limit)
            self.partial = (now + 1) % len(parts)

    def backward_and_sparse_update(
        self,
        loss: Tensor,
        threshold: int | None = None,
        spars: float = 0.05,
        topK: bool = False,  # SINGA's name
        corr: bool = True,
        momentum: float = 0.0,
    ) -> None:
        """As `backward_and_update`, of some elements of each rank's gradients alone. Float32.

        Args:
            spars: the least absolute value of elements that are exchanged; with `topK`, their
                share, such as `density` gives for a warm-up.
            corr: whether what was not exchanged is added to the gradients of the next step.
            momentum: that of each rank's gradients before it chooses (momentum correction); it
                needs `corr`, and an optimizer without momentum.

        Raises:
            TypeError, ValueError: an argument of the wrong type, or out of range.
            DistError: as `backward_and_update`.
        """
        name = "backward_and_sparse_update"
        limit = self._limit(threshold, name, divides=False)
        top_k, corrects = flag(topK, f"{name}: topK"), flag(corr, f"{name}: corr")
        share = check_sparsity(spars, top_k, name)
        if not is_real(momentum) or not 0 <= momentum < 1:
            raise ValueError(f"{name}: got momentum {momentum!r:.80}, want 0 to below 1")
        if momentum and not corrects:
            raise ValueError(f"{name}: got momentum {momentum} with corr=False, want corr=True")
        if corrects:
            check_unscaled("sparse updates and corr=True")
        kept = self._kept if corrects else None
        start = Sparsified(share, top_k, kept, float(momentum))
        self._train(loss, self._by(averages(limit, self._equal, start)))

    def backward_and_low_rank_update(
        self, loss: Tensor, rank: int = 2, threshold: int | None = None
    ) -> None:
        """As `backward_and_update`, of gradients that travel as products of two matrices (PowerSGD:
        Vogels et al., 2019). What these leave out is added to the gradients of the next step;
        vectors, and what would not become smaller, travel as they are.

        Args:
            rank: how many columns the matrices have, the same in all steps.

        Raises:
            TypeError, ValueError: an argument of the wrong type, or out of range.
            DistError: as `backward_and_update`.
        """
        name = "backward_and_low_rank_update"
        columns = size(rank, f"{name}: rank")
        check_unscaled("low-rank updates")
        limit = self._limit(threshold, name, divides=False)
        self._train(loss, self._by(averages(limit, self._equal, LowRank(columns, self._kept))))

    def accumulate(self, loss: Tensor, threshold: int | None = None) -> None:
        """`opt.accumulate(loss)`: nothing is exchanged before the next update. With `shard` 2 or 3
        gradients are averaged over all ranks at once, each of which keeps its share of the sums.

        Args:
            threshold: with `shard` of 2 or 3, as that of `backward_and_update`, and the same.

        Raises:
            ValueError, DistError: with `shard` of 2 or 3, as `backward_and_update`.
        """
        limit = self._limit(threshold, "accumulate")
        if self._shares is None or self.shard < 2:
            self._add_up(loss)
            return
        check(self.opt, self.shard)
        self._shares.accumulate(self.opt, loss, limit)

    def _look_in(self, model: Any) -> None:
        """As that of the optimizer; sums of shares are found without."""
        if self.shard < 2:
            self.opt._look_in(model)

    def step(self) -> None:
        """`opt.step()`."""
        self.opt.step()

    def observe(self, metric: Any) -> None:
        """`opt.observe(metric)`; every rank has to see the same number."""
        self.opt.observe(metric)

    # ---- states ----------------------------------------------------------------------------------

    def get_states(self) -> dict[str, Any]:
        """Those of the optimizer; what all ranks keep for later sparse or low-rank exchanges, and
        where partial updates are in their cycle, as far as there were such. With `shard`, and after
        sparse or low-rank updates, all ranks call it together, and each gets the states of all,
        copied: with `shard` as they are in one process.

        Raises:
            DistError: where all call it together, as `backward_and_update`.
        """
        kept = {kind: self._kept.named(kind) for kind in _KINDS}
        own = of_all_ranks({kind: ones for kind, ones in kept.items() if ones})
        if self._is_apart or self.partial:
            own[_PARTIAL] = {"place": self.partial, **own_place()}
        return {**self._own_states(), **own}

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Copies what `get_states` returned, on any number of ranks, into the tensors. What another
        number of ranks keeps for later exchanges, each has the mean of. The first call that takes
        states of partial updates from another rank warns.

        Raises:
            TypeError, ValueError, ShapeError: before anything is written.
        """
        name = "DistOpt.set_states"
        states = of_this_rank(name, mapping(states, name))
        turn = mapping(states.get(_PARTIAL, {}), f"{name}: {_PARTIAL}")
        place = size(turn.get("place", 0), f"{name}: {_PARTIAL}: place", 0)
        if names.COUNTER in states:
            self.opt._staged_step(f"{name}: {names.COUNTER}", states[names.COUNTER])
        writes = self._kept.staged_kinds(name, _KINDS, states, are_whole(states))
        if self._shares is not None:
            states, divided = divided_states(name, self.opt, self._shares, states)
            writes += divided
        known = (*_KINDS, _PARTIAL)
        self.opt.set_states({key: one for key, one in states.items() if key not in known})
        for write in writes:
            write()
        if turn or are_whole(states):
            self.partial, self._is_apart = place, bool(turn)
            warn_of_place(name, turn)

    def get_named_states(self, prefix: str = "") -> dict[str, Tensor]:
        """`opt.get_named_states(prefix)`, of what all ranks have in common; with `shard`, of the
        whole states, as `get_states`."""
        start = names.inside(prefix, "DistOpt.get_named_states")
        counter = self.opt.step_counter
        if self._shares is not None:
            counter = copied(counter)  # as all other states are then
        return names.flat(self._own_states(), counter, start)

    def set_named_states(self, found: Mapping[str, Any], prefix: str = "") -> None:
        """Copies what `get_named_states` returned, as `opt.set_named_states` does."""
        op = "DistOpt.set_named_states"
        start = names.inside(prefix, op)
        self.set_states(names.nested(mapping(found, op), start, self.opt._state_kinds, op))

    @property
    def gathers_states(self) -> bool:
        """Whether all ranks have to call `get_named_states` together."""
        return self._shares is not None

    def _own_states(self) -> dict[str, Any]:
        if self._shares is None:
            return self.opt.get_states()
        return gathered_states(self.opt, self._shares)

    def _limit(
        self, threshold: int | None, name: str, divides: bool = True, measures: bool = False
    ) -> int:
        """The most elements of a bucket.

        Args:
            divides: whether this is a step in which updates may be divided.
            measures: whether the default may depend on times, as results do not depend on it.

        Raises:
            TypeError, ValueError: no number from 1; a step that does not divide what it should.
        """
        if self.shard and not divides:
            raise ValueError(f"{name}: got shard={self.shard}, want backward_and_update or shard=0")
        if threshold is not None:
            return min(size(threshold, f"{name}: threshold"), self.buffSize)
        is_free = measures and not self.shard and not self.opt._uses("clip_norm")
        return min(bucket_size() if is_free else DEFAULT, self.buffSize)
