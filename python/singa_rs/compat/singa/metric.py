"""SINGA's `metric`: `singa_rs.compat.metric`."""

from .. import metric as _metric
from .names import names_of

globals().update(names_of(_metric))
