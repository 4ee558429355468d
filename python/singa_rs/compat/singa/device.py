# ruff: noqa: F403 - the names of the other module
"""SINGA's `device`: `singa_rs.device`."""

from ...device import *
