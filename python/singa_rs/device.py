"""Devices: where tensors live and operations run (SINGA's `device`).

With `SINGA_RS_DEVICE=cpu` in the environment, `create_cuda_gpu` and its kin answer the CPU, so that
programs which ask for a CUDA device run unchanged. Nothing else does: without it they raise where
there is no GPU.
"""

from __future__ import annotations

import functools
import glob
import operator
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, elsewhere, errors
from ._core import Device, DeviceError, on_one_device  # noqa: F401
from .refusals import count as _count

__all__ = [
    "Device",
    "create_cpu_device",
    "create_cuda_gpu",
    "create_cuda_gpu_on",
    "create_cuda_gpus",
    "create_cuda_gpus_on",
    "device_query",
    "enable_lazy_alloc",
    "get_default_device",
    "get_gpu_ids",
    "get_gpu_mem_size",
    "get_num_gpus",
    "info",
    "report_warnings",
]

elsewhere.closed(globals())

#: Warnings of the engine that have not been shown yet.
_waiting: list[str] = []
#: The packages that bring libraries of CUDA, and what these are called in them.
_CUDA_WHEELS = {
    "nvidia-cuda-nvrtc": "libnvrtc.so.13",
    "nvidia-cuda-nvrtc-cu12": "libnvrtc.so.12",
    "nvidia-cublas": "libcublasLt.so.13",
    "nvidia-cublas-cu12": "libcublasLt.so.12",
    "nvidia-cudnn-cu13": "libcudnn.so.9",
    "nvidia-cudnn-cu12": "libcudnn.so.9",
}
#: What programs that ask for a CUDA device get is said here.
_VARIABLE = "SINGA_RS_DEVICE"


def get_default_device() -> Device:
    """The device of tensors for which none is given: the CPU."""
    return _core.cpu()


def create_cpu_device() -> Device:
    """The CPU. There is one, so this is `get_default_device()`."""
    return _core.cpu()


def get_num_gpus() -> int:
    """How many CUDA devices NVIDIA's driver finds; 0 without one."""
    return _core.gpu_count()


def get_gpu_ids() -> list[int]:
    """The numbers of the CUDA devices."""
    return list(range(get_num_gpus()))


def create_cuda_gpu() -> Device:
    """The first CUDA device, or the CPU where `SINGA_RS_DEVICE=cpu`.

    Raises:
        DeviceError: there is none, or `SINGA_RS_DEVICE` names another device.
    """
    return create_cuda_gpu_on(0)


def create_cuda_gpu_on(device_id: int) -> Device:
    """The CUDA device of that number, or the CPU where `SINGA_RS_DEVICE=cpu`.

    Raises:
        DeviceError: there is none, or `SINGA_RS_DEVICE` names another device.
    """
    op, wanted = "create_cuda_gpu_on", os.environ.get(_VARIABLE, "")
    if wanted not in _STAND_INS:
        raise DeviceError(f"{op}: got {_VARIABLE}={wanted!r:.80}, want cpu, or nothing")
    if wanted:
        return _noted(_STAND_INS[wanted]())
    advice = f"; use device.create_cpu_device() instead, or set {_VARIABLE}=cpu to get the CPU here"
    return _gpu(op, device_id, advice)


def create_cuda_gpus(num: int) -> list[Device]:
    """The first `num` CUDA devices, or as often the CPU where `SINGA_RS_DEVICE=cpu`.

    Raises:
        DeviceError: there are fewer, or `SINGA_RS_DEVICE` names another device.
    """
    many = _count(num, "create_cuda_gpus: num", 0)
    return [create_cuda_gpu_on(i) for i in range(many)]


def create_cuda_gpus_on(device_ids: list[int]) -> list[Device]:
    """The CUDA devices of those numbers, or as often the CPU where `SINGA_RS_DEVICE=cpu`.

    Raises:
        DeviceError: one of them does not exist, or `SINGA_RS_DEVICE` names another device.
    """
    return [create_cuda_gpu_on(i) for i in device_ids]


def get_gpu_mem_size(id: int) -> tuple[int, int]:
    """Free and total bytes of a CUDA device.

    Raises:
        DeviceError: there is no such device.
    """
    found = _core.gpu_properties(_gpu("get_gpu_mem_size", id))
    return found["free"], found["total"]


def device_query(id: int, verbose: bool = False) -> str:
    """The properties of a CUDA device as text, and which of CUDA's libraries it lacks.

    Raises:
        DeviceError: there is no such device.
    """
    found = _core.gpu_properties(_gpu("device_query", id))
    major, minor = found["capability"]
    text = (
        f"{found['name']}, compute capability {major}.{minor}, {found['processors']} "
        f"multiprocessors, {found['total'] / 2**30:.1f} GiB of memory"
    )
    if verbose:
        text += f", {found['free'] / 2**30:.1f} GiB free"
    if lacking := [one for one in ("cuBLASLt", "cuDNN") if one not in found["libraries"]]:
        text += f"; without {' and '.join(lacking)}, which singa-rs[cuda12] or [cuda13] brings"
    return text


def _gpu(op: str, device_id: int, advice: str = "") -> Device:
    """The CUDA device of a number, whatever the environment has answer in its place."""
    number = operator.index(device_id)
    if number < 0:
        raise DeviceError(f"{op}: got device {number}, want one from 0")
    _offer_cuda()
    try:
        return _noted(_core.gpu(number))
    except DeviceError as error:
        text = str(error).removeprefix("cuda: ")
        raise DeviceError(f"{op}: got device {number}, but {text}{advice}") from None


def enable_lazy_alloc(enable: bool) -> None:
    """Accepted for SINGA programs: memory is always allocated when it is first written."""


def info() -> dict[str, Any]:
    """What the CPU's kernels run with.

    Returns:
        `threads`, how many run an operation (`Device.set_num_threads`); `allowed_threads`, how many
        the processors, the control group and `OMP_NUM_THREADS` allow now; `quota`, the processors'
        time that the control group grants, in processors, or None; `instructions`, the set that
        kernels use (`baseline`, `neon`, `avx2` or `avx512`); `library`, what computes convolutions
        and matrix products (`onednn X.Y` or `portable`).
    """
    allowed, quota, instructions = _core.machine()
    return {
        "threads": get_default_device().num_threads,
        "allowed_threads": allowed,
        "quota": quota,
        "instructions": instructions,
        "library": _core.library(),
    }


def report_warnings() -> None:
    """Shows each pending warning of the engine once (for example: oneDNN was not found)."""
    _waiting.extend(_core.take_warnings())
    while _waiting:  # if one is raised as an error, the rest stay pending
        warnings.warn(_waiting.pop(0), RuntimeWarning, stacklevel=4)


errors.name_functions(globals(), {"report_warnings"})


#: What answers in place of a CUDA device, by the value of the variable, which is read at each call:
#: programs may set it after they imported the package. Builds for tests also emulate a GPU.
_STAND_INS: dict[str, Any] = {"": None, "cpu": _core.cpu}
if hasattr(_core, "emulated_gpu"):
    _STAND_INS["emulated"] = _core.emulated_gpu


def _offer_onednn() -> None:
    """Passes the engine the path of pip's oneDNN; SINGA_RS_ONEDNN takes precedence."""
    path = _in_wheel("onednn-cpu-gomp", "libdnnl.so.3")
    if path is not None:
        _core.offer_onednn(path)


@functools.cache
def _offer_cuda() -> None:
    """Passes the engine the paths of pip's libraries of CUDA; variables take precedence."""
    for wheel, library in _CUDA_WHEELS.items():
        path = _in_wheel(wheel, library)
        if path is not None:
            _core.offer_cuda(path)


def _in_wheel(wheel: str, name: str) -> str | None:
    """The path of a file of a package that pip has installed. `importlib.metadata` would tell it,
    too, but takes a fifth of the time in which this package is imported."""
    for folder in sys.path:
        records = f"{glob.escape(folder or os.curdir)}/{wheel.replace('-', '_')}-*.dist-info/RECORD"
        for record in glob.iglob(records):
            with open(record, encoding="utf-8") as lines:
                for path in (line.split(",", 1)[0] for line in lines):
                    if path.rpartition("/")[2] == name:
                        return os.path.realpath(os.path.join(folder, path))
    return None


class _Seeding:
    """The GPUs that there are, and how the generators of those begin that are made later."""

    gpus: tuple[Device, ...] = ()
    begin: Callable[[Device], None] | None = None


def _noted(device: Device) -> Device:
    """A device, whose generators begin as those of the others did if it is a new GPU."""
    if device.id() >= 0 and device not in _Seeding.gpus:
        if _Seeding.begin is not None:
            _Seeding.begin(device)
        _Seeding.gpus = (*_Seeding.gpus, device)
    return device


def _begin_all(begin: Callable[[Device], None]) -> None:
    """Has `begin` seed the generators of all devices, and of those that are made later."""
    for one in (_core.cpu(), *_Seeding.gpus):
        begin(one)
    _Seeding.begin = begin


def _set_seed(device: Device, seed: int) -> None:
    """Seeds the device's random numbers: same seed, same numbers (SINGA SetRandSeed)."""
    device.set_seed(seed)


_STREAMS = ("step", "init")


def _get_rng_state(device: Device) -> np.ndarray:
    """The state of the device's random numbers, an array of uint64: the key and the position of the
    generator of steps, in the first row, and of that of initial values. `set_rng_state` takes it.

    Raises:
        GraphError: a step is being recorded, whose numbers are drawn in each of its runs.
    """
    _refuse_recording("get_rng_state")
    states = [_core.random_state(device, stream).to_numpy() for stream in _STREAMS]
    return np.stack(states).view(np.uint64)


def _set_rng_state(device: Device, state: np.ndarray) -> None:
    """Goes on with the random numbers that followed when `get_rng_state` returned this state.

    Raises:
        TypeError, ValueError: anything but such an array.
        GraphError: a step is being recorded; `set_seed` can be part of it.
    """
    _refuse_recording("set_rng_state")
    if not isinstance(state, np.ndarray) or state.dtype != np.uint64:
        got = state.dtype if isinstance(state, np.ndarray) else type(state).__name__
        raise TypeError(f"set_rng_state: got {got}, want an array of uint64")
    if state.shape != (2, 2) or state[0, 0] % 2 or state[1, 0] != state[0, 0] + 1:
        raise ValueError(f"set_rng_state: got {state!r:.80}, want what get_rng_state returned")
    for stream, row in zip(_STREAMS, state.view(np.int64), strict=True):
        _core.random_state(device, stream).copy_from_numpy(row)


def _refuse_recording(op: str) -> None:
    if _core.recording():
        raise _core.GraphError(f"{op}: a step is being recorded, so nothing has been drawn yet")


def _sync(device: Device) -> None:
    """Waits until all work is done (SINGA Sync). On the CPU it is done when operations return."""
    _core.wait(device)


def _itself(device: Device) -> Device:
    """The device: SINGA's raw tensors spell it `x.device()`."""
    return device


def _by_name(device: Device) -> tuple[object, tuple[()]]:
    """How copies and pickles find the device again."""
    return (create_cuda_gpu_on, (device.id(),)) if device.id() >= 0 else (_core.cpu, ())


Device.__reduce__ = _by_name
# SINGA's spellings.
Device.__call__ = _itself
Device.SetRandSeed = _set_seed
Device.Sync = _sync
Device.get_rng_state = _get_rng_state
Device.set_rng_state = _set_rng_state
_offer_onednn()
