"""Reading NumPy's files of several arrays, which `numpy.savez` writes."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Collection
from typing import IO, NamedTuple

import numpy as np

from ...tensor import Tensor
from ..checkpoint.stored import damage
from .format import SUFFIX
from .reading import Members, check_elements, check_memory, check_unknown, elements, header

#: Bytes that the directory may take: enough for about 20,000 arrays.
_DIRECTORY = 2 << 20
#: Bytes of an array's header that are read.
_HEADER = 1 << 14


class _Header(NamedTuple):
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype
    #: Where the elements begin.
    start: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Arrays:
    """An open file of arrays: their shapes, which may be compared with a model before anything of
    their size is unpacked."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path, self._size = path, os.fstat(file.fileno()).st_size
        with damage("load_states", path, "the zip file"):
            self._members = Members(file, self._size, _DIRECTORY)
        self._headers = {name: self._header(name) for name in self._members.infos}
        self.shapes = {_bare(name): one.shape for name, one in self._headers.items()}

    def _header(self, name: str) -> _Header:
        with damage("load_states", self._path, f"{name!r:.80}"), self._members.open(name) as stream:
            if not name.endswith(SUFFIX):
                raise ValueError("it is no array")
            head = io.BytesIO(stream.read(_HEADER))
            found = _Header(*header(head), head.tell())
            size = self._members.infos[name].file_size
            check_elements(found.shape, found.dtype, size - found.start)
            return found

    def read(self, known: Collection[str]) -> tuple[dict[str, np.ndarray], dict[str, Tensor]]:
        """All arrays, and no other states. `known` are the names of those whose shapes have been
        compared with the model's.

        Raises:
            CheckpointError: the file is damaged, or holds more than the available memory.
        """
        sizes = {_bare(name): one.nbytes for name, one in self._headers.items()}
        unknown = sum(size for name, size in sizes.items() if name not in known)
        check_unknown(self._path, self._size, unknown)
        check_memory(self._path, sum(sizes.values()))
        return {_bare(name): self._array(name, one) for name, one in self._headers.items()}, {}

    def _array(self, name: str, head: _Header) -> np.ndarray:
        with damage("load_states", self._path, f"{name!r:.80}"), self._members.open(name) as stream:
            stream.read(head.start)
            return elements(stream, head.shape, head.is_fortran, head.dtype)


def _bare(member: str) -> str:
    return member.removesuffix(SUFFIX)
