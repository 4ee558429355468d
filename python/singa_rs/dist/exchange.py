"""Exchanges of tensors between the processes.

All ranks call the same functions in the same order, with tensors of the same shapes and dtypes.
Results are equal to the bit on all ranks and in all runs: sums are formed in the order of ranks.
None is differentiable; those in place refuse a tensor through which a gradient has yet to flow
back. Recorded steps contain them as they do other operations. With `async_op` the functions return
a `Work` at once, whose `wait` returns what they do without.
"""

from __future__ import annotations

from typing import Any

from ..autograd.order import has_gradient
from ..errors import GraphError
from ..refusals import is_integral
from ..tensor import Tensor
from .group import current
from .work import Work

_REDUCTIONS = ("sum", "mean", "max", "min")
_WIRES = ("dense", "float16", "bfloat16", "sparse")


def all_reduce(t: Tensor, op: str = "sum", wire: str | None = None, async_op: bool = False) -> Any:
    """Combines the tensors of all ranks, in place, element by element; returns `t`
    (MPI_Allreduce).

    Args:
        op: "sum", "mean", "max" or "min".
        wire: how float32 travels: "float16" or "bfloat16", rounded; "sparse", only what is not
            zero; as it is by default.
        async_op: whether to return a `Work` at once.

    Raises:
        ValueError: another `op` or `wire`.
        TypeError: not a tensor, or one whose dtype has no such `op` or `wire`.
        GraphError: backward has yet to go through it (`dist.functional.all_reduce`).
        DistError: as `Work.wait`.
    """
    _check(t, "all_reduce")
    check_written(t, "all_reduce")
    return _in_place(reduction("all_reduce", op, wire), t, async_op)


def broadcast(t: Tensor, root: int = 0, async_op: bool = False) -> Any:
    """Copies the root's tensor into those of all other ranks, in place; returns `t` (MPI_Bcast).

    Raises:
        TypeError: not a tensor.
        ValueError: there is no rank `root`.
        GraphError: backward has yet to go through it.
        DistError: as `Work.wait`.
    """
    _check(t, "broadcast")
    check_written(t, "broadcast")
    _check_rank(root, "broadcast: root")
    return _in_place({"op": "broadcast", "root": root}, t, async_op)


def all_gather(t: Tensor, async_op: bool = False) -> Any:
    """The tensors of all ranks, in their order, as one tensor of shape `(size, *t.shape)`
    (MPI_Allgather).

    Raises:
        TypeError: not a tensor.
        DistError: as `Work.wait`.
    """
    _check(t, "all_gather")
    out = new((current().place.size, *t.shape), t)
    return _into({"op": "all_gather"}, t, out, async_op)


def reduce_scatter(t: Tensor, op: str = "sum", async_op: bool = False) -> Any:
    """The combination of the parts `t[rank]` of all ranks, where the first extent of `t` is the
    number of ranks; its shape is the rest of that of `t` (MPI_Reduce_scatter_block).

    Raises:
        ValueError: another `op` than "sum", "mean", "max" and "min"; another first extent.
        TypeError: not a tensor, or one whose dtype has no such `op`.
        DistError: as `Work.wait`.
    """
    _check_parts(t, "reduce_scatter")
    return _into(reduction("reduce_scatter", op), t, new(t.shape[1:], t), async_op)


def all_to_all(t: Tensor, async_op: bool = False) -> Any:
    """A tensor whose part `[r]` is the part `t[rank]` of rank r, where the first extent of `t` is
    the number of ranks (MPI_Alltoall).

    Raises:
        ValueError: another first extent.
        TypeError: not a tensor.
        DistError: as `Work.wait`.
    """
    _check_parts(t, "all_to_all")
    return _into({"op": "all_to_all"}, t, new(t.shape, t), async_op)


def send(t: Tensor, to: int, async_op: bool = False) -> Any:
    """Sends a tensor to another rank, which calls `recv` (MPI_Send). Later exchanges of this rank
    wait until it has arrived, unless it is small.

    Raises:
        TypeError: not a tensor.
        ValueError: there is no rank `to`, or it is this one.
        DistError: as `Work.wait`.
    """
    _check(t, "send")
    _check_rank(to, "send: to", is_other=True)
    return _done(Work({"op": "send", "to": to}, [dense(t)], [], lambda: None), async_op)


def recv(t: Tensor, source: int, async_op: bool = False) -> Any:
    """Receives what another rank sends into a tensor; returns it (MPI_Recv).

    Raises:
        TypeError: not a tensor.
        ValueError: there is no rank `source`, or it is this one.
        GraphError: backward has yet to go through it.
        DistError: as `Work.wait`.
    """
    _check(t, "recv")
    check_written(t, "recv")
    _check_rank(source, "recv: source", is_other=True)
    return _in_place({"op": "receive", "from": source}, t, async_op, gives=False)


def barrier() -> None:
    """Waits until all ranks have called it (MPI_Barrier).

    Raises:
        DistError: as `Work.wait`.
    """
    Work({"op": "barrier"}, [], [], lambda: None).wait()


# ---- what exchanges have in common ---------------------------------------------------------------


def reduction(name: str, op: Any, wire: Any = None) -> dict[str, Any]:
    """The description of a reduction.

    Raises:
        ValueError: another `op` or `wire`.
    """
    if op not in _REDUCTIONS:
        raise ValueError(f"{name}: got op {op!r:.80}, want one of {_REDUCTIONS}")
    if wire is not None and wire not in _WIRES:
        raise ValueError(f"{name}: got wire {wire!r:.80}, want one of {_WIRES}")
    return {"op": name, "reduce": op, **({} if wire is None else {"wire": wire})}


def new(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A tensor of another one's device and dtype, without a gradient."""
    return Tensor(tuple(shape), like.device, like.dtype, requires_grad=False)


def check_written(t: Tensor, name: str) -> None:
    """Refuses a tensor that an exchange is to write, through which a gradient has yet to flow back:
    it would reach nothing any more.

    Raises:
        GraphError: such a tensor.
    """
    if has_gradient(t):
        differentiable = "dist.functional.all_reduce(x), which is differentiable, or "
        raise GraphError(
            f"{name}: got a tensor of shape {tuple(t.shape)} that backward has yet to go through, "
            "whose gradient an exchange in place would cut off; want "
            f"{differentiable if name == 'all_reduce' else ''}t.detach().clone()"
        )


def dense(t: Tensor) -> Tensor:
    """The tensor, or a copy of it without gaps, row by row."""
    if t.is_contiguous():
        return t
    made = new(t.shape, t)
    made.copy_from(t)
    return made


def _in_place(spec: dict[str, Any], t: Tensor, async_op: bool, gives: bool = True) -> Any:
    """An exchange of a tensor's elements where they are, or of a copy without gaps, which is
    copied back."""
    own = dense(t)

    def result() -> Tensor:
        if own is not t:
            t.copy_from(own)
        t._overwritten(t)
        return t

    return _done(Work(spec, [own] if gives else [], [own], result), async_op)


def _into(spec: dict[str, Any], t: Tensor, out: Tensor, async_op: bool) -> Any:
    """An exchange from one tensor into another."""
    return _done(Work(spec, [dense(t)], [out], lambda: out), async_op)


def _done(work: Work, async_op: bool) -> Any:
    return work if async_op else work.wait()


def _check(t: Any, name: str) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(f"{name}: got {type(t).__name__}, want a Tensor")


def _check_rank(rank: Any, name: str, is_other: bool = False) -> None:
    place = current().place
    if not is_integral(rank):
        raise TypeError(f"{name}: got {rank!r:.80}, want an int")
    if not 0 <= rank < place.size or (is_other and rank == place.rank):
        want = f"a rank from 0 to {place.size - 1}"
        other = f" other than this one, {place.rank}" if is_other else ""
        raise ValueError(f"{name}: got {rank}, want {want}{other}")


def _check_parts(t: Any, name: str) -> None:
    """Refuses anything but a tensor that has a part for each rank."""
    _check(t, name)
    size = current().place.size
    if not t.shape or t.shape[0] != size:
        raise ValueError(
            f"{name}: got shape {tuple(t.shape)}, want {size} parts, one for each rank"
        )
