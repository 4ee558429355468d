"""MPI as transport: the library that mpi4py has loaded, and its launchers.

The engine calls the library itself, from a thread of its own; mpi4py only says where the library
is, and what its handles and constants are.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

#: Where launchers say how many processes they have started: MPICH's, Intel's and srun's PMI, Open
#: MPI's, and srun's own, which counts the daemons where another launcher runs on top of it.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def connect() -> dict[str, int | str]:
    """Returns what the engine needs to exchange data among all processes of this MPI run.

    That is the library's path and the library's handles and constants as integers. All processes
    call it at the same time: it makes two communicators, one for data and one for control messages.

    Raises:
        ImportError: mpi4py is not installed.
        RuntimeError: there is no MPI library, it does not allow calls from several threads, or the
            processes were started by the launcher of another MPI library.
    """
    mpi = _load()
    _check_threads(mpi)
    _check_launcher(mpi)
    data, control = mpi.COMM_WORLD.Dup(), mpi.COMM_WORLD.Dup()
    for communicator in (data, control):
        communicator.Set_errhandler(mpi.ERRORS_RETURN)
    return {
        "library": mpi.__file__,
        "handle_bytes": mpi._sizeof(mpi.COMM_WORLD),
        "status_bytes": mpi._sizeof(mpi.Status),
        "error_string_bytes": mpi.MAX_ERROR_STRING,
        "any_source": mpi.ANY_SOURCE,
        "byte": mpi._handleof(mpi.BYTE),
        "data": mpi._handleof(data),
        "control": mpi._handleof(control),
    }


def _load() -> ModuleType:
    """Imports mpi4py's module, which loads and initialises the library."""
    try:
        return import_module("mpi4py.MPI")
    except ImportError as error:
        raise ImportError(
            "dist: MPI needs mpi4py and an MPI library, such as `pip install singa-rs[mpi]` "
            f"installs ({error})"
        ) from error
    except RuntimeError as error:
        raise RuntimeError(
            "dist: mpi4py finds no MPI library; `pip install singa-rs[mpi]` installs one, "
            f"MPI4PY_LIBMPI names the cluster's own ({error})"
        ) from error


def _check_threads(mpi: ModuleType) -> None:
    """Refuses a library that only one thread may call: the engine has a thread for exchanges."""
    if mpi.Query_thread() < mpi.THREAD_MULTIPLE:
        raise RuntimeError(
            "dist: MPI was initialised without MPI_THREAD_MULTIPLE; leave mpi4py.rc.threads and "
            "mpi4py.rc.thread_level as they are, or take an MPI library that supports it"
        )


def _check_launcher(mpi: ModuleType) -> None:
    """Refuses another library's launcher, under which each process is alone in a run of its own."""
    size = mpi.COMM_WORLD.Get_size()
    for name in _SIZES:
        if name not in os.environ:
            continue
        if int(os.environ[name]) != size:
            vendor = mpi.Get_library_version().partition("\n")[0]
            raise RuntimeError(
                f"dist: the launcher has started {os.environ[name]} processes ({name}), but MPI "
                f"sees {size}; want the launcher of the library that mpi4py has loaded ({vendor})"
            )
        return
