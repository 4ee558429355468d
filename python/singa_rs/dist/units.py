"""Tensors that are divided among the ranks together: each rank keeps a share of their elements, and
what uses one of them gathers them all for as long as they are needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import ref

from .. import _core, autograd
from ..shown import listed
from ..tensor import Tensor
from .ahead import Gathered, gathering
from .exchange import new
from .together import gathered


class Layout(Protocol):
    """Where the elements of the tensors are in the ranks' shares."""

    shapes: Sequence[tuple[int, ...]]

    def pieces(self, rank: int) -> Iterator[Any]:
        """What is in a rank's share: a piece of each tensor, in their order."""


_numbers = itertools.count(1)


class Unit:
    """Tensors of one dtype, each of which is divided once it was taken. A divided tensor keeps its
    shape and all else but its memory, and the unit lives as long as one of them."""

    def __init__(
        self, share: Tensor, layout: Layout, rank: int, names: Sequence[str], family: Any
    ) -> None:
        """`family` is what units that are used together have in common."""
        self.share, self.layout, self.rank, self.names = share, layout, rank, tuple(names)
        self.family, self.number = family, next(_numbers)
        #: By the unit before and whether gradients are noted: the unit that is used next.
        self.after: dict[tuple[int, bool], ref[Unit] | None] = {}
        #: The tensors themselves while they are held (`held`).
        self.kept: Sequence[Tensor] | None = None
        self._taken: set[int] = set()

    def has(self, index: int, param: Tensor) -> bool:
        """Whether a tensor is divided, as that of this index."""
        return param._divided == (self, index)

    def take(self, index: int, param: Tensor) -> None:
        """Divides a tensor. The share has its value the first time; later, the tensor was given
        other memory since, whose value is taken."""
        if self.has(index, param):
            return
        if index in self._taken:
            self.write(index, param)
        param.rebind(_core.divide(param, self.share, self, index))
        self._taken.add(index)

    def write(self, index: int, value: Tensor) -> None:
        """Copies this rank's part of a whole value, which is the same on all ranks. They gather one
        that is divided itself together, also those without a part."""
        with autograd.no_grad():
            for piece in self.layout.pieces(self.rank):
                if piece.index == index:
                    piece.within(self.share).copy_from(piece.of(value))

    def whole(self, index: int) -> Tensor:
        """All elements of a divided tensor, which the engine asks for where one is used.

        Raises:
            DistError: another rank has failed, or does not use the unit.
        """
        found = gathering().of(self) if self.kept is None else self.kept
        return found[index]

    def begin(self) -> Gathered:
        """Begins to gather the unit."""
        to = [new(shape, self.share) for shape in self.layout.shapes]
        with _explained(self.names), autograd.no_grad():
            return Gathered(self, gathered(self.share, to, self.number))

    def finish(self, work: Any) -> Sequence[Tensor]:
        """The gathered tensors."""
        with _explained(self.names), autograd.no_grad():
            return work.wait()


@contextmanager
def held(tensors: Iterable[Tensor], keeps: bool) -> Iterator[None]:
    """A context before which all ranks gather what of these tensors is divided, and in which those
    that keep it may read it alone."""
    places = (one._divided for one in tensors)
    units = dict.fromkeys(place[0] for place in places if place is not None)
    try:
        for unit in units:
            found = gathering().of(unit)
            unit.kept = found if keeps else None
        gathering().end()
        yield
    finally:
        for unit in units:
            unit.kept = None


@contextmanager
def _explained(names: Sequence[str]) -> Iterator[None]:
    """A context in which the error of an exchange says what is gathered."""
    try:
        yield
    except _core.DistError as error:
        if len(error.args) == 1:
            error.args = (
                f"{error.args[0]}; it gathers {listed(names, 2)} (shard=3), which all ranks have "
                "to use together",
            )
        raise
