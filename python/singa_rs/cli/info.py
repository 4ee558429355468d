"""`singa-rs info`: tell which processor, libraries and versions were found."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import warnings
from pathlib import Path

from .. import __version__, device

NAME = "info"
_PACKAGES = ("numpy", "onnx", "ml_dtypes", "safetensors", "mpi4py")


def add(parser: argparse.ArgumentParser) -> None:
    """There are no arguments."""


def run(given: argparse.Namespace) -> int:
    """Prints what was found."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = facts()
        device.report_warnings()
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name.ljust(width)}  {value}")
    for one in caught:
        print(f"{'warning'.ljust(width)}  {one.message}")
    return 0


def facts() -> dict[str, str]:
    """What was found, by name."""
    found = device.info()
    quota = found["quota"]
    library = found["library"]
    versions = {name: version_of(name) for name in _PACKAGES}
    return {
        "singa_rs": f"{__version__}, {Path(__file__).parents[1]}",
        "processor": processor(),
        "instructions": found["instructions"],
        "library": library if library != "portable" else "portable kernels; oneDNN was not found",
        "threads": f"{found['threads']} of {found['allowed_threads']} allowed",
        "quota": "none" if quota is None else f"{quota:g} processors of the control group",
        "memory": f"{device.get_default_device().available() / 2**30:.1f} GiB available",
        "GPU": gpu(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **versions,
    }


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def gpu() -> str:
    """The CUDA devices, or why there is none."""
    if count := device.get_num_gpus():
        return ", ".join(device.device_query(number).strip() for number in range(count))
    try:
        device.create_cuda_gpu()
    except device.DeviceError as error:
        return f"none: {str(error).partition(': ')[2]}"
    return "none: SINGA_RS_DEVICE=cpu lets the CPU answer instead"


def version_of(package: str) -> str:
    """The version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
