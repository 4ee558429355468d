"""`compat.snapshot` under SINGA's name."""

from .compat.snapshot import Snapshot, save

__all__ = ["Snapshot", "save"]
