"""The rows of the table, a file a family: importing them enters them."""

from . import control, elementwise, products, shapes

__all__ = ["control", "elementwise", "products", "shapes"]
