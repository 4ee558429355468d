"""Processes that work together: who is who, and exchanges of tensors between them.

    dist.init()
    dist.all_reduce(t, op="mean")

Start such a program by `singa-rs run -n 4 train.py` on one machine, or by `mpiexec -n 4 python
train.py`; `dist.spawn(train, 4)` starts processes from within one. `opt.DistOpt` trains with them.
"""

from .. import errors
from . import functional as functional
from .exchange import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    recv,
    reduce_scatter,
    send,
)
from .faults import DistError, RankError
from .group import (
    bytes_sent,
    ignore_steps,
    init,
    is_initialized,
    local_rank,
    rank,
    set_timeout,
    shutdown,
    size,
)
from .launch import spawn
from .measured import bucket_size
from .seeds import set_seed
from .work import Work

__all__ = [
    "DistError",
    "RankError",
    "Work",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "bucket_size",
    "bytes_sent",
    "ignore_steps",
    "init",
    "is_initialized",
    "local_rank",
    "rank",
    "recv",
    "reduce_scatter",
    "send",
    "set_seed",
    "set_timeout",
    "shutdown",
    "size",
    "spawn",
]


def __dir__() -> list[str]:
    return sorted(__all__)


errors.name_functions(globals(), {"spawn"})
