"""Tables of numbers in text files: comma-separated values (RFC 4180)."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from .. import files
from ..errors import CheckpointError
from ..refusals import count, strict_flag

_TYPES = ("float32", "float64", "int32", "int64")


def read_csv(
    path: str | PathLike[str],
    delimiter: str = ",",
    header: bool = False,
    columns: Sequence[int] | None = None,
    missing: float | None = None,
    dtype: Any = np.float32,
) -> np.ndarray:
    """The numbers in a file of comma-separated values: an array (rows, columns). Fields may be
    quoted; empty lines are skipped.

    Args:
        path: the file, in UTF-8.
        delimiter: the character between fields.
        header: whether the first line is left out.
        columns: the columns to read, counted from 0; all by default.
        missing: the value of empty fields, which otherwise are an error.
        dtype: float32, float64, int32 or int64; integers must be written as such. Of floats,
            "inf" and "nan" are numbers, too.

    Raises:
        CheckpointError: a field that is no number of the dtype, or exceeds it; lines of different
            lengths, text that is not UTF-8 (the message names the line); or the file is missing or
            cannot be read (then also an OSError).
        TypeError: an argument of the wrong type.
        ValueError: an argument out of range.
    """
    name = files.path_of("read_csv", path)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise ValueError(f"read_csv: got delimiter {delimiter!r:.80}, want one character")
    header = strict_flag(header, "read_csv: header")
    table = _Table(_type(dtype), _columns(columns), _missing(missing))
    with files.reading("read_csv", name) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", newline="")
        try:
            lines = csv.reader(text, delimiter=str(delimiter), strict=True)
            for row in _numbered(lines, bool(header)):
                table.add(*row)
            return table.finished()
        except (ValueError, OverflowError, csv.Error, OSError, MemoryError) as error:
            raise CheckpointError(f"read_csv: {name}: {error or 'too large'}") from error


def _type(dtype: Any) -> np.dtype:
    try:
        found = np.dtype(getattr(dtype, "name", dtype))
    except (TypeError, ValueError):
        found = None
    if dtype is None or found is None or found.name not in _TYPES:
        raise TypeError(f"read_csv: got dtype {dtype!r:.80}, want {', '.join(_TYPES)}")
    return found


def _columns(columns: Any) -> list[int] | None:
    if columns is None:
        return None
    if not isinstance(columns, (list, tuple, range)) or not len(columns):
        raise TypeError(f"read_csv: got columns {columns!r:.80}, want a list of ints")
    return [count(one, "read_csv: columns", 0) for one in columns]


def _missing(missing: Any) -> float | None:
    is_number = isinstance(missing, (int, float, np.integer, np.floating))
    if missing is not None and (isinstance(missing, bool) or not is_number):
        raise TypeError(f"read_csv: got missing {missing!r:.80}, want a number")
    return missing


def _numbered(lines: Any, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of the line that each ends in."""
    for row in lines:
        if header:
            header = False
        elif row:
            yield lines.line_num, row


class _Table:
    """Rows of numbers, all of one length."""

    def __init__(self, dtype: np.dtype, columns: list[int] | None, missing: float | None) -> None:
        self._dtype, self._columns, self._missing = dtype, columns, missing
        is_whole = dtype.kind == "i"
        self._values = array("q" if is_whole else "d")
        self._read = int if is_whole else float
        #: Numbers up to it, of either sign, need no other look.
        self._greatest = int(np.iinfo(dtype).max) if is_whole else float(np.finfo(dtype).max)
        if missing is not None:
            self._check_missing(missing)
        self._width: int | None = None

    def _check_missing(self, missing: float) -> None:
        try:
            is_held = self._is_held(missing)
        except OverflowError:  # an integer beyond all floats
            is_held = False
        if not is_held:
            got = f"read_csv: got missing {missing!s:.40}"
            raise ValueError(f"{got}, want a value of {self._dtype}")

    def _is_held(self, value: float, text: str = "inf") -> bool:
        """Whether the dtype has a number, written as this text: beyond its range, infinity."""
        if self._dtype.kind == "f":
            with np.errstate(over="ignore"):  # numbers in the last half step are rounded down
                is_infinite = bool(np.isinf(self._dtype.type(value)))
            return not is_infinite or (value in (math.inf, -math.inf) and "inf" in text.lower())
        limits = np.iinfo(self._dtype)
        return limits.min <= value <= limits.max and value == int(value)

    def add(self, line: int, row: list[str]) -> None:
        """A row, which ends in a line of the file."""
        if self._width is None:
            self._width = len(row)
            self._check_columns(line)
        if len(row) != self._width:
            raise ValueError(f"line {line}: has {len(row)} fields, want {self._width}")
        for column in range(self._width) if self._columns is None else self._columns:
            self._values.append(self._number(row[column], line, column))

    def _check_columns(self, line: int) -> None:
        if self._columns is not None and max(self._columns) >= (self._width or 0):
            most = max(self._columns)
            raise ValueError(f"line {line}: has {self._width} fields, but column {most} is wanted")

    def _number(self, field: str, line: int, column: int) -> Any:
        text = field.strip()
        if not text and self._missing is not None:
            return self._read(self._missing)
        try:
            if "_" in text:  # Python's separator of digits
                raise ValueError
            value = self._read(text)
        except ValueError:
            value = None
        if value is None or not (
            -self._greatest <= value <= self._greatest or self._is_held(value, text)
        ):
            hint = "; header=True leaves the first line out" if line == 1 else ""
            raise ValueError(
                f"line {line}: got {field!r:.40} in column {column}, want a number of "
                f"{self._dtype}{hint}"
            )
        return value

    def finished(self) -> np.ndarray:
        """All rows."""
        width = self._width or 0
        count = width if self._columns is None else len(self._columns)
        made = np.frombuffer(self._values, self._values.typecode) if self._values else np.zeros(0)
        rows = len(made) // count if count else 0
        with np.errstate(over="ignore"):
            return made.reshape(rows, count).astype(self._dtype)
