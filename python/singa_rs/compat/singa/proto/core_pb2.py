# ruff: noqa: F403 - the names of the other module
"""Constants of SINGA's `core.proto`: element types, and languages of devices."""

from ...proto.core_pb2 import *

kCpp = 0
kCuda = 1
kOpencl = 2
