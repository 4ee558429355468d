"""SINGA's numbers of element types and devices (`core.proto`)."""

kFloat32 = 0
kFloat16 = 1
kInt = 2
kChar = 3
kDouble = 4
kUChar = 5
kCpp = 0
kCuda = 1
kOpencl = 2
