"""The processes that work together, as this one sees them."""

from __future__ import annotations

import atexit
import os
import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any

from .. import _core, device
from ..refusals import is_real
from ..shown import shown
from .faults import DistError, told
from .place import Place, place_of

#: How many seconds the others get to say what has happened before MPI ends them.
_LAST_WORDS = 1.0
#: The longest timeout, in seconds.
_LONGEST = 1e10
#: How many seconds exchanges wait where nobody has said it.
PATIENCE = 60.0


class Group:
    """This process's place among those that work together, and its connection to them."""

    def __init__(self, place: Place, timeout: float) -> None:
        self.place, self.timeout = place, timeout
        #: The process that joined: one that it forks is not among the others.
        self.process = os.getpid()
        self.core: _core.Communicator | None = None
        #: How many elements are exchanged together, once that was measured.
        self.bucket: int | None = None
        if place.size > 1:
            self.core = _connection(place, timeout)

    @property
    def uses_mpi(self) -> bool:
        """Whether the processes exchange through MPI."""
        return self.place.size > 1 and self.place.path is None

    @property
    def is_own(self) -> bool:
        """Whether this process has joined, and not one that has forked it."""
        return self.process == os.getpid()

    def close(self) -> None:
        """Leaves the others."""
        if self.core is not None:
            self.core.close()
            self.core = None


def _connection(place: Place, timeout: float) -> _core.Communicator:
    if place.path is not None:
        return _core.Communicator.host(place.path, place.rank, place.size, timeout)
    from .mpi import connect  # importing mpi4py initialises MPI

    handles = connect()
    return _core.Communicator.mpi(handles.pop("library"), handles, timeout)


class _State:
    """What `init` has changed in this process."""

    group: Group | None = None
    #: Whether it has left others with whom it shared memory, which is gone.
    has_left = False
    #: Whether an error ends the process.
    has_failed = False
    hook: Any = None
    threads: int | None = None
    #: The level up to which nothing was logged before, and what it was set to.
    logged: tuple[int, int] | None = None


_state = _State()


def init(timeout: float | None = None) -> None:
    """Joins the processes that were started together with this one. If that was done, as in what
    `spawn` calls, it sets the timeout that is given, and nothing else.

    They are found in the environment: launchers of MPI programs (`mpiexec`, `srun`), `singa-rs
    run`, and torchrun's variables `RANK` and `WORLD_SIZE` on one machine. Without any the process
    is alone: rank 0 of 1. Exchanges, and the functions that tell the rank, call it on first use.

    A rank above 0 no longer logs what is below a warning. Processes of one machine share its
    processors, unless `OMP_NUM_THREADS` or the launcher says how many each has. An error that
    ends a process is told to the others, which then raise, too.

    Args:
        timeout: how many seconds an exchange waits for the others before it raises, at first 60.

    Raises:
        DistError: others have not come within the timeout, the environment contradicts itself, or
            this process has left others with whom it shared memory.
        TypeError, ValueError: a timeout that is no number above 0.
    """
    if timeout is not None:
        check_timeout(timeout, "init")
    if _state.group is None:
        if _state.has_left:
            raise DistError("init: this process has left the others by shutdown; start them again")
        join(place_of(os.environ), PATIENCE if timeout is None else timeout)
    elif timeout is not None:
        set_timeout(timeout)


def join(place: Place, timeout: float) -> None:
    """Joins the others at a place.

    Raises:
        DistError: as `init`; this process has joined others already.
    """
    check_timeout(timeout, "init")
    if _state.group is not None:
        raise DistError(f"init: this process is {_shown(_state.group.place)} already")
    _state.group = Group(place, float(timeout))
    if place.size > 1:
        _state.hook, sys.excepthook = sys.excepthook, _tell_others
        _share_processors(place)
    if place.rank > 0:
        import logging

        before = logging.root.manager.disable
        _state.logged = before, max(before, logging.INFO)
        logging.disable(_state.logged[1])


def check_timeout(timeout: Any, op: str) -> None:
    """Rejects what is no number of seconds above 0, and what no clock can count.

    Raises:
        TypeError, ValueError: naming it.
    """
    if not is_real(timeout):
        raise TypeError(f"{op}: got timeout {timeout!r:.80}, want a number of seconds")
    if not timeout > 0:
        raise ValueError(f"{op}: got timeout {shown(timeout)}, want seconds above 0")
    if timeout > _LONGEST:
        raise ValueError(f"{op}: got timeout {shown(timeout)}, want at most {_LONGEST:g} seconds")


def shutdown() -> None:
    """Leaves the other processes. Those of MPI may call `init` again afterwards, all of them; those
    that share memory have to be started again."""
    group, _state.group = _state.group, None
    if group is None:
        return
    group.close()
    _state.has_left = _state.has_left or group.place.path is not None
    if group.place.size > 1 and sys.excepthook is _tell_others:
        sys.excepthook = _state.hook
    if _state.threads is not None and group.is_own:
        device.get_default_device().set_num_threads(_state.threads)
        _state.threads = None
    if _state.logged is not None:
        import logging

        before, ours = _state.logged
        _state.logged = None
        if logging.root.manager.disable == ours:
            logging.disable(before)


def current() -> Group:
    """The group of this process, which joins it now if it has not."""
    init()
    assert _state.group is not None
    return _state.group


def is_initialized() -> bool:
    """Whether `init` was called, and `shutdown` not since."""
    return _state.group is not None


def rank() -> int:
    """The number of this process, from 0."""
    return current().place.rank


def size() -> int:
    """How many processes there are."""
    return current().place.size


def local_rank() -> int:
    """The number of this process among those of its machine, from 0."""
    return current().place.local_rank


def bytes_sent() -> int:
    """How many bytes this process has given to others in exchanges that are done: each byte once
    for each rank that receives it, without what the transport adds."""
    core = current().core
    return 0 if core is None else core.bytes_sent


def set_timeout(timeout: float) -> None:
    """How many seconds later exchanges wait for the others before they raise.

    Raises:
        TypeError, ValueError: no number above 0.
    """
    check_timeout(timeout, "set_timeout")
    group = current()
    group.timeout = float(timeout)
    if group.core is not None:
        group.core.set_timeout(group.timeout)


def ignore_steps() -> None:
    """Allows ranks to run recorded steps that do other operations for equal arguments, such as one
    that computes more on rank 0. Otherwise the first exchange of such steps raises `DistError`."""
    core = current().core
    if core is not None:
        core.ignore_steps()


def tell_failure(error: BaseException) -> None:
    """Tells the others that this process has failed; their exchanges raise an error that says
    so."""
    if _state.group is not None and _state.group.core is not None:
        _state.group.core.fail(told(error))


def _tell_others(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """The hook for errors that end the process."""
    _state.has_failed = True
    if not isinstance(error, DistError):
        tell_failure(error)
    _state.hook(kind, error, trace)


def _share_processors(place: Place) -> None:
    """Gives each process of a machine as many threads as there are processors for it. A launcher
    that binds processes has done that."""
    is_bound = len(os.sched_getaffinity(0)) < (os.cpu_count() or 1)
    if place.local_size == 1 or is_bound or "OMP_NUM_THREADS" in os.environ:
        return
    cpu = device.get_default_device()
    _state.threads = cpu.num_threads
    cpu.set_num_threads(max(1, cpu.num_threads // place.local_size))


def _shown(place: Place) -> str:
    return f"rank {place.rank} of {place.size}"


def _leave() -> None:
    """Leaves the others at the end of the process. MPI waits for all ranks there, which one that
    has failed cannot do. A process that a rank has forked has nothing to leave."""
    if _state.group is None or not _state.group.is_own:
        return
    is_abort = _state.has_failed and _state.group.uses_mpi
    shutdown()
    if is_abort:
        time.sleep(_LAST_WORDS)
        import_module("mpi4py.MPI").COMM_WORLD.Abort(1)


atexit.register(_leave)
