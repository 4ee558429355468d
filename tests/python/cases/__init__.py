"""The one table of operation cases, and what is declared absent from it."""

from . import elementwise, losses, movement, normalisation, training, windows
from .base import Case

CASES: list[Case] = [
    *elementwise.table,
    *movement.table,
    *losses.table,
    *windows.table,
    *normalisation.table,
    *training.table,
]
NO_GRADIENT: dict[str, str] = {}
