"""Sums of products over named or paired axes, by permuting, reshaping and multiplying matrices."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import ShapeError
from ..refusals import is_integral
from ..tensor import Tensor, as_tensor
from ..tensor.dtypes import promote
from .casting import cast
from .matmul import matmul
from .precision import in_precision
from .reduce import as_axes, reduce_sum
from .shape import expand, plain_reshape, transpose

#: As users call it.
_product = in_precision(matmul, "short")


def tensordot(a: Tensor, b: Any, axes: Any = 2) -> Tensor:
    """Sums of products over the last `axes` axes of `a` and the first of `b`, or over pairs.

    Integers stay in their dtype, and wrap, as NumPy's do.

    Args:
        axes: a number, or two lists (or two ints) of axes of `a` and of `b` (NumPy tensordot).

    Raises:
        ShapeError: extents of paired axes that differ.
        ValueError: more axes than there are.
    """
    b = as_tensor(b, a.device, a.dtype)
    if is_integral(axes):
        axes, most = int(axes), min(a.rank, b.rank)
        if not 0 <= axes <= most:
            raise ValueError(f"tensordot: got axes {axes}, want from 0 to {most}")
        axes = (list(range(a.rank - axes, a.rank)), list(range(axes)))
    over_a, over_b = (as_axes(x, t.rank, "tensordot") for x, t in zip(axes, (a, b), strict=True))
    shape_a, shape_b = a.shape, b.shape
    if [shape_a[i] for i in over_a] != [shape_b[i] for i in over_b]:
        raise ShapeError(f"tensordot: got shapes {shape_a}, {shape_b}, want equal paired axes")
    free_a = [i for i in range(a.rank) if i not in over_a]
    free_b = [i for i in range(b.rank) if i not in over_b]
    inner = math.prod(shape_a[i] for i in over_a)
    rows, columns = [shape_a[i] for i in free_a], [shape_b[i] for i in free_b]
    left = plain_reshape(transpose(a, [*free_a, *over_a]), (math.prod(rows), inner))
    right = plain_reshape(transpose(b, [*over_b, *free_b]), (inner, math.prod(columns)))
    return plain_reshape(_product(left, right), (*rows, *columns))


def einsum(ops: str, args: Sequence[Tensor]) -> Tensor:
    """Einstein summation: `ij,jk->ik` and the like, as NumPy's einsum. `...` stands for all axes
    that have no letter, which broadcast, as do axes of extent 1 that have one.

    Integers stay in the dtype that arithmetic on them has, and wrap, as NumPy's do.

    Raises:
        ValueError: a formula that does not fit the tensors.
    """
    ops, args = _spelt_out(ops, args)
    inputs, output = _parse(ops, args)
    given = _fitted([_diagonal(x, one) for x, one in zip(args, inputs, strict=True)], inputs)
    made, names = given[0]
    for i, (x, own) in enumerate(given[1:], start=1):
        later = set(output).union(*inputs[i + 1 :])
        made, names = _pair(made, names, x, own, later)
    drop = [i for i, n in enumerate(names) if n not in output]
    if drop:
        made = reduce_sum(made, drop, 0)
        names = [n for n in names if n in output]
    want = functools.reduce(promote, (arg.dtype for arg in args))
    made = cast(made, want) if want.is_int else made
    return transpose(made, [names.index(n) for n in output])


def _spelt_out(ops: str, args: Sequence[Tensor]) -> tuple[str, Sequence[Tensor]]:
    """The formula with letters in the place of `...`, and the tensors with these axes broadcast."""
    text = ops.replace(" ", "")
    if "." not in text:
        return ops, args
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    counts = [arg.rank - len(one) + 3 for one, arg in zip(inputs, args, strict=False)]
    is_plain = all(one.count(".") in (0, 3) for one in [*inputs, output])
    is_plain = is_plain and len(inputs) == len(args) and text.count("...") * 3 == text.count(".")
    if not is_plain or any(n < 0 for n, one in zip(counts, inputs, strict=True) if "." in one):
        shapes = ", ".join(str(arg.shape) for arg in args)
        raise ValueError(f"einsum: got {ops!r} for shapes {shapes}, want an axis for each letter")
    wide = _shared(ops, inputs, args)
    free = [c for c in string.ascii_letters if c not in text][: len(wide)]
    if len(free) < len(wide):
        raise ValueError(f"einsum: got {ops!r}, want fewer axes in all")
    made = [
        (one, arg) if "." not in one else _widened(one, arg, wide)
        for one, arg in zip(inputs, args, strict=True)
    ]
    letters = "".join(free)
    spelt = ",".join(one.replace("...", letters) for one, _ in made)
    if not arrow:
        output = "..." + "".join(sorted(c for c in set(left) - {",", "."} if left.count(c) == 1))
    return f"{spelt}->{output.replace('...', letters)}", [arg for _, arg in made]


def _shared(ops: str, inputs: list[str], args: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape to which the axes of all `...` broadcast."""
    shapes = []
    for one, arg in zip(inputs, args, strict=True):
        if "." in one:
            before, after = map(len, one.split("..."))
            shapes.append(arg.shape[before : arg.rank - after])
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"einsum: got {ops!r} with {shapes} for ..., which differ") from None


def _widened(names: str, x: Tensor, wide: tuple[int, ...]) -> tuple[str, Tensor]:
    """A tensor whose axes of `...` are broadcast to `wide`."""
    before, after = map(len, names.split("..."))
    ends = (x.shape[:before], x.shape[before : x.rank - after], x.shape[x.rank - after :])
    padded = (1,) * (len(wide) - len(ends[1])) + ends[1]
    x = plain_reshape(x, (*ends[0], *padded, *ends[2]))
    return names, expand(x, (*ends[0], *wide, *ends[2]))


def _parse(ops: str, args: Sequence[Tensor]) -> tuple[list[str], str]:
    text = ops.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if not arrow:
        output = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    fits = len(inputs) == len(args) and all(
        len(names) == arg.rank for names, arg in zip(inputs, args, strict=False)
    )
    letters = (left.replace(",", "") + output).isalpha() or not left.replace(",", "") + output
    unique = len(set(output)) == len(output) and set(output) <= set(left)
    if not (fits and letters and unique):
        shapes = ", ".join(str(arg.shape) for arg in args)
        raise ValueError(f"einsum: got {ops!r} for shapes {shapes}, want one letter per axis")
    return inputs, output


def _diagonal(x: Tensor, names: str) -> Tensor:
    """`x` with one axis for each letter: the diagonal of axes that share one."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            i, j = names.index(name), names.rindex(name)
            rest = [a for a in range(len(names)) if a not in (i, j)]
            n = x.shape[i]
            if x.shape[j] != n:
                raise ValueError(f"einsum: got extents {n} and {x.shape[j]} for {name!r}")
            x = transpose(x, [i, j, *rest])
            others = x.shape[2:]
            x = plain_reshape(x, (n * n, *others))[:: n + 1]
            names = name + "".join(names[a] for a in rest)
            x = transpose(x, _back(names, name, i))
            names = names[1 : i + 1] + name + names[i + 1 :]
    return x


def _fitted(xs: Sequence[Tensor], inputs: Sequence[str]) -> list[tuple[Tensor, list[str]]]:
    """Tensors and the letters of their axes, without axes of extent 1 that broadcast: those whose
    letter stands for another extent elsewhere."""
    letters = [list(dict.fromkeys(names)) for names in inputs]
    given = list(zip(xs, letters, strict=True))
    if not any(1 in x.shape for x in xs):
        return given
    wide = {own[i] for x, own in given for i, extent in enumerate(x.shape) if extent != 1}
    made = []
    for x, own in given:
        kept = [i for i, name in enumerate(own) if x.shape[i] != 1 or name not in wide]
        if len(kept) < len(own):
            x = plain_reshape(x, [x.shape[i] for i in kept])
        made.append((x, [own[i] for i in kept]))
    return made


def _back(names: str, name: str, place: int) -> list[int]:
    """The order that moves the first axis to `place`."""
    rest = list(range(1, len(names)))
    return [*rest[:place], 0, *rest[place:]]


def _pair(
    a: Tensor, in_a: list[str], b: Tensor, in_b: list[str], later: set[str]
) -> tuple[Tensor, list[str]]:
    """The product of two tensors, summed over the letters that are not needed later."""
    a, in_a = _summed(a, in_a, later.union(in_b))
    b, in_b = _summed(b, in_b, later.union(in_a))
    size = _sizes(a, in_a, b, in_b)
    batch = [n for n in in_a if n in in_b and n in later]
    inner = [n for n in in_a if n in in_b and n not in later]
    rows = [n for n in in_a if n not in in_b]
    columns = [n for n in in_b if n not in in_a]
    a = _grouped(a, in_a, size, batch, rows, inner)
    b = _grouped(b, in_b, size, batch, inner, columns)
    names = [*batch, *rows, *columns]
    return plain_reshape(_product(a, b), [size[n] for n in names]), names


def _summed(x: Tensor, names: list[str], needed: set[str]) -> tuple[Tensor, list[str]]:
    drop = [i for i, n in enumerate(names) if n not in needed]
    return (reduce_sum(x, drop, 0) if drop else x), [n for n in names if n in needed]


def _sizes(a: Tensor, in_a: list[str], b: Tensor, in_b: list[str]) -> dict[str, int]:
    size = dict(zip(in_a, a.shape, strict=True))
    for name, extent in zip(in_b, b.shape, strict=True):
        if size.setdefault(name, extent) != extent:
            raise ValueError(f"einsum: got extents {size[name]} and {extent} for {name!r}")
    return size


def _grouped(x: Tensor, names: list[str], size: dict[str, int], *groups: list[str]) -> Tensor:
    """`x` with its axes merged into one for each group."""
    order = [names.index(n) for group in groups for n in group]
    return plain_reshape(
        transpose(x, order), [math.prod(size[n] for n in group) for group in groups]
    )
