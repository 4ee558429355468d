"""Containers with attributes, and structures that are deep."""

from types import SimpleNamespace

import pytest
from test_recorded_objects import scale_of, set_scale
from test_recorded_reads import scaled


def _chain(depth):
    made = None
    for _ in range(depth):
        made = SimpleNamespace(rest=made, scale=1.0)
    return made


def _nested(depth):
    made = [1.0]
    for _ in range(depth):
        made = [made]
    return made


def _last(one):
    while one.rest is not None:
        one = one.rest
    return one


def _innermost(one):
    while isinstance(one[0], list):
        one = one[0]
    return one


def test_long_chains_of_objects():
    def reads(o):
        return _last(o).scale

    scaled(reads, lambda o, i: set_scale(_last(o), i), lambda: _chain(400))


def test_lists_deep_in_each_other():
    def change(o, i):
        _innermost(o)[0] = scale_of(i)

    scaled(lambda o: _innermost(o)[0], change, lambda: _nested(700))


class Named(bytearray):
    """A container with attributes."""


class Known(set):
    """One whose items have no places."""


@pytest.mark.parametrize("kind", [Named, Known])
def test_attributes_of_containers(kind):
    def make():
        made = kind()
        made.scale = 1.0
        return made

    scaled(lambda o: o.scale, set_scale, make)
