# ruff: noqa: F403 - the names of the other module
"""SINGA's `data`: `singa_rs.data`, which has `ImageBatchIter`."""

from ...data import *
