# ruff: noqa: F403 - the names of the other module
"""Constants of SINGA's `model.proto`."""

from ...proto.model_pb2 import *
