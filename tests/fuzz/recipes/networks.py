"""Normalisation, attention, positions, and the layers made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import RECIPES, Text, floating, image, recipe_for, size

if TYPE_CHECKING:
    from ..draw import Draw


def _of(d: Draw, rank: int, times: int = 12) -> str | None:
    """A tensor of floats with at least so many axes."""
    return d.any(lambda x: x.rank >= rank and floating(x) and x.numel, times)


@recipe_for("autograd.rms_norm")
def _rms_norm(d: Draw) -> Text:
    x = _of(d, 1)
    if x is None:
        return None
    axis = d.rng.randint(-d.value(x).rank, -1)
    scale = d.rng.choice(["None", d.parameter(size(d, x)[axis:], 0.5, 1.5)])
    return f"autograd.rms_norm({x}, {scale}, {axis}, {d.rng.choice(['1e-5', '1e-2'])})"


def _divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]


def _several(d: Draw, groups: bool) -> tuple[str, int] | None:
    """A tensor (N, C, ...), and a number of groups that have several values each."""
    x = d.any(lambda x: x.rank >= 2 and floating(x) and x.numel, 12) or image(d)
    if x is None:
        return None
    shape = size(d, x)
    count = d.value(x).numel // shape[0]
    fits = [g for g in (_divisors(shape[1]) if groups else [shape[1]]) if count // g > 1]
    return (x, d.rng.choice(fits)) if fits else None


@recipe_for("autograd.group_norm", "layer.GroupNorm")
def _group_norm(d: Draw) -> Text:
    found = _several(d, True)
    if found is None:
        return None
    (x, groups), eps = found, d.rng.choice(["1e-5", "1e-2"])
    if d.rng.random() < 0.5:
        return _made(d, f"layer.GroupNorm({groups}, eps={eps})", x)
    n = (size(d, x)[1],)
    scale, bias = d.parameter(n, 0.5, 1.5), d.rng.choice(["None", d.parameter(n)])
    return f"autograd.group_norm({x}, {groups}, {scale}, {bias}, {eps})"


@recipe_for("autograd.instance_norm", "layer.InstanceNorm")
def _instance_norm(d: Draw) -> Text:
    found = _several(d, False)
    if found is None:
        return None
    x, eps = found[0], d.rng.choice(["1e-5", "1e-2"])
    if d.rng.random() < 0.5:
        affine = d.rng.choice(["True", "False"])
        return _made(d, f"layer.InstanceNorm(eps={eps}, affine={affine})", x)
    return f"autograd.instance_norm({x}, {d.parameter((size(d, x)[1],), 0.5, 1.5)}, eps={eps})"


def _made(d: Draw, text: str, *given: str) -> str:
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = {text}")
    return f"{name}({', '.join(given)})"


def _over_rows(d: Draw, text: str) -> Text:
    x = _of(d, 2)
    return None if x is None else _made(d, text, x)


for _name in ("LayerNorm", "RMSNorm"):
    RECIPES[f"layer.{_name}"] = lambda d, n=_name: _over_rows(
        d, f"layer.{n}({d.rng.choice(['', 'axis=-2', 'eps=1e-2', 'affine=False'])})"
    )


def _of_rank(d: Draw, text: str, ranks: tuple[int, ...], smallest: int = 1) -> Text:
    x = d.any(lambda x: x.rank in ranks and floating(x) and x.numel >= smallest, 12)
    if x is None and 4 in ranks:
        x = image(d)
    if x is None:
        x = d.parameter(tuple(d.rng.randint(2, 3) for _ in range(ranks[-1])))
    return _made(d, text, x)


_MORE = ["", "momentum=0.5", "eps=1e-3"]
_BY_RANKS = {"BatchNorm1d": (2, 3), "BatchNorm3d": (2, 5), "SyncBatchNorm": (2, 3, 4, 5)}
for _name, _ranks in _BY_RANKS.items():
    RECIPES[f"layer.{_name}"] = lambda d, n=_name, r=_ranks: _of_rank(
        d, f"layer.{n}({d.rng.choice(_MORE)})", r, 2
    )
for _rank in (3, 4, 5):
    RECIPES[f"layer.Dropout{_rank - 2}d"] = lambda d, r=_rank: _of_rank(
        d, f"layer.Dropout{r - 2}d({d.rng.choice(['0.5', '0.2', ''])})", (r,)
    )
    for _kind in ("Avg", "Max"):
        RECIPES[f"layer.Adaptive{_kind}Pool{_rank - 2}d"] = lambda d, r=_rank, k=_kind: _of_rank(
            d, f"layer.Adaptive{k}Pool{r - 2}d({d.rng.choice(['1', '2', '3', 'None'])})", (r,)
        )


def _adaptive(d: Draw, name: str) -> Text:
    x = _of(d, 2)
    sizes = tuple(d.rng.randint(1, 4) for _ in range(1 + d.rng.randrange(2)))
    if x is None or d.value(x).rank <= len(sizes):
        return None
    return f"autograd.{name}({x}, {sizes})"


for _name in ("adaptive_avg_pool", "adaptive_max_pool"):
    RECIPES[f"autograd.{_name}"] = lambda d, n=_name: _adaptive(d, n)


@recipe_for("layer.Upsample")
def _upsample(d: Draw) -> Text:
    x = _of(d, 3)
    args = d.rng.choice(["1", "2", "1.5, 'linear'", "size=3", "size=4, mode='cubic'"])
    return None if x is None else _made(d, f"layer.Upsample({args})", x)


@recipe_for("layer.PixelShuffle", "layer.PixelUnshuffle")
def _shuffled(d: Draw) -> Text:
    x = d.parameter((2, 4, 2, 4))
    return _made(d, d.rng.choice(["layer.PixelShuffle(2)", "layer.PixelUnshuffle(2)"]), x)


@recipe_for("layer.Identity")
def _identity(d: Draw) -> Text:
    return _made(d, "layer.Identity()", d.any() or "x")


@recipe_for("layer.ModuleList", "layer.ModuleDict")
def _container(d: Draw) -> Text:
    x = _of(d, 1)
    if x is None:
        return None
    name, steps = f"self.l{len(d.program.init)}", "layer.ReLU(), layer.LayerNorm()"
    if d.rng.random() < 0.5:
        d.define(f"{name} = layer.ModuleList([{steps}])")
        return f"{name}[1]({name}[0]({x}))"
    d.define(f"{name} = layer.ModuleDict({{'a': layer.Tanh(), 'b': layer.RMSNorm()}})")
    return f"{name}['b']({name}['a']({x}))"


@recipe_for("autograd.scaled_dot_product_attention")
def _attention(d: Draw) -> Text:
    n, length, keys, width = (d.rng.randint(1, 4) for _ in range(4))
    heads, shared = d.rng.choice([(1, 1), (2, 2), (4, 2), (2, 1)])
    q = d.parameter((n, heads, length, width))
    k, v = d.parameter((n, shared, keys, width)), d.parameter((n, shared, keys, 3))
    masks = ["None", f"held(draw({d.seed()}, ({length}, {keys})))"]
    masks.append(f"held(draw({d.seed()}, ({n}, 1, {length}, {keys}))) > 0")
    one = f"(held(draw({d.seed()}, ({n},))) > 0).as_type(tensor.int64)"
    more = d.rng.choice(
        [
            "",
            ", is_causal=True",
            ", scale=0.5",
            ", dropout=0.3",
            f", lengths={one}",
            f", is_causal=True, start={one}",
        ]
    )
    return f"autograd.scaled_dot_product_attention({q}, {k}, {v}, {d.rng.choice(masks)}{more})"


@recipe_for("autograd.Attention()")
def _attention_rule(d: Draw) -> Text:
    q, k = d.parameter((2, 4, 3, 4)), d.parameter((2, 2, 5, 4))
    return f"autograd.Attention(0.5, {d.rng.choice(['True', 'False'])})({q}, {k}, {k})[0]"


@recipe_for("autograd.tensor_scatter")
def _tensor_scatter(d: Draw) -> Text:
    past, update = (f"held(draw({d.seed()}, (2, 3, {n}, 2)))" for n in (5, 2))
    start = f"(held(draw({d.seed()}, ({d.rng.choice([1, 2])},))) > 0).as_type(tensor.int64)"
    return f"autograd.tensor_scatter({past}, {update}, {start})"


@recipe_for("autograd.sinusoidal_positions", "layer.SinusoidalPositions")
def _sinusoidal(d: Draw) -> Text:
    x = _of(d, 2)
    if x is None:
        return None
    if d.rng.random() < 0.5:
        return _made(d, f"layer.SinusoidalPositions({d.rng.choice(['', '0.2'])})", x)
    return f"autograd.sinusoidal_positions({x}, {d.rng.choice(['0', '2'])})"


@recipe_for("autograd.rotary_embedding", "layer.RotaryPositions")
def _rotary(d: Draw) -> Text:
    x = d.any(lambda x: x.rank >= 2 and floating(x) and x.numel and x.shape[-1] % 2 == 0, 12)
    x = x or d.parameter((2, 3, 4))
    interleaved = d.rng.choice(["True", "False"])
    if d.rng.random() < 0.5:
        return _made(d, f"layer.RotaryPositions(interleaved={interleaved})", x)
    at = d.rng.choice(["0", "3", f"from_numpy(whole({d.seed()}, ({size(d, x)[-2]},), 9))"])
    return f"autograd.rotary_embedding({x}, {at}, interleaved={interleaved})"


@recipe_for("layer.MultiHeadAttention")
def _heads(d: Draw) -> Text:
    more = d.rng.choice(["", ", kv_heads=1", ", rotary=True", ", dropout=0.3", ", bias=False"])
    x = d.parameter((2, d.rng.randint(1, 4), d.width()))
    given = [x] if d.rng.random() < 0.5 else [x, d.parameter((2, 3, 5))]
    causal = d.rng.choice([[], ["is_causal=True"]])
    return _made(d, f"layer.MultiHeadAttention(4, 2{more})", *given, *causal)


@recipe_for("layer.TransformerEncoderLayer", "layer.TransformerDecoderLayer")
def _transformer(d: Draw) -> Text:
    how = d.rng.choice(["", ", 0.0, 'GELU'", ", norm_first=True", ", bias=False"])
    x = d.parameter((2, d.rng.randint(1, 3), 4))
    if d.rng.random() < 0.5:
        return _made(d, f"layer.TransformerEncoderLayer(4, 2, 8{how})", x)
    return _made(d, f"layer.TransformerDecoderLayer(4, 2, 8{how})", x, d.parameter((2, 3, 5)))
