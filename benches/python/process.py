"""The kernel's account of processes: the memory of this one, the processor time of any."""

from __future__ import annotations

import time
from pathlib import Path


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    raise OSError(f"/proc/self/status has no {field}")


def resident() -> int:
    """Bytes of memory that the process has."""
    return _status("VmRSS")


def peak() -> int:
    """The most bytes that it has had since `start`."""
    return _status("VmHWM")


def start() -> int:
    """Begins a new measurement of the peak; the bytes that the process has at this point."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident()


def used(pid: int) -> float:
    """Seconds of processor time that all threads of a process have taken."""
    return time.clock_gettime((~pid << 3) | 2)  # the number of its clock, as clock_getcpuclockid's
