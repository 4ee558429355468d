"""A description of the machine and the versions that figures were measured with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: Distributions whose versions matter, and their names in print.
LIBRARIES = {
    "singa-rs": "singa_rs",
    "onednn-cpu-gomp": "oneDNN",
    "torch": "PyTorch",
    "jax": "JAX",
    "numpy": "NumPy",
}


def _field(path: str, name: str) -> str:
    """The value that follows a name and a colon in a file of /proc."""
    for line in Path(path).read_text().splitlines():
        if line.split(":")[0].strip() == name:
            return line.split(":", 1)[1].strip()
    return ""


def _versions() -> list[str]:
    found = []
    for distribution, name in LIBRARIES.items():
        try:
            found.append(f"{name} {version(distribution)}")
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's name, and which of the wider vector units it has."""
    flags = set(_field("/proc/cpuinfo", "flags").split())
    units = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX"}
    name = _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    has = [title for flag, title in units.items() if flag in flags]
    return f"{name} with {', '.join(has)}" if has else name


def describe(threads: int) -> str:
    """One sentence: processor, cores, memory, system, versions, threads."""
    gib = int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    parts = [processor(), f"{os.cpu_count()} cores", f"{gib:.0f} GiB", platform.system()]
    parts += [f"Python {platform.python_version()}", *_versions(), f"{threads} threads, float32"]
    return ", ".join(parts)
