"""States that differ from rank to rank, in files that one rank writes for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...dist.exchange import all_gather
from ...dist.group import current
from ...errors import DistError, ShapeError
from ...layer.check import mapping
from ...notices import once
from ...tensor import Tensor
from .gradients import RESIDUAL, VELOCITY
from .options import size

#: The state that tells of how many ranks the others are.
RANKS = "exchange_ranks"


def of_all_ranks(kinds: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Any]:
    """States by kind and name, as files have them: of what differs from rank to rank those of all,
    one after the other along a new first axis, and the number of ranks. All ranks call it, unless
    there is nothing. One that is alone has its own."""
    if not kinds or current().place.size == 1:
        return dict(kinds)
    try:
        made = {
            kind: {name: all_gather(one) for name, one in named.items()}
            for kind, named in kinds.items()
            if kind in (RESIDUAL, VELOCITY)
        }
    except DistError as error:
        want = "get_states: all ranks call it together, as each has residuals of its own"
        raise DistError(f"{want} ({error})") from error
    return {**kinds, **made, RANKS: current().place.size}


def of_this_rank(op: str, states: Mapping[str, Any]) -> dict[str, Any]:
    """This rank's part of what `of_all_ranks` has made: its own, or, of another number of ranks,
    the mean of theirs. Updates are by averages, so that what the ranks owe the parameters is the
    mean of what they keep, which stays the same.

    Raises:
        ShapeError, TypeError, ValueError: states of another number of ranks than they tell.
    """
    made = dict(states)
    if RANKS not in made:
        return made
    ranks = size(made.pop(RANKS), f"{op}: {RANKS}")
    for kind in (RESIDUAL, VELOCITY):
        if kind in made:
            named = mapping(made[kind], f"{op}: {kind}")
            made[kind] = {k: _own(f"{op}: {kind}: {k}", one, ranks) for k, one in named.items()}
    return made


def _own(what: str, value: Any, ranks: int) -> Any:
    """This rank's of the values of all ranks; what is no array is refused where it is copied."""
    if not isinstance(value, (Tensor, np.ndarray)):
        return value
    array, place = value.to_numpy() if isinstance(value, Tensor) else value, current().place
    if array.shape[:1] != (ranks,):
        raise ShapeError(f"{what}: got shape {array.shape}, want {ranks} on axis 0, of all ranks")
    if ranks == place.size:
        return array[place.rank, ...]
    return np.asarray(array.mean(0, dtype=np.float64), array.dtype)  # of shape () a scalar


def own_place() -> dict[str, int]:
    """Whose the states are where no rank has those of others; nothing of one that is alone."""
    place = current().place
    return {} if place.size == 1 else {"rank": place.rank, "ranks": place.size}


def warn_of_place(op: str, states: Mapping[str, Any]) -> None:
    """Warns once of states that another rank has told of itself (`own_place`)."""
    found, place = (states.get("rank", 0), states.get("ranks", 1)), current().place
    if found[1] != 1 and found != (place.rank, place.size):
        once(
            (op, "place"),
            f"{op}: takes states of rank {found[0]} of {found[1]} for those of rank {place.rank} "
            f"of {place.size}: parameters and moments of ranks that update by their own gradients "
            "differ, so want a file for each rank where training has to go on as it was",
        )
