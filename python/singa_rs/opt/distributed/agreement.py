"""Whether all ranks exchange the same parameters together, and begin with the same values."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from ... import autograd
from ...autograd.mode import mode
from ...dist.exchange import all_gather
from ...dist.group import current
from ...dist.together import gathered
from ...errors import DistError
from ...record import making_state, once_run
from ...tensor import Tensor, from_numpy
from ..base import Optimizer
from .checksums import checksum, checksums

_PARAMETERS = (
    "the same parameters on all ranks where training begins: made after dist.set_seed, loaded on "
    "every rank, or given by dist.broadcast(p) of each p of model.get_params().values()"
)


class Agreement:
    """The parameters that an optimizer has exchanged together, bucket by bucket, on all ranks.

    The engine compares types and sizes alone, so ranks whose losses reach different parameters of
    equal shapes would average the gradients of one with those of the other; and equal updates of
    values that differ leave them different. Ranks compare names and values of a bucket where they
    exchange it for the first time: a step that is recorded then runs once, and what is replayed
    compares nothing.
    """

    def __init__(self, compares_values: bool = True) -> None:
        self._compares_values = compares_values
        self._known: set[tuple[str, ...]] = set()

    def of_names(self) -> Agreement:
        """The same where ranks have values of their own, which are not compared."""
        made = Agreement(compares_values=False)
        made._known = self._known
        return made

    @property
    def is_due(self) -> bool:
        """Whether nothing has been compared, and can be now."""
        return not self._known and _can_compare()

    def check(self, params: Sequence[Tensor], before: Tensor | None = None) -> None:
        """Compares the parameters of a bucket with those of all other ranks.

        Args:
            before: the checksums of earlier values, which are compared in the place of the present
                ones.

        Raises:
            DistError: another rank has others; it names them. If a step is being recorded, that is
                raised once it has run.
        """
        self._check(tuple(map(_named, params)), params, before, _PARAMETERS)

    def check_numbers(self, optimizer: Optimizer) -> None:
        """Compares an optimizer's step counter and hyperparameters with those of all other ranks.

        Raises:
            DistError: as `check`.
        """
        found = _numbers(optimizer)
        self._check(tuple(found), list(found.values()), None, "the same optimizer on all ranks")

    def _check(
        self, names: tuple[str, ...], tensors: Sequence[Tensor], before: Tensor | None, want: str
    ) -> None:
        if names in self._known or not _can_compare():
            return
        sums = checksums(tensors) if before is None and self._compares_values else before
        text = "\n".join(names).encode()
        found, own = _gathered(text, len(names), sums)

        def compare() -> None:
            codes, rank = found.to_numpy(), current().place.rank
            if (codes[:, :2] != codes[0, :2]).any():
                texts = _texts(text, int(codes[:, 1].max()))
                raise DistError(_difference([one.splitlines() for one in texts], rank))
            if (codes != codes[0]).any():
                raise DistError(f"{_unequal(names, own, rank)}; want {want}")
            self._known.add(names)

        once_run(compare, "ranks compare what they exchange")


def _can_compare() -> bool:
    """Whether there are other ranks, and the comparison can follow the step: a recording by hand
    may run at any time."""
    is_by_hand = mode.nodes is not None and mode.nodes.later is None
    return current().place.size > 1 and not is_by_hand


def _numbers(optimizer: Optimizer) -> dict[str, Tensor]:
    """The step counter and the hyperparameters of an optimizer and its groups."""
    kind = type(optimizer).__name__
    found = {f"{kind}.step_counter": optimizer.step_counter}
    for number, one in enumerate((optimizer, *optimizer._groups)):
        start = f"{kind}.group {number - 1}." if number else f"{kind}."
        for name, (holder, _) in one.hyperparameters.items():
            if holder in vars(one):
                found[start + name] = vars(one)[holder]
    return found


def _named(param: Tensor) -> str:
    """A parameter's place in its model, as ranks may give it names of their own, and its shape."""
    return f"{getattr(param, '_path_name', None) or 'a parameter'} {tuple(param.shape)}"


def _gathered(text: bytes, count: int, sums: Tensor | None) -> tuple[Tensor, Tensor]:
    """Once the exchange has run: the checksums and lengths of all ranks' texts, and a checksum of
    their sums; and this rank's sums, zeros where there are none."""
    with autograd.no_grad():
        with making_state():
            own = from_numpy(np.array([zlib.crc32(text), len(text), 0], np.uint32).view(np.int32))
            found = from_numpy(np.zeros((current().place.size, 3), np.int32))
            kept = from_numpy(np.zeros(count, np.int32))
        if sums is not None:
            kept.copy_from(sums)
            own.view_slice(((2, 1, 1),)).copy_from(checksum(sums))
        gathered(own, [found]).wait()
    return found, kept


def _texts(own: bytes, length: int) -> list[str]:
    """The texts of all ranks."""
    with autograd.no_grad():
        sent = from_numpy(np.frombuffer(own.ljust(length, b"\n"), np.uint8), dtype="uint8")
        return [one.tobytes().decode() for one in all_gather(sent).to_numpy()]


def _difference(lines: Sequence[Sequence[str]], rank: int) -> str:
    """What is said of the first parameter in which a rank differs from this one, or from rank 0
    where none does."""
    by, other = _pair(lines, rank)
    ends = [[*lines[n], "no other"] for n in (by, other)]
    mine, its = next(pair for pair in zip(*ends, strict=False) if pair[0] != pair[1])
    return (
        f"ranks differ: rank {other} exchanges {its} where rank {by} exchanges {mine}; want losses "
        "that reach the same parameters, in the same order, on all ranks"
    )


def _unequal(names: Sequence[str], own: Tensor, rank: int) -> str:
    """What is said of the first value in which a rank differs, as in `_difference`."""
    with autograd.no_grad():
        sums = all_gather(own).to_numpy().tolist()
    by, other = _pair(sums, rank)
    pairs = zip(names, sums[by], sums[other], strict=True)
    name = next(name for name, mine, its in pairs if mine != its)
    return f"ranks differ: rank {other} begins with another value of {name} than rank {by}"


def _pair(found: Sequence[Sequence[object]], rank: int) -> tuple[int, int]:
    """This rank, or rank 0 where none differs from this one; and the first that differs from it."""
    by = rank if any(one != found[rank] for one in found) else 0
    return by, next(n for n, one in enumerate(found) if one != found[by])
