"""SINGA's name for `module`."""

from .module import Module

Model = Module

__all__ = ["Model", "Module"]
