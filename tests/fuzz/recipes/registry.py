"""The table of recipes for functions whose arguments must fit each other in ways that their names
do not tell, and helpers that several recipes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import values

if TYPE_CHECKING:
    from ..draw import Draw

Text = str | None
#: The text of a call; "!" marks a statement without a new result. None if nothing fits.
RECIPES: dict[str, Callable[[Draw], Text]] = {}


def recipe_for(*names: str) -> Callable[[Callable[[Draw], Text]], Callable[[Draw], Text]]:
    def note(recipe: Callable[[Draw], Text]) -> Callable[[Draw], Text]:
        RECIPES.update(dict.fromkeys(names, recipe))
        return recipe

    return note


def register(names: tuple[str, ...], form: str, text: Callable[..., Text], **more: Any) -> None:
    """Registers a recipe that fills in a form."""
    RECIPES.update({name: lambda d: text(d, form, **more) for name in names})


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


def size(d: Draw, text: str) -> tuple[int, ...]:
    return d.value(text).shape


def beside(d: Draw, x: str) -> str:
    from . import PARAMETERS

    return PARAMETERS["b"](d, x)


def bools(d: Draw) -> str:
    """A bool tensor."""
    found = d.any(lambda x: x.dtype.name == "bool", 3)
    return (
        found or f"({d.any()} {d.rng.choice(['<', '>', '>=', '!='])} {d.rng.choice(['0', '0.5'])})"
    )


def integers(d: Draw) -> str:
    """Small integers."""
    return f"(autograd.cast({bools(d)}, 'int32') * {d.rng.randint(1, 5)})"


def alike(d: Draw, x: str) -> str:
    shape = size(d, x)
    fits = [n for n in d.pool if size(d, n) == shape]
    if fits and d.rng.random() < 0.6:
        return f"{d.rng.choice(fits)}{d.rng.choice(['', ' * 0.5', ' + 1'])}"
    return values.constant(d.rng, shape, d.seed())


def rows(d: Draw, form: str) -> Text:
    x = matrix(d)
    if x is None or x not in d.pool:
        return None
    return form.format(x=x, same=alike(d, x), shape=size(d, x), seed=d.seed())
