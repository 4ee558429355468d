"""Which of how many processes this is, as the program that started it says in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .faults import DistError

#: The segment of shared memory of processes that `singa-rs run` has started.
SEGMENT = "SINGA_RS_SEGMENT"

#: Variables of launchers of MPI programs: rank, number of processes, and both on this machine.
#: Slurm comes last, as its variables also reach the launchers that run inside of one task.
_MPI = {
    "Open MPI": (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    "MPICH": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "Slurm": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
}
#: The most processes that share memory, which the engine has places for.
MOST_RANKS = 256
#: The most digits of a number of processes, of which no launcher starts as many.
_DIGITS = 9
_TORCH = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


class Place(NamedTuple):
    """A process among others.

    `path` is the segment of shared memory through which they exchange; None for MPI, and for a
    process that is alone.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    path: str | None = None
    launcher: str | None = None


def place_of(environment: Mapping[str, str]) -> Place:
    """The place that the environment tells: of a launcher of MPI programs, or else the variables
    of torchrun, which `singa-rs run` sets, too. A process that nobody has started so is alone.

    Raises:
        DistError: variables that contradict each other, or processes of several machines without
            MPI.
    """
    if "RANK" in environment and "WORLD_SIZE" in environment:
        return _torch(environment)
    for launcher, names in _MPI.items():
        if names[0] in environment and names[1] in environment:
            rank, size, local_rank, local_size = _numbers(environment, names)
            return Place(rank, size, local_rank, local_size, None, launcher)
    return Place()


def _torch(environment: Mapping[str, str]) -> Place:
    rank, size, local_rank, local_size = _numbers(environment, _TORCH)
    if size != local_size:
        raise DistError(
            f"init: got WORLD_SIZE {size} and LOCAL_WORLD_SIZE {local_size}, processes of several "
            "machines; start them by a launcher of MPI programs, such as mpiexec or srun"
        )
    if size > MOST_RANKS:
        raise DistError(
            f"init: got WORLD_SIZE {size}, want at most {MOST_RANKS} processes that share memory; "
            "start more by a launcher of MPI programs"
        )
    path = environment.get(SEGMENT) or named_segment(_meeting(environment))
    return Place(rank, size, local_rank, local_size, path, "environment")


def _numbers(environment: Mapping[str, str], names: tuple[str, ...]) -> list[int]:
    """Rank, number of processes, and both on this machine, where they default to the former."""
    rank, size = (_number(environment, name, None) for name in names[:2])
    local_rank = _number(environment, names[2], rank)
    local_size = _number(environment, names[3], size)
    if not (0 <= rank < size and 0 <= local_rank < local_size):
        got = ", ".join(f"{name}={environment.get(name)}" for name in names)
        raise DistError(f"init: got {got}, want ranks from 0 to below the number of processes")
    return [rank, size, local_rank, local_size]


def _number(environment: Mapping[str, str], name: str, default: int | None) -> int:
    text = environment.get(name, "" if default is None else str(default))
    first = text.partition("(")[0].partition(",")[0]  # Slurm: "2(x3),1", tasks of each machine
    if not first.isdecimal():
        raise DistError(f"init: got {name}={text!r:.80}, want a whole number")
    if len(first.lstrip("0")) > _DIGITS:
        raise DistError(f"init: got {name}={text!r:.80}, want at most {_DIGITS} digits")
    return int(first)


def _meeting(environment: Mapping[str, str]) -> str:
    """What processes that belong together share, and others on this machine do not: where torchrun
    has them meet, or else the process that has started them."""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    found = [environment.get(name, "") for name in names]
    return "\n".join(found) if any(found) else f"parent {os.getppid()}"


def named_segment(key: str) -> str:
    """The path of the segment of this user's processes that share a key. The last one to come
    takes its name away, so that nothing is left."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        raise DistError(f"init: there is no {folder}, through which processes exchange")
    import hashlib  # whose library takes 3 MiB

    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return str(folder / f"singa_rs-{os.getuid()}-{name}")
