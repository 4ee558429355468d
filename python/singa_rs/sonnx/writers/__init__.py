"""How operations and views are written, a file a family: importing them enters them."""

from . import assigning, elementwise, networks, positions, products, recurrent, shapes

__all__ = [
    "assigning", "elementwise", "networks", "positions", "products", "recurrent", "shapes",
]  # fmt: skip
