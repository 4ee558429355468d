"""`compat.snapshot` under SINGA's name."""

from .compat.snapshot import Snapshot, save

__all__ = ["Snapshot", "save"]


def __dir__() -> list[str]:
    return sorted(__all__)
