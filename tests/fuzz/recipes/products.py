"""Products, convolutions, pooling, normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import (
    Text,
    floating,
    image,
    matrix,
    recipe_for,
    register,
    rows,
    size,
)

if TYPE_CHECKING:
    from ..draw import Draw


@recipe_for(
    "autograd.matmul", "Tensor.dot", "Tensor.__matmul__", "Tensor.__rmatmul__", "autograd.Matmul()"
)
def _matmul(d: Draw) -> Text:
    x = d.any(lambda x: x.rank >= 1 and floating(x) and x.numel)
    if x is None:
        return None
    shape = size(d, x)
    fits = [n for n in d.pool if d.value(n).rank > 1 and size(d, n)[-2] == shape[-1]]
    if fits and d.rng.random() < 0.4:
        w = d.rng.choice(fits)
    else:
        w = d.parameter((*shape[:-2][: d.rng.choice([0, 0, 2])], shape[-1], d.width()))
    forms = ("autograd.matmul({}, {})", "{} @ {}", "{}.dot({})", "autograd.Matmul()({}, {})[0]")
    if len(shape) == 2 and d.rng.random() < 0.2:
        return f"draw({d.seed()}, ({d.rng.randint(1, 4)}, {shape[0]})) @ {x}"
    return d.rng.choice(forms).format(x, w)


@recipe_for("tensor.mult")
def _mult(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    rows, inner = size(d, x)
    w = d.parameter((inner, d.width()))
    if d.rng.random() < 0.7:
        return f"tensor.mult({x}, {w})"
    fits = [n for n in d.pool if size(d, n) == (rows, size(d, w)[1])]
    return f"!tensor.mult({x}, {w}, {d.rng.choice(fits)}, 0.5, 1.0)" if fits else None


@recipe_for("autograd.gemm", "autograd.Gemm()")
def _gemm(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    left, right = d.rng.random() < 0.3, d.rng.random() < 0.4
    shape = size(d, x)
    inner, rows = (shape[0], shape[1]) if left else (shape[1], shape[0])
    columns = d.width()
    w = d.parameter((columns, inner) if right else (inner, columns))
    c = d.rng.choice(["", f", {d.parameter((columns,))}", f", {d.parameter((1, columns))}"])
    how = f"alpha={d.rng.choice(['0.5', '1.0'])}, beta={d.rng.choice(['1.0', '0.5'])}"
    flags = f"transA={int(left)}, transB={int(right)}"
    if d.rng.random() < 0.2:
        return f"autograd.Gemm({how}, {flags})({x}, {w}{c})[0]"
    return f"autograd.gemm({x}, {w}{c}, {how}, {flags})"


@recipe_for("autograd.add_bias", "autograd.AddBias()")
def _add_bias(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    axis = d.rng.randint(0, 1)
    b = d.parameter((size(d, x)[1 - axis],))
    if d.rng.random() < 0.3:
        return f"autograd.AddBias({axis})({x}, {b})[0]"
    return f"autograd.add_bias({x}, {b}, axis={axis})"


@recipe_for("tensor.einsum")
def _einsum(d: Draw) -> Text:
    x = matrix(d)
    if x is None:
        return None
    n, m = size(d, x)
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


@recipe_for("tensor.tensordot")
def _tensordot(d: Draw) -> Text:
    x = d.any(lambda x: x.rank >= 1 and floating(x) and x.numel)
    if x is None:
        return None
    w = d.parameter((size(d, x)[-1], d.rng.randint(1, 4)))
    return f"tensor.tensordot({x}, {w}, {d.rng.choice(['1', '([-1], [0])'])})"


@recipe_for("autograd.conv2d")
def _conv2d(d: Draw) -> Text:
    x = image(d)
    if x is None:
        return None
    channels = size(d, x)[1]
    group = 2 if channels % 2 == 0 and d.rng.random() < 0.3 else 1
    h, w = d.rng.randint(1, 3), d.rng.randint(1, 3)
    weight = d.parameter((2 * d.rng.randint(1, 3), channels // group, h, w), -0.5, 0.5)
    bias = f", {d.parameter((size(d, weight)[0],))}" if d.rng.random() < 0.5 else ""
    how = f"stride={d.rng.choice(['1', '2'])}, padding={d.rng.choice(['0', '1', '(1, 0)'])}"
    handle = f"autograd.ConvHandle(({h}, {w}), {how}, group={group})"
    odd = ", odd_padding=(1, 0, 0, 1)" if bias and d.rng.random() < 0.1 else ""
    if d.rng.random() < 0.5:
        name = f"self.h{len(d.program.init)}"
        d.define(f"{name} = {handle}")
        handle = name
    return f"autograd.conv2d({handle}, {x}, {weight}{bias}{odd})"


@recipe_for("autograd.pooling_2d")
def _pooling(d: Draw) -> Text:
    x = image(d)
    if x is None:
        return None
    how = f"padding={d.rng.choice(['0', '1'])}, is_max={d.rng.random() < 0.5}"
    return f"autograd.pooling_2d(autograd.PoolingHandle(2, {d.rng.randint(1, 2)}, {how}), {x})"


@recipe_for("autograd.batchnorm_2d")
def _batchnorm(d: Draw) -> Text:
    x = d.any(lambda x: x.rank in (2, 4) and floating(x) and x.numel) or image(d)
    if x is None:
        return None
    n = (size(d, x)[1],)
    scale, bias = d.parameter(n, 0.5, 1.5), d.parameter(n)
    names = [f"self.r{len(d.program.init)}", f"self.r{len(d.program.init) + 1}"]
    d.define(f"{names[0]} = held(draw({d.seed()}, {n}))")
    d.define(f"{names[1]} = held(draw({d.seed()}, {n}, 0.5, 1.5))")
    handle = f"autograd.BatchNormHandle({d.rng.choice(['0.1', '0.9'])})"
    return f"autograd.batchnorm_2d({handle}, {x}, {scale}, {bias}, {names[0]}, {names[1]})"


@recipe_for("autograd.layer_norm")
def _layernorm(d: Draw) -> Text:
    x = d.any(lambda x: x.rank > 0 and floating(x) and x.numel)
    if x is None:
        return None
    axis = d.rng.randint(-d.value(x).rank, -1)
    over = size(d, x)[axis:]
    scale, bias = d.parameter(over, 0.5, 1.5), d.rng.choice(["None", d.parameter(over)])
    return f"autograd.layer_norm({x}, {scale}, {bias}, {axis}, {d.rng.choice(['1e-5', '1e-2'])})"


register(("autograd.cossim",), "autograd.cossim({x}, {x} * {x} + 0.5)", rows)
register(("autograd.CosSim()",), "autograd.CosSim()({x}, autograd.exp({x}))[0]", rows)
