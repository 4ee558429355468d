"""Views, and functions that widen or interleave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import values
from .registry import (
    Text,
    recipe_for,
    register,
    size,
)

if TYPE_CHECKING:
    from ..draw import Draw


def _view(d: Draw, form: str) -> Text:
    x = d.any()
    rank = d.value(x).rank
    order = list(range(rank))
    d.rng.shuffle(order)
    sizes = list(values.factorings(d.rng, d.value(x).numel))
    if len(d.worlds) > 1:
        sizes[0] = -1
    joined = ", ".join(map(str, order)) if d.rng.random() < 0.6 else ""
    return form.format(x=x, order=joined, shape=tuple(sizes), axis=d.rng.randint(-rank - 1, rank))


register(("Tensor.transpose",), "{x}.transpose({order})", _view)
register(("Tensor.reshape",), "{x}.reshape({shape})", _view)
register(("Tensor.unsqueeze",), "{x}.unsqueeze({axis})", _view)
register(("autograd.unsqueeze",), "autograd.unsqueeze({x}, {axis})", _view)
register(("autograd.Unsqueeze()",), "autograd.Unsqueeze({axis})({x})[0]", _view)


def _expand(d: Draw, form: str) -> Text:
    x = d.any()
    shape = size(d, x)
    wide = [d.rng.randint(2, 4) if n == 1 else n for n in shape]
    lead = [d.rng.randint(1, 3)] if d.rng.random() < 0.4 else []
    return form.format(x=x, shape=(*lead, *wide))


register(("Tensor.expand",), "{x}.expand({shape})", _expand)
register(("autograd.expand",), "autograd.expand({x}, {shape})", _expand)
register(("autograd.Expand()",), "autograd.Expand({shape})({x})[0]", _expand)


def _slice(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    extent = size(d, x)[axis]
    low = d.rng.randint(0, extent - 1)
    steps = ", [2]" if d.rng.random() < 0.3 else ""
    return form.format(x=x, args=f"[{low}], [{d.rng.randint(low + 1, extent)}], [{axis}]{steps}")


register(("autograd.slice",), "autograd.slice({x}, {args})", _slice)
register(("autograd.Slice()",), "autograd.Slice({args})({x})[0]", _slice)


def _split(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and max(x.shape) > 1)
    if x is None:
        return None
    shape = size(d, x)
    axis = d.rng.choice([i for i, n in enumerate(shape) if n > 1])
    first = d.rng.randint(1, shape[axis] - 1)
    args = f"{axis}, [{first}, {shape[axis] - first}]"
    if shape[axis] % 2 == 0 and d.rng.random() < 0.3 and "Split(" not in form:
        args = f"{axis}, num_output=2"
    return form.format(x=x, args=args)


register(("autograd.split",), "autograd.split({x}, {args})", _split)
register(("Tensor.split",), "{x}.split({args})", _split)
register(("autograd.Split()",), "autograd.Split({args})({x})", _split)


@recipe_for("tensor.contiguous", "Tensor.contiguous")
def _contiguous(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 1)
    return x and f"{x}.transpose().contiguous()"


@recipe_for("tensor.raw")
def _raw(d: Draw) -> Text:
    x = d.any()
    return d.rng.choice([f"tensor.raw({x})", f"{x}.data", f"{x}.detach()"])


@recipe_for("autograd.pad", "autograd.Pad()")
def _pad(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    pads = [d.rng.choice([0, 0, 1, 2]) for _ in range(2 * d.value(x).rank)]
    mode = d.rng.choice(["'constant'", "'reflect'", "'edge'"])
    if d.rng.random() < 0.2:
        return f"autograd.Pad({mode}, {pads}, 0.5)({x})[0]"
    return f"autograd.pad({x}, {mode}, {pads})"


@recipe_for("autograd.upsample", "autograd.UpSample()")
def _upsample(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    scales = [d.rng.choice([1, 1, 2]) for _ in range(d.value(x).rank)]
    if d.rng.random() < 0.2:
        return f"autograd.UpSample('nearest', {scales})({x})[0]"
    return f"autograd.upsample({x}, 'nearest', {scales})"


def _interleaved(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank == 4 and x.numel, 4)
    if x is None:
        x = values.constant(d.rng, (2, 4, 2, 2), d.seed())
        x = x if x.startswith("tensor") else f"Tensor(data=draw({d.seed()}, (2, 4, 2, 2)))"
    return form.format(x=x, mode=d.rng.choice(["'DCR'", "'CRD'"]))


register(("autograd.depth_to_space",), "autograd.depth_to_space({x}, 2, {mode})", _interleaved)
register(("autograd.space_to_depth",), "autograd.space_to_depth({x}, 2, {mode})", _interleaved)
register(("autograd.DepthToSpace()",), "autograd.DepthToSpace(2, {mode})({x})[0]", _interleaved)
register(("autograd.SpaceToDepth()",), "autograd.SpaceToDepth(2, {mode})({x})[0]", _interleaved)
register(("autograd.GlobalAveragePool()",), "autograd.GlobalAveragePool()({x})[0]", _interleaved)
register(("autograd.globalaveragepool",), "autograd.globalaveragepool({x})", _interleaved)
