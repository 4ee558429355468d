# ruff: noqa: F403 - the names of the other module
"""SINGA's `image_tool`: `singa_rs.compat.image_tool`."""

from ..image_tool import *
