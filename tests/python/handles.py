"""Tensors and operations of the engine itself, below the public package."""

import numpy as np
from singa_rs import _core

CPU = _core.cpu()
ADD = _core.Op("binary", f="add")
COPY = _core.Op("copy")
NEG = _core.Op("unary", f="neg")


def tensor(array, dtype=np.float32) -> _core.Handle:
    return _core.from_numpy(np.asarray(array, dtype), CPU)
