"""Constants of SINGA's `core.proto`: element types."""

from __future__ import annotations

from ...tensor import float16, float32, float64, int8, int32, uint8

kFloat32 = float32
kFloat16 = float16
kInt = int32
kChar = int8
kDouble = float64
kUChar = uint8
