"""The engine's operations that gradients are computed with, as functions that have gradients: what
`gradients(..., create_graph=True)` runs in their place."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .._core import Op
from ..tensor import Tensor
from . import binary, ops
from .attention_gradient import attention_grad
from .casting import cast, convert
from .index import getitem, where
from .matmul import matmul
from .parametrised import PARAMETRISED
from .pooling import in_channel
from .positions import onehot
from .reduce import log_softmax, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum
from .reduce import softmax as _softmax
from .rule import Rule
from .scalar import with_number
from .scan import CumProd, CumSum
from .segments import scatter_rule
from .shape import Concat, clone, plain_reshape
from .systems import Inverse, Solve, TriangularSolve
from .unary import BY_ENGINE
from .views import Expand, Select, Transpose

Function = Callable[..., Any]


class Linear(Rule):
    """A linear operation that the engine has, whose gradient is its adjoint."""

    def __init__(self, run: Function, adjoint: Function) -> None:
        self.run, self.adjoint = run, adjoint

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor]:
        """The adjoint of `dy`."""
        return (self.adjoint(dys[0]),)


class Sloped(Rule):
    """`dy` by a slope that is constant in pieces, of what the function saved."""

    def __init__(self, run: Op) -> None:
        self.run = run

    def forward(self, *xs: Tensor) -> Tensor:
        return self.run(*xs)

    def keep(self, xs: tuple[Tensor, ...], ys: Any) -> None:
        self.save(*xs[1:])

    def origins(self) -> list[str]:
        """All inputs but `dy`."""
        return ["x1"][: len(self.saved)]

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor | None, ...]:
        """That of `dy`; none of the other."""
        saved = [self.load(i) for i in range(len(self.saved))]
        return self.run(*dys, *saved), *(None for _ in saved)


class Placed(Linear):
    """The gradient of a selection: its elements in their places, zeros elsewhere."""

    def __init__(self, node: Select) -> None:
        super().__init__(lambda dy: node.gradients((dy,), (True,))[0], node._again().forward)


def selected(node: Select, dy: Tensor) -> Tensor:
    """The gradient of the input of a selection."""
    return Placed(node)(dy)[0]


_BINARY = {row.f or name: binary.FUNCTIONS[name] for (_, name), row in binary.ROWS.items()}
_REDUCTIONS = {
    "sum": reduce_sum,
    "mean": reduce_mean,
    "max": reduce_max,
    "min": reduce_min,
    "prod": reduce_prod,
}
#: Those that gradients are computed with: no other gets what needs a gradient of its own.
_LINALG = {"inv": Inverse}
_SCANS = {"sum": CumSum, "prod": CumProd}


def _scalar(f: str, scalar: float, reverse: bool) -> Function:
    return lambda x: with_number(f, x, scalar, reverse)


def _reduce(f: str, axes: Sequence[int], keepdims: bool) -> Function | None:
    over = _REDUCTIONS.get(f)
    return over and (lambda x: over(x, tuple(axes) or None, keepdims))


def _scan(f: str, axis: int, exclusive: bool, reverse: bool) -> Function:
    return lambda x: _SCANS[f](axis, exclusive, reverse)(x)[0]


def _taken(take: str) -> Callable[..., Function]:
    """Of an operation that takes elements at places."""
    return lambda axis: lambda x, places: _at(take, f"{take}_grad", axis, x.shape[axis], places)(x)


def _added(take: str) -> Callable[..., Function]:
    """Of its gradient, which adds them there."""
    return lambda axis, size: lambda dy, places: _at(f"{take}_grad", take, axis, size, places)(dy)


def _at(run: str, adjoint: str, axis: int, size: int, places: Tensor) -> Function:
    sizes = {run: {"size": size} if run.endswith("_grad") else {}}
    sizes[adjoint] = {} if run.endswith("_grad") else {"size": size}
    forward, back = (ops.op(name, axis=axis, **sizes[name]) for name in (run, adjoint))
    return lambda x: Linear(lambda x: forward(x, places), lambda g: back(g, places))(x)[0]


def _scattered(axis: int, join: str) -> Function:
    return lambda x, places, updates: scatter_rule(places, axis, join)(x, updates)[0]


def _dropout_grad(ratio: float) -> Function:
    def masked(dy: Tensor, mask: Tensor) -> Tensor:
        run = ops.op("dropout_grad", ratio=ratio)
        return Linear(lambda dy: run(dy, mask), lambda g: run(g, mask))(dy)[0]

    return masked


def _of_attributes(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as operations take them."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}


def _avg_pool(size: Sequence[int] = (), **attrs: Any) -> Function:
    """Of means of windows, or, with the extents of the images, of their gradient."""
    attrs = _of_attributes(attrs)
    pool = ops.op("avg_pool", **attrs)

    def run(x: Tensor) -> Tensor:
        spread = ops.op("avg_pool_grad", size=tuple(size or x.shape[2:]), **attrs)
        return (Linear(spread, pool) if size else Linear(pool, spread))(x)[0]

    return run


def _max_pool_grad(size: Sequence[int], **attrs: Any) -> Function:
    """Of `dy` at the maxima, whose adjoint takes the elements there."""
    attrs, size = _of_attributes(attrs), tuple(size)
    spread = ops.op("max_pool_grad", **attrs, size=size)

    def run(dy: Tensor, places: Tensor) -> Tensor:
        def taken(g: Tensor) -> Tensor:
            flat = (*g.shape[:2], math.prod(places.shape[2:]))
            at = ops.reshape(in_channel(places, size, attrs), flat)
            planes = ops.reshape(g, (*g.shape[:2], math.prod(size)))
            return ops.reshape(ops.op("gather_elements", axis=2)(planes, at), places.shape)

        return Linear(lambda dy: spread(dy, places), taken)(dy)[0]

    return run


class Convolved(Rule):
    """A convolution, or a gradient of one: each is linear in both inputs, and its gradients are the
    other two."""

    keeps = ("xs",)

    def __init__(self, name: str, attrs: dict[str, Any]) -> None:
        given = _of_attributes(attrs)
        #: Extents of the images and of the filters, where the operation is told them.
        self.sizes = {k: given.pop(k) for k in ("size", "kernel") if k in given}
        self.name_of, self.attrs = name, given

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return ops.op(self.name_of, **self.attrs, **self.sizes)(a, b)

    def _conv(self, x: Tensor, w: Tensor) -> Tensor:
        return ops.op("conv", **self.attrs)(x, w)

    def _to_x(self, dy: Tensor, w: Tensor, x: Tensor) -> Tensor:
        return ops.op("conv_grad_input", **self.attrs, size=x.shape[2:])(dy, w)

    def _to_w(self, dy: Tensor, x: Tensor, w: Tensor) -> Tensor:
        return ops.op("conv_grad_weight", **self.attrs, kernel=w.shape[2:])(dy, x)

    def gradients(self, dys: tuple[Tensor, ...], wanted: Any) -> tuple[Tensor, Tensor]:
        """The gradients of both inputs."""
        (d,), a, b = dys, self.load(0), self.load(1)
        if self.name_of == "conv":
            return self._to_x(d, b, a), self._to_w(d, a, b)
        if self.name_of == "conv_grad_input":
            return self._conv(d, b), self._to_w(a, d, b)
        return self._conv(b, d), self._to_x(a, d, b)


def _convolved(name: str) -> Callable[..., Function]:
    def of(**attrs: Any) -> Function:
        return lambda a, b: Convolved(name, attrs)(a, b)[0]

    return of


def _softmax_of(axis: int, log: bool) -> Function:
    return lambda x: (log_softmax if log else _softmax)(x, axis)


def _softmax_grad(axis: int, log: bool) -> Function:
    def grad(dy: Tensor, y: Tensor) -> Tensor:
        if log:
            return dy - y.exp() * reduce_sum(dy, axis, 1)
        return y * (dy - reduce_sum(dy * y, axis, 1))

    return grad


def _cross_entropy_grad(ignored: int | None = None) -> Function:
    def grad(dy: Tensor, x: Tensor, t: Tensor, lse: Tensor) -> Tensor:
        rows, classes = x.shape
        if t.shape == x.shape and t.numel != rows:
            return (_softmax(x, 1) - t / reduce_sum(t, 1, 1)) * (dy / rows)
        t = t.reshape(rows)
        if ignored is None:
            return (_softmax(x, 1) - onehot(1, t, classes)) * (dy / rows)
        counts = (t != ignored).detach()
        apart = _softmax(x, 1) - onehot(1, where(counts, t, 0), classes)
        # Of no label at all, the gradient is zero.
        count = binary.FUNCTIONS["maximum"](reduce_sum(cast(counts, x.dtype), 0, 0), 1.0)
        return where(counts.reshape((rows, 1)), apart, 0.0) * (dy / count)

    return grad


def _triangular_solve(lower: bool, unit: bool) -> Function:
    return lambda a, b: TriangularSolve(not lower, unit)(a, b)[0]


def _unary(f: Any) -> Function:
    if isinstance(f, str):
        return BY_ENGINE[f][0]
    return lambda x: _parametrised(f)(x)[0]


def _parametrised(f: dict[str, dict[str, Any]]) -> Any:
    ((tag, params),) = f.items()
    return PARAMETRISED[tag](**params)


def _unary_grad(f: Any) -> Function:
    slope = BY_ENGINE[f][1] if isinstance(f, str) else _parametrised(f).slope
    if slope is None:
        run = Op("unary_grad", f=f)
        return lambda *xs: Sloped(run)(*xs)[0]
    return lambda dy, *saved: dy * slope(*saved)


def _batch_norm_grad(eps: float, batch: bool = True) -> Function:
    """Of batch normalisation by the batch's own statistics, or by given ones."""

    def grad(dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor, var: Tensor) -> Any:
        over, kept = (0, *range(2, x.rank)), (-1, *(1,) * (x.rank - 2))
        dtype, (dy, x) = x.dtype, (cast(t, scale.dtype) for t in (dy, x))
        if batch:
            away = x - reduce_mean(x, over, 1)
            var = reduce_mean(away * away, over, 1)
        else:
            away, var = x - mean.reshape(kept), var.reshape(kept)
        inverse = (var + eps) ** -0.5
        normal = away * inverse
        to_bias, to_scale = reduce_sum(dy, over, 0), reduce_sum(dy * normal, over, 0)
        if batch:
            dy = dy - reduce_mean(dy, over, 1) - normal * reduce_mean(dy * normal, over, 1)
        return cast(dy * inverse * scale.reshape(kept), dtype), to_scale, to_bias

    return grad


def _row_norm_grad(centred: bool) -> Function:
    def grad(dy: Tensor, x: Tensor, scale: Tensor, *statistics: Tensor) -> Any:
        dtype, (dy, x, scale) = x.dtype, (cast(t, statistics[0].dtype) for t in (dy, x, scale))
        away = x - reduce_mean(x, 1, 1) if centred else x
        var = reduce_mean(away * away, 1, 1)
        # What was added to the variance: the engine's inverse deviation has it.
        inverse = statistics[-1].reshape((-1, 1))
        eps = (inverse**-2.0 - var).detach()
        inverse = (var + eps) ** -0.5
        normal, scaled = away * inverse, dy * scale
        rest = scaled - normal * reduce_mean(scaled * normal, 1, 1)
        rest = rest - reduce_mean(scaled, 1, 1) if centred else rest
        vectors = [dy * normal, dy] if centred else [dy * normal]
        return cast(rest * inverse, dtype), *(cast(reduce_sum(v, 0, 0), dtype) for v in vectors)

    return grad


#: By the engine's name: the function for an operation's attributes, None where there is none.
_OPERATIONS: dict[str, Callable[..., Function | None]] = {
    "attention_grad": attention_grad,
    "avg_pool": _avg_pool,
    "avg_pool_grad": _avg_pool,
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference_grad": functools.partial(_batch_norm_grad, batch=False),
    "binary": lambda f: _BINARY.get(f),
    "binary_scalar": _scalar,
    "cast": lambda dtype: lambda x: cast(x, dtype),
    "conv": _convolved("conv"),
    "conv_grad_input": _convolved("conv_grad_input"),
    "conv_grad_weight": _convolved("conv_grad_weight"),
    "convert": lambda dtype: lambda x: convert(x, dtype),
    "concat": lambda axis: lambda *xs: Concat(axis)(*xs)[0],
    "copy": lambda: clone,
    "dropout_grad": _dropout_grad,
    "gather": _taken("gather"),
    "gather_elements": _taken("gather_elements"),
    "gather_elements_grad": _added("gather_elements"),
    "gather_grad": _added("gather"),
    "layer_norm_grad": functools.partial(_row_norm_grad, True),
    "linalg": lambda f: lambda x: _LINALG[f]()(x)[0],
    "matmul": lambda: matmul,
    "max_pool_grad": _max_pool_grad,
    "reduce": _reduce,
    "rms_norm_grad": functools.partial(_row_norm_grad, False),
    "scan": _scan,
    "scatter": _scattered,
    "softmax": _softmax_of,
    "softmax_cross_entropy_grad": _cross_entropy_grad,
    "softmax_grad": _softmax_grad,
    "solve": lambda: lambda a, b: Solve()(a, b)[0],
    "triangular_solve": _triangular_solve,
    "unary": _unary,
    "unary_grad": _unary_grad,
    "where": lambda: where,
}
#: By the method's name: the function for a view's argument.
_VIEWS: dict[str, Callable[[Any], Function]] = {
    "view_expand": lambda shape: lambda x: Expand(shape)(x)[0],
    "view_index": lambda key: lambda x: getitem(x, key),
    "view_permute": lambda axes: lambda x: Transpose(axes)(x)[0],
    "view_reshape": lambda shape: lambda x: plain_reshape(x, shape),
    "view_slice": lambda ranges: lambda x: Select(ranges, tuple(n for _, n, _ in ranges))(x)[0],
}
#: The operations whose functions compute anew what the forward pass kept.
RECOMPUTES = frozenset(
    {
        "attention_grad",
        "batch_norm_grad",
        "layer_norm_grad",
        "rms_norm_grad",
        "softmax_cross_entropy_grad",
    }
)


@functools.lru_cache(maxsize=4096)
def of_op(op: Op) -> Function | None:
    """The function for an operation; None if it has none."""
    attrs = op.attrs
    make = _OPERATIONS.get(attrs.pop("op"))
    return make and make(**attrs)


def of_view(method: str, argument: Any) -> Function:
    """The function for a view."""
    return _VIEWS[method](argument)
