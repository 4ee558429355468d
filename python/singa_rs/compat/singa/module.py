"""SINGA 3.0's `module`: its name for `model`."""

from .model import Model, Module

__all__ = ["Model", "Module"]
