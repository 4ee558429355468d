"""Functions whose arguments have to fit each other in ways that their names do not tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import values

if TYPE_CHECKING:
    from .draw import Draw

Text = str | None
#: The function's text; "!" before a statement that makes nothing new. None where nothing fits.
RECIPES: dict[str, Callable[[Draw], Text]] = {}


def _for(*names: str) -> Callable[[Callable[[Draw], Text]], Callable[[Draw], Text]]:
    def note(recipe: Callable[[Draw], Text]) -> Callable[[Draw], Text]:
        RECIPES.update(dict.fromkeys(names, recipe))
        return recipe

    return note


def _with(names: tuple[str, ...], template: str, text: Callable[..., Text], **more: Any) -> None:
    for name in names:
        RECIPES[name] = lambda d, name=name: text(d, template.format(name=name), **more)


def floating(x: Any) -> bool:
    """Whether a tensor is of a float dtype."""
    return x.dtype.is_float


def matrix(d: Draw) -> str | None:
    """A matrix of floats."""
    return d.any(lambda x: x.rank == 2 and floating(x) and x.numel, 12) or _reshaped(d, 2)


def image(d: Draw) -> str | None:
    """A batch of images."""
    return d.any(lambda x: x.rank == 4 and floating(x) and x.numel, 12) or _reshaped(d, 4)


def _reshaped(d: Draw, rank: int) -> str | None:
    x = d.any(lambda x: floating(x) and x.numel > 3)
    if x is None:
        return None
    shape = d.value(x).shape
    if rank == 2:
        return f"{x}.reshape(({shape[0] if shape else 1}, -1))" if len(d.worlds) < 2 else None
    made = [n for n in values.factorings(d.rng, d.value(x).numel) if n > 1][:3]
    return f"{x}.reshape({(-1, *made, *(1,) * (3 - len(made)))})"


def _size(d: Draw, text: str) -> tuple[int, ...]:
    return d.value(text).shape


# ---- operators -----------------------------------------------------------------------------------

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "pow": "**", "floordiv": "//",
    "mod": "%", "and": "&", "or": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip


def _beside(d: Draw, x: str) -> str:
    from .recipes import PARAMETERS

    return PARAMETERS["b"](d, x)


def _bools(d: Draw) -> str:
    """A bool tensor."""
    found = d.any(lambda x: x.dtype.name == "bool", 3)
    return (
        found or f"({d.any()} {d.rng.choice(['<', '>', '>=', '!='])} {d.rng.choice(['0', '0.5'])})"
    )


def _operator(d: Draw, sign: str, reflected: bool) -> Text:
    if sign in "&|^":
        a = _bools(d)
        b = d.rng.choice([_bools(d), "True", "False"])
    else:
        a = d.any()
        b = _beside(d, a)
    return f"{b} {sign} {a}" if reflected else f"{a} {sign} {b}"


for _short, _sign in _SIGNS.items():
    _with((f"Tensor.__{_short}__",), _sign, _operator, reflected=False)
    _with((f"Tensor.__r{_short}__",), _sign, _operator, reflected=True)


def _assign(d: Draw, sign: str) -> Text:
    a = target(d)
    return f"!{a} {sign}= {_beside(d, a)}"


for _short in ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod"):
    _with((f"Tensor.__i{_short}__",), _SIGNS[_short], _assign)
for _short, _text in {"abs": "abs({})", "neg": "-{}", "pos": "+{}"}.items():
    RECIPES[f"Tensor.__{_short}__"] = lambda d, text=_text: text.format(d.any())
RECIPES["Tensor.__invert__"] = lambda d: f"~{_bools(d)}"


def target(d: Draw) -> str:
    """What is written in place: mostly what the step made, sometimes what it was given or keeps."""
    d.program.tags["writes"] += 1
    made = [n for n in d.pool if n.startswith("v")]
    if made and d.rng.random() < 0.75:
        return d.rng.choice(made)
    states = [n for n in d.pool if n.startswith("self.")]
    if states and d.rng.random() < 0.9:
        return d.rng.choice(states)
    return d.rng.choice(d.pool)


@_for("Tensor.__getitem__")
def _getitem(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0)
    return x and f"{x}[{values.key(d.rng, _size(d, x))}]"


@_for("Tensor.__setitem__")
def _setitem(d: Draw) -> Text:
    x = target(d)
    key = values.key(d.rng, _size(d, x), basic=d.rng.random() < 0.8)
    part = d.value(x)[eval(f"np.s_[{key}]", d.worlds[0])]
    value = d.rng.choice(
        [
            d.rng.choice(values.SCALARS),
            values.constant(d.rng, part.shape, d.seed()),
            f"{x}[{key}] * 0.5",
            _beside(d, x),
        ]
    )
    return f"!{x}[{key}] = {value}"


@_for("Tensor.copy_from", "Tensor.copy_data")
def _copy_from(d: Draw) -> Text:
    x = target(d)
    return f"!{x}.copy_from({_alike(d, x)})"


@_for("Tensor.copy_from_numpy", "tensor.copy_from_numpy")
def _copy_array(d: Draw) -> Text:
    x = target(d)
    return f"!{x}.copy_from_numpy(draw({d.seed()}, {_size(d, x)}))"


@_for("tensor.copy_data_to_from")
def _copy_part(d: Draw) -> Text:
    x, y = target(d), d.any()
    count = min(d.value(x).numel, d.value(y).numel)
    size = d.rng.randint(1, max(count, 1))
    return f"!tensor.copy_data_to_from({x}, {y}, {size}, {d.rng.randint(0, count - size)})"


def _alike(d: Draw, x: str) -> str:
    shape = _size(d, x)
    fits = [n for n in d.pool if _size(d, n) == shape]
    if fits and d.rng.random() < 0.6:
        return f"{d.rng.choice(fits)}{d.rng.choice(['', ' * 0.5', ' + 1'])}"
    return values.constant(d.rng, shape, d.seed())


def _fill(d: Draw, call: str) -> Text:
    return f"!{target(d)}.{call}"


RECIPES["Tensor.set_value"] = lambda d: _fill(d, f"set_value({d.rng.choice(['0.5', '0', '1'])})")
RECIPES["Tensor.gaussian"] = lambda d: _fill(d, "gaussian(0.0, 1.0)")
RECIPES["Tensor.uniform"] = lambda d: _fill(d, "uniform(-1.0, 1.0)")
RECIPES["Tensor.bernoulli"] = lambda d: _fill(d, "bernoulli(0.5)")
RECIPES["tensor.gaussian"] = lambda d: f"!tensor.gaussian(0.0, 0.5, {target(d)})"
RECIPES["tensor.uniform"] = lambda d: f"!tensor.uniform(0.0, 0.5, {target(d)})"
RECIPES["tensor.bernoulli"] = lambda d: f"!tensor.bernoulli(0.3, {target(d)})"
RECIPES["tensor.axpy"] = lambda d: (lambda y: f"!tensor.axpy(0.5, {_alike(d, y)}, {y})")(target(d))


def _vector(d: Draw, form: str, along: int) -> Text:
    x = d.any(lambda x: x.rank == 2 and floating(x))
    if x is None:
        return None
    v = d.parameter((_size(d, x)[along],), 0.5, 1.5)
    return form.format(x=x, v=v)


for _what in ("add", "div", "mult"):
    _with((f"Tensor.{_what}_row",), f"!{{{{x}}}}.{_what}_row({{{{v}}}})", _vector, along=1)
    _with((f"Tensor.{_what}_column",), f"!{{{{x}}}}.{_what}_column({{{{v}}}})", _vector, along=0)
_with(("tensor.add_row",), "!tensor.add_row(0.5, {{v}}, 1.0, {{x}})", _vector, along=1)
_with(("tensor.add_column",), "!tensor.add_column(0.5, {{v}}, 0.5, {{x}})", _vector, along=0)

# ---- views ---------------------------------------------------------------------------------------


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


_with(("Tensor.transpose",), "{{x}}.transpose({{order}})", _view)
_with(("Tensor.T",), "{{x}}.T({{order}})", _view)
_with(("Tensor.reshape",), "{{x}}.reshape({{shape}})", _view)
_with(("Tensor.unsqueeze",), "{{x}}.unsqueeze({{axis}})", _view)
_with(("autograd.unsqueeze",), "autograd.unsqueeze({{x}}, {{axis}})", _view)
_with(("autograd.Unsqueeze()",), "autograd.Unsqueeze({{axis}})({{x}})[0]", _view)


def _expand(d: Draw, form: str) -> Text:
    x = d.any()
    shape = _size(d, x)
    wide = [d.rng.randint(2, 4) if n == 1 else n for n in shape]
    lead = [d.rng.randint(1, 3)] if d.rng.random() < 0.4 else []
    return form.format(x=x, shape=(*lead, *wide))


_with(("Tensor.expand",), "{{x}}.expand({{shape}})", _expand)
_with(("autograd.expand",), "autograd.expand({{x}}, {{shape}})", _expand)
_with(("autograd.Expand()",), "autograd.Expand({{shape}})({{x}})[0]", _expand)


def _slice(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    extent = _size(d, x)[axis]
    low = d.rng.randint(0, extent - 1)
    steps = ", [2]" if d.rng.random() < 0.3 else ""
    return form.format(x=x, args=f"[{low}], [{d.rng.randint(low + 1, extent)}], [{axis}]{steps}")


_with(("autograd.slice",), "autograd.slice({{x}}, {{args}})", _slice)
_with(("autograd.Slice()",), "autograd.Slice({{args}})({{x}})[0]", _slice)


def _split(d: Draw, form: str) -> Text:
    x = d.any(lambda x: x.rank > 0 and max(x.shape) > 1)
    if x is None:
        return None
    shape = _size(d, x)
    axis = d.rng.choice([i for i, n in enumerate(shape) if n > 1])
    first = d.rng.randint(1, shape[axis] - 1)
    args = f"{axis}, [{first}, {shape[axis] - first}]"
    if shape[axis] % 2 == 0 and d.rng.random() < 0.3 and "Split(" not in form:
        args = f"{axis}, num_output=2"
    return form.format(x=x, args=args)


_with(("autograd.split",), "autograd.split({{x}}, {{args}})", _split)
_with(("Tensor.split",), "{{x}}.split({{args}})", _split)
_with(("autograd.Split()",), "autograd.Split({{args}})({{x}})", _split)


@_for("tensor.contiguous", "Tensor.contiguous")
def _contiguous(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 1)
    return x and f"{x}.transpose().contiguous()"


@_for("tensor.raw")
def _raw(d: Draw) -> Text:
    x = d.any()
    return d.rng.choice([f"tensor.raw({x})", f"{x}.data", f"{x}.detach()"])


# ---- products, convolutions, selections ----------------------------------------------------------


@_for(
    "autograd.matmul", "Tensor.dot", "Tensor.__matmul__", "Tensor.__rmatmul__", "autograd.Matmul()"
)
def _matmul(d: Draw) -> Text:
    x = d.any(lambda x: x.rank >= 1 and floating(x) and x.numel)
    if x is None:
        return None
    shape = _size(d, x)
    fits = [n for n in d.pool if d.value(n).rank > 1 and _size(d, n)[-2] == shape[-1]]
    if fits and d.rng.random() < 0.4:
        w = d.rng.choice(fits)
    else:
        w = d.parameter((*shape[:-2][: d.rng.choice([0, 0, 2])], shape[-1], d.width()))
    forms = ("autograd.matmul({}, {})", "{} @ {}", "{}.dot({})", "autograd.Matmul()({}, {})[0]")
    if len(shape) == 2 and d.rng.random() < 0.2:
        return f"draw({d.seed()}, ({d.rng.randint(1, 4)}, {shape[0]})) @ {x}"
    return d.rng.choice(forms).format(x, w)


@_for("tensor.mult")
def _mult(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    rows, inner = _size(d, x)
    w = d.parameter((inner, d.width()))
    if d.rng.random() < 0.7:
        return f"tensor.mult({x}, {w})"
    fits = [n for n in d.pool if _size(d, n) == (rows, _size(d, w)[1])]
    return f"!tensor.mult({x}, {w}, {d.rng.choice(fits)}, 0.5, 1.0)" if fits else None


@_for("autograd.gemm", "autograd.Gemm()")
def _gemm(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    left, right = d.rng.random() < 0.3, d.rng.random() < 0.4
    shape = _size(d, x)
    inner, rows = (shape[0], shape[1]) if left else (shape[1], shape[0])
    columns = d.width()
    w = d.parameter((columns, inner) if right else (inner, columns))
    c = d.rng.choice(["", f", {d.parameter((columns,))}", f", {d.parameter((1, columns))}"])
    how = f"alpha={d.rng.choice(['0.5', '1.0'])}, beta={d.rng.choice(['1.0', '0.5'])}"
    flags = f"transA={int(left)}, transB={int(right)}"
    if d.rng.random() < 0.2:
        return f"autograd.Gemm({how}, {flags})({x}, {w}{c})[0]"
    return f"autograd.gemm({x}, {w}{c}, {how}, {flags})"


@_for("autograd.add_bias", "autograd.AddBias()")
def _add_bias(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    axis = d.rng.randint(0, 1)
    b = d.parameter((_size(d, x)[1 - axis],))
    if d.rng.random() < 0.3:
        return f"autograd.AddBias({axis})({x}, {b})[0]"
    return f"autograd.add_bias({x}, {b}, axis={axis})"


@_for("tensor.einsum")
def _einsum(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    n, m = _size(d, x)
    form, shape = d.rng.choice(
        [
            ("ij,jk->ik", (m, 3)),
            ("ij,kj->ki", (2, m)),
            ("ij,ij->i", (n, m)),
            ("ij,j->ij", (m,)),
            ("ij,i->j", (n,)),
            ("ij->ji", None),
            ("ij->j", None),
        ]
    )
    return f'tensor.einsum("{form}", {x}{"" if shape is None else ", " + d.parameter(shape)})'


@_for("tensor.tensordot")
def _tensordot(d: Draw) -> Text:
    x = d.any(lambda x: x.rank >= 1 and floating(x) and x.numel)
    if x is None:
        return None
    w = d.parameter((_size(d, x)[-1], d.rng.randint(1, 4)))
    return f"tensor.tensordot({x}, {w}, {d.rng.choice(['1', '([-1], [0])'])})"


@_for("autograd.conv2d")
def _conv2d(d: Draw) -> Text:
    x = image(d)
    if x is None:
        return None
    channels = _size(d, x)[1]
    group = 2 if channels % 2 == 0 and d.rng.random() < 0.3 else 1
    h, w = d.rng.randint(1, 3), d.rng.randint(1, 3)
    weight = d.parameter((2 * d.rng.randint(1, 3), channels // group, h, w), -0.5, 0.5)
    bias = f", {d.parameter((_size(d, weight)[0],))}" if d.rng.random() < 0.5 else ""
    how = f"stride={d.rng.choice(['1', '2'])}, padding={d.rng.choice(['0', '1', '(1, 0)'])}"
    handle = f"autograd.ConvHandle(({h}, {w}), {how}, group={group})"
    odd = ", odd_padding=(1, 0, 0, 1)" if bias and d.rng.random() < 0.1 else ""
    if d.rng.random() < 0.5:
        name = f"self.h{len(d.program.init)}"
        d.define(f"{name} = {handle}")
        handle = name
    return f"autograd.conv2d({handle}, {x}, {weight}{bias}{odd})"


@_for("autograd.pooling_2d")
def _pooling(d: Draw) -> Text:
    x = image(d)
    if x is None:
        return None
    how = f"padding={d.rng.choice(['0', '1'])}, is_max={d.rng.random() < 0.5}"
    return f"autograd.pooling_2d(autograd.PoolingHandle(2, {d.rng.randint(1, 2)}, {how}), {x})"


@_for("autograd.batchnorm_2d")
def _batchnorm(d: Draw) -> Text:
    x = d.any(lambda x: x.rank in (2, 4) and floating(x) and x.numel) or image(d)
    if x is None:
        return None
    n = (_size(d, x)[1],)
    scale, bias = d.parameter(n, 0.5, 1.5), d.parameter(n)
    names = [f"self.r{len(d.program.init)}", f"self.r{len(d.program.init) + 1}"]
    d.define(f"{names[0]} = held(draw({d.seed()}, {n}))")
    d.define(f"{names[1]} = held(draw({d.seed()}, {n}, 0.5, 1.5))")
    handle = f"autograd.BatchNormHandle({d.rng.choice(['0.1', '0.9'])})"
    return f"autograd.batchnorm_2d({handle}, {x}, {scale}, {bias}, {names[0]}, {names[1]})"


def _places(d: Draw, shape: tuple[int, ...], high: int) -> str:
    """Indices below `high`."""
    array = f"whole({d.seed()}, {shape}, {high})"
    forms = [array, f"from_numpy({array})", f"from_numpy({array}, dtype='int64')"]
    if d.program.dtype == "float32" and high < 100:
        forms += [f"from_numpy({array}, dtype='int8')", f"tensor.constant({array})"]
    return d.rng.choice(forms)


@_for("autograd.embedding", "autograd.Embedding()")
def _embedding(d: Draw) -> Text:
    w = d.any(lambda x: x.rank == 2 and x.shape[0] > 1, 3) or d.parameter((5, d.rng.randint(1, 4)))
    places = f"from_numpy(whole({d.seed()}, {(d.rng.randint(1, 5),)}, {_size(d, w)[0]}))"
    if d.rng.random() < 0.2:
        return f"autograd.Embedding()({places}, {w})[0]"
    return f"autograd.embedding({places}, {w})"


@_for("layer.Embedding")
def _embedding_layer(d: Draw) -> Text:
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.Embedding(6, {d.rng.randint(1, 4)})")
    return f"{name}(from_numpy(whole({d.seed()}, {(d.rng.randint(1, 5),)}, 6)))"


@_for("autograd.gather", "autograd.Gather()")
def _gather(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    axis = d.rng.randrange(d.value(x).rank)
    places = _places(d, (d.rng.randint(1, 4),), _size(d, x)[axis])
    if d.rng.random() < 0.2:
        return f"autograd.Gather({axis}, {places})({x})[0]"
    return f"autograd.gather({x}, {axis}, {places})"


@_for("autograd.scatter_elements", "autograd.ScatterElements()")
def _scatter(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel and floating(x))
    if x is None:
        return None
    shape, axis = _size(d, x), d.rng.randrange(d.value(x).rank)
    part = tuple(max(n - 1, 1) for n in shape)
    places = f"whole({d.seed()}, {part}, {shape[axis]})"
    updates = values.constant(d.rng, part, d.seed())
    if d.rng.random() < 0.2:
        return f"autograd.ScatterElements({places}, {updates}, {axis})({x})[0]"
    return f"autograd.scatter_elements({x}, {places}, {updates}, {axis})"


@_for("autograd.onehot", "autograd.OneHot()")
def _onehot(d: Draw) -> Text:
    places = _places(d, (d.rng.randint(1, 5),), 4)
    if "y" in d.worlds[0] and d.rng.random() < 0.3:
        places = "y"
    axis = d.rng.choice(["-1", "0", "1"])
    if d.rng.random() < 0.3:
        places = places if places.startswith(("from_", "tensor.")) else f"from_numpy({places})"
        return f"autograd.OneHot({axis}, 4, (0.0, 2.0))({places})[0]"
    return f"autograd.onehot({axis}, {places}, 4)"


@_for("autograd.where", "autograd.Where()")
def _where(d: Draw) -> Text:
    x = d.any()
    shape = _size(d, x)
    condition = d.rng.choice(
        [f"{x} > 0", f"draw({d.seed()}, {shape}) > 0", f"from_numpy(whole({d.seed()}, {shape}, 2))"]
    )
    if d.rng.random() < 0.2:
        return f"autograd.Where({condition})({x}, {_alike(d, x)})[0]"
    return f"autograd.where({x}, {_beside(d, x)}, {condition})"


@_for("autograd.pad", "autograd.Pad()")
def _pad(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and x.numel)
    if x is None:
        return None
    pads = [d.rng.choice([0, 0, 1, 2]) for _ in range(2 * d.value(x).rank)]
    mode = d.rng.choice(["'constant'", "'reflect'", "'edge'"])
    if d.rng.random() < 0.2:
        return f"autograd.Pad({mode}, {pads}, 0.5)({x})[0]"
    return f"autograd.pad({x}, {mode}, {pads})"


@_for("autograd.upsample", "autograd.UpSample()")
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


_with(("autograd.depth_to_space",), "autograd.depth_to_space({{x}}, 2, {{mode}})", _interleaved)
_with(("autograd.space_to_depth",), "autograd.space_to_depth({{x}}, 2, {{mode}})", _interleaved)
_with(("autograd.DepthToSpace()",), "autograd.DepthToSpace(2, {{mode}})({{x}})[0]", _interleaved)
_with(("autograd.SpaceToDepth()",), "autograd.SpaceToDepth(2, {{mode}})({{x}})[0]", _interleaved)
_with(("autograd.GlobalAveragePool()",), "autograd.GlobalAveragePool()({{x}})[0]", _interleaved)
_with(("autograd.globalaveragepool",), "autograd.globalaveragepool({{x}})", _interleaved)


def _rows(d: Draw, form: str) -> Text:
    x = matrix(d)
    if x is None or x not in d.pool:
        return None
    return form.format(x=x, same=_alike(d, x), shape=_size(d, x), seed=d.seed())


_with(("autograd.cossim",), "autograd.cossim({{x}}, {{x}} * {{x}} + 0.5)", _rows)
_with(("autograd.CosSim()",), "autograd.CosSim()({{x}}, autograd.exp({{x}}))[0]", _rows)

# ---- losses --------------------------------------------------------------------------------------

_LOSSES = {
    "softmax_cross_entropy": ("SoftMaxCrossEntropy", "{x}", "draw({seed}, {shape}, 0, 1)"),
    "cross_entropy": ("CrossEntropy", "autograd.softmax({x})", "draw({seed}, {shape}, 0, 1)"),
    "binary_cross_entropy": ("BinaryCrossEntropy", "{x}.sigmoid()", "draw({seed}, {shape}, 0, 1)"),
    "mse_loss": ("MeanSquareError", "{x}", "draw({seed}, {shape})"),
}
for _short, (_cls, _x, _t) in _LOSSES.items():
    _x, _t = ("{" + p + "}" for p in (_x, _t)) if False else (_x, _t)
    RECIPES[f"autograd.{_short}"] = lambda d, f=f"autograd.{_short}({_x}, {_t})": _rows(d, f)
    RECIPES[f"autograd.{_cls}()"] = lambda d, f=f"autograd.{_cls}({_t})({_x})[0]": _rows(d, f)


def _loss_layer(d: Draw, name: str, x: str, t: str) -> Text:
    place = f"self.l{len(d.program.init)}"
    d.define(f"{place} = layer.{name}()")
    return _rows(d, f"{place}({x}, held({t}))")


for _cls, _x, _t in _LOSSES.values():
    RECIPES[f"layer.{_cls}"] = lambda d, args=(_cls, _x, _t): _loss_layer(d, *args)
RECIPES["autograd.RankingLoss()"] = lambda d: _rows(d, "autograd.RankingLoss()({x}, {same})[0]")

# ---- what makes tensors --------------------------------------------------------------------------


def _made(d: Draw, form: str) -> Text:
    x = d.any()
    shape = _size(d, x)
    return form.format(
        x=x, shape=shape, seed=d.seed(), dtype=d.rng.choice(values.DTYPES), n=d.rng.randint(1, 9)
    )


for _name, _form in {
    "tensor.ones": "tensor.ones({shape}, dtype='{dtype}')",
    "tensor.zeros": "tensor.zeros({shape}, dtype='{dtype}')",
    "tensor.full": "tensor.full({shape}, 1, dtype='{dtype}')",
    "tensor.arange": "tensor.arange({n}, dtype='{dtype}')",
    "tensor.random": "tensor.random({shape})",
    "tensor.constant": "tensor.constant(draw({seed}, {shape}))",
    "tensor.from_numpy": "from_numpy(draw({seed}, {shape}))",
    "tensor.as_tensor": "tensor.as_tensor(draw({seed}, {shape}))",
    "tensor.to_host": "tensor.to_host({x})",
    "tensor.from_raw_tensor": "tensor.from_raw_tensor({x})",
    "autograd.shape": "autograd.shape({x})",
    "autograd.Shape()": "autograd.Shape()({x})[0]",
    "autograd.constant_of_shape": "autograd.constant_of_shape(from_numpy(np.array({shape})), 0.5)",
    "autograd.ConstantOfShape()": "autograd.ConstantOfShape(2)(from_numpy(np.array({shape})))[0]",
    "autograd.back_broadcast": "autograd.back_broadcast(({n}, *{shape}), {shape}, "
    "tensor.ones(({n}, *{shape})) * {x})",
    "autograd.tile": "autograd.tile({x}, [2] + [1] * ({x}.rank - 1))",
    "autograd.Tile()": "autograd.Tile([2] + [1] * ({x}.rank - 1))({x})[0]",
    "autograd.Cast()": "autograd.Cast('{dtype}')({x})[0]",
    "autograd._and": "autograd._and({x} > 0, {x} < 1)",
}.items():
    RECIPES[_name] = lambda d, form=_form: _made(d, form)
for _name in ("And", "Or", "Xor"):
    RECIPES[f"autograd.{_name}()"] = lambda d, name=_name: (
        f"autograd.{name}()({_bools(d)}, {_bools(d)})[0]"
    )
RECIPES["autograd.Not()"] = lambda d: f"autograd.Not()({_bools(d)})[0]"
RECIPES["tensor.average"] = lambda d: f"tensor.average({d.any()}, 0)"


@_for("layer.Sequential")
def _sequential(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    steps = (
        f"layer.Linear({d.rng.randint(1, 6)}), layer.ReLU(), layer.Linear({d.rng.randint(1, 4)})"
    )
    d.define(f"{name} = layer.Sequential({steps})")
    return f"{name}({x})"


def _image_layer(d: Draw, text: str) -> Text:
    x = image(d)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    window = d.rng.choice(["2", "2, 1", "(1, 2)", "3, 2, 1", "2, padding=1"])
    how = d.rng.choice(["", ", bias=False", ", activation='RELU'", ", padding=1", ", stride=2"])
    plain = d.rng.choice(["2", "3", "2, 1"])
    d.define(f"{name} = {text}".format(window=window, how=how, plain=plain, n=d.rng.randint(1, 5)))
    return f"{name}({x})"


for _name, _form in {
    "Conv2d": "layer.Conv2d({n}, 2{how})",
    "SeparableConv2d": "layer.SeparableConv2d({n}, 2)",
    "MaxPool2d": "layer.MaxPool2d({window})",
    "AvgPool2d": "layer.AvgPool2d({window})",
    "Pooling2d": "layer.Pooling2d({window})",
    "GlobalAvgPool2d": "layer.GlobalAvgPool2d()",
    "BatchNorm2d": "layer.BatchNorm2d()",
}.items():
    RECIPES[f"layer.{_name}"] = lambda d, form=_form: _image_layer(d, form)


def _line_layer(d: Draw, text: str) -> Text:
    x = d.any(lambda x: x.rank == 3 and floating(x) and x.numel, 12)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = {text}")
    return f"{name}({x})"


for _name in ("MaxPool1d", "AvgPool1d"):
    RECIPES[f"layer.{_name}"] = lambda d, n=_name: _line_layer(d, f"layer.{n}(2, 1)")


@_for("layer.Reshape")
def _reshape_layer(d: Draw) -> Text:
    from .recipes import PARAMETERS

    x = d.any()
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.Reshape({PARAMETERS['shape'](d, x)})")
    return f"{name}({x})"


@_for("layer.BatchNorm2d")
def _norm_layer(d: Draw) -> Text:
    x = d.any(lambda x: x.rank in (2, 4) and floating(x) and x.numel > 1, 12)
    if x is None:
        return None
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = layer.BatchNorm2d({d.rng.choice(['', 'momentum=0.5', 'eps=1e-3'])})")
    return f"{name}({x})"
