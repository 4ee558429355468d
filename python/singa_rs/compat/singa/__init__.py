"""SINGA's package: its modules, in which conflicts between SINGA and NumPy are decided for SINGA.

    import singa_rs.compat.singa as singa
    from singa_rs.compat.singa import autograd, layer, model, opt, tensor

Tensors, layers, models and optimizers are those of `singa_rs`, except for what
docs/coming-from-singa.md lists. Programs that say `import singa` run unchanged after `install()`,
or by `python -m singa_rs.compat.singa script.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from .alias import install

__all__ = ["install"]


def __getattr__(name: str) -> ModuleType:
    """Imports the modules of the package on first use."""
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
