"""Optimizers of processes that work together."""

from .dist_opt import DistOpt
from .local import LocalSGD
from .warm_up import density

__all__ = ["DistOpt", "LocalSGD", "density"]
