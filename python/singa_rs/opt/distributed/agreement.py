"""Whether all ranks exchange the same parameters together."""

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


class Agreement:
    """The parameters that an optimizer has exchanged together, bucket by bucket, on all ranks.

    The engine compares types and sizes alone, so ranks whose losses reach different parameters of
    equal shapes would average the gradients of one with those of the other. Ranks compare a bucket
    where they exchange it for the first time: a step that is recorded then runs once, and what is
    replayed compares nothing.
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, ...]] = set()

    def check(self, params: Sequence[Tensor]) -> None:
        """Compares the parameters of a bucket with those of all other ranks.

        Raises:
            DistError: another rank has others; it names them. If a step is being recorded, that is
                raised once it has run.
        """
        if current().place.size == 1:
            return
        names = tuple(map(_named, params))
        # A recording by hand may run at any time, so that nothing can follow its first run.
        is_by_hand = mode.nodes is not None and mode.nodes.later is None
        if names in self._known or is_by_hand:
            return
        text = "\n".join(names).encode()
        found = _gathered(text)
        once_run(lambda: self._compare(names, text, found), "ranks compare what they exchange")

    def _compare(self, names: tuple[str, ...], text: bytes, found: Tensor) -> None:
        codes = found.to_numpy()
        if (codes == codes[0]).all():
            self._known.add(names)
            return
        texts = _texts(text, int(codes[:, 1].max()))
        raise DistError(_difference([one.splitlines() for one in texts], current().place.rank))


def _named(param: Tensor) -> str:
    """A parameter's place in its model, as ranks may give it names of their own, and its shape."""
    return f"{getattr(param, '_path_name', None) or 'a parameter'} {tuple(param.shape)}"


def _gathered(text: bytes) -> Tensor:
    """The checksums and lengths of all ranks' texts, once the exchange has run."""
    with autograd.no_grad():
        with making_state():
            own = from_numpy(np.array([zlib.crc32(text), len(text)], np.uint32).view(np.int32))
            found = from_numpy(np.zeros((current().place.size, 2), np.int32))
        gathered(own, [found]).wait()
    return found


def _texts(own: bytes, length: int) -> list[str]:
    """The texts of all ranks."""
    with autograd.no_grad():
        sent = from_numpy(np.frombuffer(own.ljust(length, b"\n"), np.uint8), dtype="uint8")
        return [one.tobytes().decode() for one in all_gather(sent).to_numpy()]


def _difference(lines: Sequence[Sequence[str]], rank: int) -> str:
    """What is said of the first parameter in which a rank differs from this one, or from rank 0
    where none does."""
    by = rank if any(one != lines[rank] for one in lines) else 0
    other = next(n for n, one in enumerate(lines) if one != lines[by])
    ends = [[*lines[n], "no other"] for n in (by, other)]
    mine, its = next(pair for pair in zip(*ends, strict=False) if pair[0] != pair[1])
    return (
        f"ranks differ: rank {other} exchanges {its} where rank {by} exchanges {mine}; want losses "
        "that reach the same parameters, in the same order, on all ranks"
    )
