"""SINGA's `model`: `singa_rs.model`."""

from ...model import Model, Module

__all__ = ["Model", "ModelMeta", "Module"]

#: SINGA's name for the class of model classes.
ModelMeta = type(Model)
