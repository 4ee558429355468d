"""Functions that are made of operations: resampling, places, products, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from singa_rs.autograd import assigning

from .. import values
from .places import _places
from .registry import RECIPES, Text, alike, floating, matrix, recipe_for, register, size

if TYPE_CHECKING:
    from ..draw import Draw


@recipe_for("autograd.interpolate")
def _interpolate(d: Draw) -> Text:
    x = d.any(lambda x: 2 < x.rank < 6 and x.numel and floating(x)) or d.parameter((2, 2, 3, 4))
    sizes = tuple(d.rng.randint(1, 2 * n) for n in size(d, x)[2:])
    mode = d.rng.choice(["'nearest'", "'linear'", "'cubic'"])
    how = d.rng.choice(["'half_pixel'", "'align_corners'", "'asymmetric'"])
    return f"autograd.interpolate({x}, {sizes}, None, {mode}, {how})"


@recipe_for("autograd.grid_sample")
def _grid_sample(d: Draw) -> Text:
    x = d.any(lambda x: x.rank == 4 and x.numel and floating(x)) or d.parameter((2, 2, 3, 4))
    if d.value(x).rank != 4:
        return None
    grid = d.parameter((size(d, x)[0], 2, 3, 2))
    mode = d.rng.choice(["'nearest'", "'bilinear'", "'bicubic'"])
    padding = d.rng.choice(["'zeros'", "'border'", "'reflection'"])
    return f"autograd.grid_sample({x}, {grid} * 1.3, {mode}, {padding})"


@recipe_for("autograd.affine_grid")
def _affine_grid(d: Draw) -> Text:
    return f"autograd.affine_grid({d.parameter((2, 2, 3))}, (2, 1, 3, 4))"


def _at_slices(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    shape, axis, count = list(size(d, x)), d.rng.randrange(d.value(x).rank), d.rng.randint(1, 4)
    some = _places(d, (count,), shape[axis])
    each = f"whole({d.seed()}, {tuple(shape)}, {shape[axis]})"
    shape[axis] = count
    u = values.constant(d.rng, tuple(shape), d.seed())
    return form.format(x=x, axis=axis, some=some, each=each, u=u, like=alike(d, x))


for _name, _args in {
    "index_add": "{axis}, {some}, {u}, 0.5",
    "index_copy": "{axis}, {some}, {u}",
    "index_fill": "{axis}, {some}, 0.25",
    "scatter_add": "{axis}, {each}, {like}",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _at_slices)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _at_slices)


def _at_tuples(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    shape, count = size(d, x), d.rng.randint(1, 4)
    tuples = f"whole({d.seed()}, ({count}, {d.rng.randint(1, len(shape))}), {min(shape)})"
    how = d.rng.choice(["'none'", "'add'", "'mul'", "'max'", "'min'"])
    return form.format(x=x, i=tuples, how=how)


register(("autograd.gather_nd",), "autograd.gather_nd({x}, {i})", _at_tuples)
register(
    ("autograd.scatter_nd",),
    "autograd.scatter_nd({x}, {i}, autograd.gather_nd({x} * 0.5, {i}), {how})",
    _at_tuples,
)


def _any(d: Draw, form: str) -> Text:
    """A function of a tensor of floats, and of arrays of its shape."""
    x = d.any(lambda x: floating(x) and x.numel)
    return x and form.format(x=x, shape=size(d, x), seed=d.seed(), n=d.rng.randint(1, 9))


_BOUNDS = "np.linspace(-1, 1, {n})"
for _name, _args in {
    "masked_select": "draw({seed}, {shape}) > 0",
    "bucketize": f"{_BOUNDS}, True",
    "histc": "{n}, -1, 1",
    "count_nonzero": "",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _any)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _any)
_SORTED = f"from_numpy({_BOUNDS})"
register(("autograd.searchsorted",), f"autograd.searchsorted({_SORTED}, {{x}})", _any)
register(("Tensor.searchsorted",), f"{_SORTED}.searchsorted({{x}}, 'right')", _any)
_WHOLE = "from_numpy(whole({seed}, ({n},), 4))"
register(("autograd.bincount",), f"autograd.bincount({_WHOLE}, length=4)", _any)
register(("Tensor.bincount",), f"{_WHOLE}.bincount({{x}}.reshape(-1)[:1], length=4)", _any)
register(("autograd.one_hot",), f"autograd.one_hot({_WHOLE}, 4, 0, 'float32')", _any)
register(("autograd.polygamma",), "autograd.polygamma(2, {x})", _any)
register(("Tensor.polygamma",), "{x}.polygamma(1)", _any)
register(("autograd.Polygamma()",), "autograd.Polygamma(1)({x})[0]", _any)
register(("autograd.lerp",), "autograd.lerp({x}, {x} * 0.5, 0.3)", _any)
register(("Tensor.lerp",), "{x}.lerp(0.5, {x})", _any)
register(("autograd.Cbrt()",), "autograd.Cbrt()({x} * {x} + 0.1)[0]", _any)
register(("autograd.Hypot()",), "autograd.Hypot()({x}, {x} * 0.5)[0]", _any)
for _form in (
    "celu({x}, 0.5)", "hardshrink({x}, 0.3)", "softshrink({x}, 0.3)", "hardtanh({x}, -0.5, 0.7)",
    "threshold({x}, 0.1, 0.2)", "rrelu({x})", "bernoulli(autograd.sigmoid({x}))",
    "softmin({x}.reshape(-1), 0)", "glu(autograd.stack([{x}, {x} * 2], 0), 0)",
    "gumbel_softmax({x}.reshape(-1), 0.7)", "multinomial(autograd.exp({x}.reshape(-1)), 1)",
):  # fmt: skip
    register((f"autograd.{_form.partition('(')[0]}",), f"autograd.{_form}", _any)
register(("Tensor.multinomial",), "autograd.exp({x}.reshape(-1)).multinomial({n}, True)", _any)


def _axes(d: Draw, form: str) -> Text:
    """A function of a tensor of two dimensions or more."""
    x = d.any(lambda x: x.rank > 1 and x.numel)
    if x is None:
        return None
    shape, rank = size(d, x), d.value(x).rank
    a, b = d.rng.sample(range(rank), 2)
    order = d.rng.sample(range(rank), rank)
    return form.format(x=x, a=a, b=b, k=d.rng.randint(-2, 2), n=shape[a], s=shape, order=order)


for _name, _args in {
    "moveaxis": "{a}, {b}",
    "swapaxes": "{a}, {b}",
    "broadcast_to": "(2, *{s})",
    "rot90": "{k}, ({a}, {b})",
    "fliplr": "",
    "flipud": "",
    "chunk": "2, {a}",
    "unbind": "{a}",
    "narrow": "{a}, 0, 1",
    "unflatten": "{a}, (1, {n})",
    "atleast_1d": "",
    "atleast_2d": "",
    "atleast_3d": "",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _axes)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _axes)
register(("Tensor.tile",), "{x}.tile(2, 1)", _axes)
register(("Tensor.permute",), "{x}.permute({order})", _axes)
register(("Tensor.ravel",), "{x}.ravel()", _axes)
for _name in ("hstack", "vstack", "dstack", "column_stack"):
    register((f"autograd.{_name}",), f"autograd.{_name}([{{x}}, {{x}} * 2])", _axes)
register(("autograd.broadcast_tensors",), "autograd.broadcast_tensors({x}, {x}[:1])", _axes)


def _matrices(d: Draw, form: str) -> Text:
    x = matrix(d)
    if x is None:
        return None
    n, m = size(d, x)
    if n * m > 400:
        return None
    wide = f"{x}.unsqueeze(0)"
    return form.format(
        x=x, w=d.parameter((m, 3)), v=d.parameter((m,)), c=d.parameter((3,)), wide=wide, n=n, m=m
    )


for _name, _args in {
    "mv": "{v}",
    "mm": "{w}",
    "inner": "{v}",
    "vdot": "{x}",
    "tensordot": "{w}, 1",
    "kron": "{c}",
    "normalize": "1, -1",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _matrices)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _matrices)
for _form in (
    "bmm({wide}, {w}.unsqueeze(0))", "addmm({c}, {x}, {w}, 0.5)", "block_diag({x}, {w})",
    "baddbmm({c}, {wide}, {w}.unsqueeze(0))", "einsum('ij,jk->ki', {x}, {w})",
    "cross({x}[:, :1] * {c}, {c})", "pairwise_distance({x}, {v})", "cdist({x}, {x} * 0.5, 1)",
    "linear({x}, {w}.transpose(), {c})", "bilinear({x}, {x}, {w}.transpose().unsqueeze(2) * {v})",
):  # fmt: skip
    register((f"autograd.{_form.partition('(')[0]}",), f"autograd.{_form}", _matrices)
for _form in (
    "{wide}.bmm({w}.unsqueeze(0))", "{c}.addmm({x}, {w}, 0.5)", "{c}.cross({c} * 2)",
    "{c}.baddbmm({wide}, {w}.unsqueeze(0))",
):  # fmt: skip
    register((f"Tensor.{_form.split('.')[1].partition('(')[0]}",), _form, _matrices)


def _line(d: Draw, form: str) -> Text:
    """A function of a small tensor of floats, along an axis."""
    x = d.any(lambda x: x.rank > 0 and floating(x) and 1 < x.numel < 300)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    return form.format(x=x, axis=axis, flat=f"{x}.reshape(-1)", b=d.rng.choice(["True", "False"]))


for _name, _args in {
    "median": "{axis}, {b}",
    "quantile": "0.3, {axis}",
    "percentile": "[20, 70]",
    "ptp": "{axis}",
    "mode": "{axis}, {b}",
    "nansum": "{axis}, {b}",
    "nanmean": "{axis}, {b}",
    "nanmax": "{axis}",
    "nanmin": "{axis}",
    "cummax": "{axis}",
    "cummin": "{axis}",
    "logcumsumexp": "{axis}",
}.items():
    register((f"autograd.{_name}",), f"autograd.{_name}({{x}}, {_args})", _line)
    register((f"Tensor.{_name}",), f"{{x}}.{_name}({_args})", _line)
for _form in (
    "average({x}, {axis})", "cov({flat})", "corrcoef(autograd.stack([{flat}, {flat} ** 2]))",
    "trapezoid({x}, None, 0.5, {axis})", "gradient(autograd.stack([{x}, {x} * 2]), 1.0, axis=0)",
    "convolve({flat}, [0.5, 1.0], 'same')", "interp({x}, [-1.0, 0.0, 1.0], [0.0, 1.0, 0.5])",
    "vander({flat}[:3])",
):  # fmt: skip
    register((f"autograd.{_form.partition('(')[0]}",), f"autograd.{_form}", _line)

#: The arguments of methods that write in place, where they take some.
_INTO = {
    **dict.fromkeys(("add", "sub", "mul", "div", "hypot", "copysign", "xlogy", "xlog1py"), "0.7"),
    **dict.fromkeys(("remainder", "fmod", "floor_divide", "heaviside"), "0.7"),
    "pow": "2",
    "polygamma": "2",
    "lerp": "0.5, 0.3",
    "addcmul": "0.5, 2.0",
    "addcdiv": "0.5, 2.0",
    "clip": "0.2, 0.7",
    "masked_fill": "draw({seed}, {shape}) > 0, 0.5",
    "index_add": "0, [0], {x}[:1]",
    "index_copy": "0, [-1], {x}[:1]",
    "index_fill": "0, [0], 0.25",
    "scatter_add": "0, whole({seed}, {shape}, 1), {x}",
    "clamp": "-0.5, 0.5",
    "atan2": "0.7",
    "ldexp": "1",
    **dict.fromkeys(("multiply", "subtract", "divide"), "0.7"),
    "scatter": "0, whole({seed}, {shape}, 1), {x}",
    "scatter_reduce": "0, whole({seed}, {shape}, 1), {x}, 'amax'",
    "index_put": "([0],), 0.25",
    "masked_scatter": "draw({seed}, {shape}) > 0, {x}",
    "addmv": "tensor.ones(({x}.shape[0], 2)), tensor.ones(2)",
    "addr": "{x}[:, 0], {x}[0]",
    "addbmm": "{x}.unsqueeze(0), tensor.eye({x}.shape[1]).unsqueeze(0)",
    "addmm": "{x}, tensor.eye({x}.shape[1])",
    "baddbmm": "{x}, tensor.ones(({x}.shape[0], {x}.shape[2], {x}.shape[2]))",
    "cumsum": "0",
    "cumprod": "0",
    "fill_": "0.25",
    "copy_": "{x} * 0.5",
}


def _into(d: Draw, name: str) -> Text:
    """Into a new tensor or a view of it, so that nothing changes where the statement is refused."""
    ranks = {"addmm": (2,), "baddbmm": (3,), "addmv": (1,), "addr": (2,), "addbmm": (2,)}
    rank = ranks.get(name, range(1, 9))
    x = d.any(lambda x: x.rank in rank and x.numel and floating(x))
    if x is None and name == "baddbmm":
        x = d.parameter((1, 2, 3))
    if x is None:
        return None
    args = _INTO.get(name, "").format(x=x, shape=size(d, x), seed=d.seed())
    made = d.rng.choice(["autograd.sigmoid({})", "({} * {} + 1.1)", "autograd.clone({})"])
    return f"{made.format(x, x)}.{name.removesuffix('_')}_({args})"


for _name in (*assigning._UNARY, *assigning._OTHERS):
    RECIPES[f"Tensor.{_name}_"] = lambda d, name=_name: _into(d, name)
for _name in ("fill_", "zero_", "copy_", "normal_", "uniform_", "bernoulli_"):
    RECIPES[f"Tensor.{_name}"] = lambda d, name=_name: _into(d, name)
