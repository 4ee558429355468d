"""SINGA's file of states: a zip of `tensor_dict.npz` and `states_attr.json`.

Entry by entry: an array for each tensor under its name, and its kind (0 the model's, 1 auxiliary),
shape and dtype. SINGA's dtypes are the numbers 0 float32, 1 float16, 2 int32; others, which it does
not have, are written by name (bfloat16 as float32 values).

A file is read in the order in which it can be trusted: the sizes that it states are compared with
each other, with what its bytes can unpack to, with the model and with the memory that there is,
before anything of that size is unpacked.
"""

from .format import Declared
from .reading import read
from .writing import write

__all__ = ["Declared", "read", "write"]
