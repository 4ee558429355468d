"""SINGA's `initializer`: `singa_rs.initializer`."""

from ... import initializer as _initializer
from .names import names_of

globals().update(names_of(_initializer))
