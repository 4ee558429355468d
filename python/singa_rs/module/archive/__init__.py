"""SINGA's state file: a zip of `tensor_dict.npz` and `states_attr.json`.

The first holds an array for each tensor under its name, the second the tensor's kind (0 model,
1 auxiliary), shape and dtype. SINGA's dtypes are the numbers 0 float32, 1 float16, 2 int32; dtypes
that it does not have are written by name (bfloat16 as float32 values).

Reading does not trust the file: the sizes that it declares are compared with each other, with what
its bytes can unpack to, with the model and with the available memory before anything of that size
is unpacked.
"""

from .format import write
from .npz import SUFFIX as ARRAY
from .npz import Arrays
from .reading import Archive

__all__ = ["ARRAY", "Archive", "Arrays", "write"]
