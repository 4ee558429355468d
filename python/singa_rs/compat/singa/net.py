"""SINGA's `net`: `singa_rs.compat.net` itself, whose variables programs assign."""

import sys

from .. import net

sys.modules[__name__] = net
