# ruff: noqa: F403 - the names of the other module
"""SINGA's `model`: `singa_rs.model`."""

from ...model import *
