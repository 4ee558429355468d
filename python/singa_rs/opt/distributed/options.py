"""What DistOpt may be given."""

from __future__ import annotations

from typing import Any

from ...dist.communicator import Communicator
from ...refusals import count
from ...tensor.numbers import whole

_FORMS = (None, "float16", "bfloat16", "sparse", "low_rank")


def stage(shard: Any) -> int:
    """The stage that `shard` says; True is 1."""
    made = int(shard) if isinstance(shard, bool) else whole(shard, "DistOpt: shard")
    if not 0 <= made <= 3:
        raise ValueError(f"DistOpt: got shard={shard}, want 0, 1, 2 or 3")
    return made


def form(compress: Any, shard: Any) -> str | None:
    """How gradients travel, as `compress` says."""
    if compress is not None and not isinstance(compress, str):
        raise TypeError(f"DistOpt: got compress={compress!r:.80}, want a str or None")
    if compress not in _FORMS:
        raise ValueError(f"DistOpt: got compress={compress!r:.80}, want one of {_FORMS}")
    if compress is not None and shard:
        raise ValueError(f"DistOpt: got compress={compress!r} with shard={shard}, want one of them")
    return compress


def joined(given: Any, nccl_id: Any, local_rank: Any, world_size: Any, limit: int) -> Communicator:
    """The communicator that was given, or one of the processes that were started together."""
    if given is None:
        place = () if nccl_id is None else (local_rank, world_size, nccl_id)
        return Communicator(*place, limit)
    if not isinstance(given, Communicator):
        raise TypeError(
            f"DistOpt: got {type(given).__name__} for communicator, want a Communicator"
        )
    if nccl_id is not None:
        raise TypeError("DistOpt: got communicator and nccl_id, want one of them")
    return given


def size(value: Any, argument: str, least: int = 1) -> int:
    """A number of elements, steps or ranks, which may be a tensor or a float."""
    return count(whole(value, argument), argument, least)
