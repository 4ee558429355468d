"""SINGA's `snapshot`: `singa_rs.compat.snapshot`."""

from ..snapshot import Snapshot

__all__ = ["Snapshot"]
