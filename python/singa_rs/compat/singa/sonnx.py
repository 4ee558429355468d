# ruff: noqa: F401, F403 - the names of the other module
"""SINGA's `sonnx`: `singa_rs.sonnx`."""

from ...sonnx import *
from ..frontend import SingaFrontend, get_op
