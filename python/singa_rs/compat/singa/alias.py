"""Importing the compatible package as `singa`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "singa"


class _Alias(MetaPathFinder, Loader):
    """Finds `singa` and the modules below it: they are those of the compatible package."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module whose name begins with `singa`, if the package has it."""
        if fullname.partition(".")[0] != _NAME or importlib.util.find_spec(_own(fullname)) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of the package, imported."""
        module = importlib.import_module(_own(spec.name))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own spec again, which the import machinery has replaced."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)


def _own(fullname: str) -> str:
    """The name in this package of `singa`, or of a module below it."""
    return __name__.rpartition(".")[0] + fullname[len(_NAME) :]


def install() -> None:
    """Lets `import singa`, and imports of its modules, give this package, in this process.

    Raises:
        ImportError: another package `singa` has been imported.
    """
    found = sys.modules.get(_NAME)
    if found is not None and found.__name__ != _own(_NAME):
        where = getattr(found, "__file__", None)
        raise ImportError(f"install: got {_NAME!r} imported from {where}, want it not imported yet")
    if not any(isinstance(one, _Alias) for one in sys.meta_path):
        sys.meta_path.insert(0, _Alias())
