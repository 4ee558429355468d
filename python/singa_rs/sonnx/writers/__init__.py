"""How operations and views are written, a file a family: importing them enters them."""

from . import elementwise, networks, positions, products, recurrent, shapes

__all__ = ["elementwise", "networks", "positions", "products", "recurrent", "shapes"]
