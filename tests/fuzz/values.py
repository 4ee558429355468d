"""Texts of values: arrays, tensors made in a step, scalars, shapes, keys of indexing."""

from __future__ import annotations

from random import Random

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "int8", "uint8", "bool")
FLOATS = DTYPES[:4]
#: Scalars as people write them next to an operator.
SCALARS = (
    "2",
    "0.5",
    "-1",
    "1.5",
    "3",
    "0.1",
    "-0.25",
    "1",
    "0",
    "np.float32(0.5)",
    "True",
    "1e-3",
)
WHOLE = ("int8", "int32", "uint8")
HALVES = ("float16", "bfloat16")


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as Python writes it."""
    return repr(tuple(shape))


def constant(rng: Random, shape: tuple[int, ...], seed: int) -> str:
    """A constant of a shape, made in the step."""
    text = shape_text(shape)
    size = 1
    for extent in shape:
        size *= extent
    kinds = [
        f"tensor.ones({text})",
        f"tensor.zeros({text})",
        f"tensor.full({text}, {rng.choice(['0.5', '2', '-1.5', '0.1'])})",
        f'tensor.full({text}, 0.5, dtype="{rng.choice(HALVES)}").as_type("float32")',
        f'tensor.full({text}, 3, dtype="{rng.choice(WHOLE)}").as_type("float32")',
        f'tensor.ones({text}, dtype="float64").as_type(DTYPE)',
        f'tensor.arange({size}, dtype="float32").reshape({text}) * {round(1 / max(size, 1), 4)}',
        f"tensor.constant(draw({seed}, {text}))",
        f"from_numpy(draw({seed}, {text}))",
        f"draw({seed}, {text})",
        f"held(draw({seed}, {text}))",
        f"np.full({text}, 0.5, np.float32)",
        f"Tensor(data=np.ones({text}, np.float32))",
        f"tensor.random({text})",
        f'from_numpy(whole({seed}, {text}, 4)).as_type("float32")',
    ]
    if len(shape) == 2:
        kinds += [f"from_numpy(np.eye({shape[0]}, {shape[1]}, dtype=np.float32))"]
        kinds += [f"from_numpy(np.tri({shape[0]}, {shape[1]}, dtype=np.float32))"]
        kinds += [f"tensor.ones(({shape[0]}, 1)) @ tensor.ones((1, {shape[1]}))"]
    return rng.choice(kinds)


def broadcastable(rng: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    cut = rng.choice([0, 0, 0, 1, 2, len(shape)])
    return tuple(1 if rng.random() < 0.2 else n for n in shape[cut:])


def key(rng: Random, shape: tuple[int, ...], basic: bool = False) -> str:
    """A key that indexes a tensor of a shape."""
    items = []
    for extent in shape:
        what = rng.random()
        if what < 0.3:
            items.append(":")
        elif what < 0.5:
            low = rng.randint(0, max(extent - 1, 0))
            items.append(f"{low}:{rng.randint(low + 1, extent + 1)}")
        elif what < 0.6:
            items.append(rng.choice(["::2", "::-1", "1:", ":-1"]))
        elif what < 0.8 and extent:
            items.append(str(rng.randint(-extent, extent - 1)))
        elif what < 0.86:
            items.append("None")
            items.append(":")
        elif what < 0.9 and not basic and extent:
            items.append(repr([rng.randrange(extent) for _ in range(rng.randint(1, 3))]))
            basic = True
        else:
            break
    if len(items) < len(shape) and rng.random() < 0.3:
        items.append("...")
    return ", ".join(items) or "..."


def factorings(rng: Random, size: int) -> tuple[int, ...]:
    """Extents whose product is `size`."""
    made: list[int] = []
    while size > 1 and len(made) < 3:
        divisors = [d for d in range(2, min(size, 64) + 1) if size % d == 0]
        if not divisors:
            break
        chosen = rng.choice(divisors)
        made.append(chosen)
        size //= chosen
    made.append(size)
    rng.shuffle(made)
    return tuple(made)
