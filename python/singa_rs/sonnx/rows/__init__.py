"""The rows of the table, a file a family: importing this package imports them all, which enters
them."""

import importlib
import pkgutil

__all__ = [one.name for one in pkgutil.iter_modules(__path__)]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
