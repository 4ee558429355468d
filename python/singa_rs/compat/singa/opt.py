# ruff: noqa: F403 - the names of the other module
"""SINGA's `opt`: `singa_rs.opt`."""

from ...opt import *
