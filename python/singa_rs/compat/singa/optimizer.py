"""SINGA's `optimizer`: `singa_rs.compat.optimizer` itself."""

import sys

from .. import optimizer

sys.modules[__name__] = optimizer
