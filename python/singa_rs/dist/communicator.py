"""SINGA's communicator: exchanges that begin at once and are waited for together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import autograd
from ..refusals import count, flag
from ..tensor import Tensor
from . import group
from .buckets import joined, parts
from .exchange import all_reduce, check_written
from .meeting import NcclIdHolder, meet
from .sparse import check_sparsity, chosen
from .together import reduced_into
from .work import Work


class Communicator:
    """This process among others, with SINGA's names (SINGA Communicator).

    `Communicator(buffSize)` joins the processes that a launcher has started, and
    `Communicator(local_rank, world_size, nccl_id, buffSize)` those with the same token. Tensors
    have their results after `wait`, and must not be used before.
    """

    def __init__(
        self,
        *place: int | NcclIdHolder,
        buffSize: int = 4194304,  # SINGA's name
    ) -> None:
        if len(place) not in (0, 1, 3, 4):
            raise TypeError(f"Communicator: got {len(place)} arguments, want buffSize, or "
                            "local_rank, world_size, nccl_id and buffSize")  # fmt: skip
        given = place[-1] if len(place) in (1, 4) else buffSize
        limit = count(given, "Communicator: buffSize")
        if len(place) >= 3:
            meet(place[2], place[0], place[1], "Communicator")
        self.world_size, self.global_rank = group.size(), group.rank()
        self.local_rank = group.local_rank()
        #: The most elements that are exchanged in one piece.
        self.buffSize = limit
        self._buffers: dict[str, list[Tensor]] = {"dense": [], "float16": []}
        self._works: list[Work] = []

    def wait(self) -> None:
        """Waits for all exchanges that were begun."""
        works, self._works = self._works, []
        for work in works:
            work.wait()

    def synch(self, t: Tensor) -> None:
        """Adds up the tensors of all ranks, in place."""
        self._reduce(t, "dense")

    def synchHalf(self, t: Tensor) -> None:
        """As `synch`; the values travel as float16."""
        self._reduce(t, "float16")

    def fusedSynch(self, tensors: Sequence[Tensor], send: bool = True) -> None:
        """With `send=False`: collects tensors. Else: adds up those that were collected, or else
        `tensors`, over all ranks, and writes the sums into `tensors`, in order.

        Raises:
            TypeError: something else than tensors.
            ValueError: `tensors` do not have the shapes of those that were collected.
        """
        self._fuse("fusedSynch", tensors, send, "dense")

    def fusedSynchHalf(self, tensors: Sequence[Tensor], send: bool = True) -> None:
        """As `fusedSynch`; the values travel as float16."""
        self._fuse("fusedSynchHalf", tensors, send, "float16")

    def sparsification(
        self, t: Tensor, accumulation: Tensor | None, spars: float, topK: bool
    ) -> None:
        """Adds up what is chosen of the tensors of all ranks, in place.

        Args:
            accumulation: what was not chosen before, which is added first, and then becomes what
                is not chosen now; None does without.
            spars: the least absolute value of what is chosen; with `topK`, the share that is.
        """
        self.fusedSparsification([t], accumulation, spars, topK)

    def fusedSparsification(
        self, tensors: Sequence[Tensor], accumulation: Tensor | None, spars: float, topK: bool
    ) -> None:
        """As `sparsification`, of several tensors as if they were one; nothing without any."""
        spars = check_sparsity(spars, topK, "sparsification")
        top_k = flag(topK, "sparsification: topK")
        tensors = _tensors(tensors, "sparsification")
        if accumulation is not None:
            _tensors([accumulation], "sparsification: accumulation")
        if not tensors:
            return
        for one in tensors:
            check_written(one, "sparsification")
        x = joined(tensors)
        with autograd.no_grad():
            if accumulation is not None:
                x = x + accumulation.reshape(x.shape)
            found = chosen(x, spars, top_k)
            if accumulation is not None:
                accumulation.copy_from(x - found)
        sent = parts(found, [one.shape for one in tensors])
        self._works.append(reduced_into(sent, tensors, "sum", "sparse"))

    def _reduce(self, t: Tensor, wire: str) -> None:
        self._works.append(all_reduce(t, wire=wire, async_op=True))

    def _fuse(self, op: str, given: Sequence[Tensor], send: bool, wire: str) -> None:
        tensors, buffer = _tensors(given, op), self._buffers[wire]
        if not send:
            buffer.extend(tensors)
            return
        found = buffer or tensors
        shapes = [[tuple(one.shape) for one in ones] for ones in (found, tensors)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{op}: got tensors of shapes {shapes[1]}, want those collected, {shapes[0]}"
            )
        for one in tensors:
            check_written(one, op)
        if found:
            self._works.append(reduced_into(found, tensors, "sum", wire))
        self._buffers[wire] = []


def _tensors(given: Any, name: str) -> list[Tensor]:
    """The tensors that were given.

    Raises:
        TypeError: something else.
    """
    try:
        found = list(given)
    except TypeError:
        raise TypeError(f"{name}: got {type(given).__name__}, want tensors") from None
    for one in found:
        if not isinstance(one, Tensor):
            raise TypeError(f"{name}: got {type(one).__name__}, want a Tensor")
    return found
