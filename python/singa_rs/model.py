"""SINGA's name for `module`."""

from .module import Module

Model = Module

__all__ = ["Model", "Module"]


def __dir__() -> list[str]:
    return sorted(__all__)
