"""SINGA's way for processes to find each other: a token that their parent gives to all."""

from __future__ import annotations

import secrets
from typing import Any

from ..refusals import is_integral
from ..shown import shown
from . import group
from .faults import DistError
from .place import MOST_RANKS, Place, named_segment


class NcclIdHolder:
    """A token, 16 random bytes, that the processes of one machine share to find each other (SINGA
    NcclIdHolder). It can be copied to them, before or after they are forked."""

    def __init__(self) -> None:
        self.id = secrets.token_bytes(16)


def meet(token: Any, rank: Any, size: Any, name: str) -> None:
    """Joins the processes that have the same token.

    Raises:
        TypeError: anything but a token and two ints.
        ValueError: a rank out of range.
        DistError: as `init`; this process has another place already.
    """
    if not isinstance(token, NcclIdHolder):
        raise TypeError(f"{name}: got nccl_id {type(token).__name__}, want a NcclIdHolder")
    for what, value in (("local_rank", rank), ("world_size", size)):
        if not is_integral(value):
            raise TypeError(f"{name}: got {what} {value!r:.80} beside nccl_id, want an int")
    if size > MOST_RANKS:
        raise ValueError(f"{name}: got world_size {shown(size)}, want at most {MOST_RANKS}")
    if not 0 <= rank < size:
        got = f"{name}: got local_rank {shown(rank)}"
        raise ValueError(f"{got}, want 0 to below world_size, {shown(size)}")
    path = named_segment(token.id.hex()) if size > 1 else None
    place = Place(rank, size, rank, size, path, "NcclIdHolder")
    if not group.is_initialized():
        group.join(place, group.PATIENCE)
    elif group.current().place != place:
        raise DistError(f"{name}: this process has joined others by another token already")
