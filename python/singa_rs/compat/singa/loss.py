"""SINGA's `loss`: `singa_rs.compat.loss`."""

from .. import loss as _loss
from .names import names_of

globals().update(names_of(_loss))
