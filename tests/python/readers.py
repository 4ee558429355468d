"""Objects and functions that steps read numbers from."""

from singa_rs import layer


class Plain:
    kind = 2.0

    def __init__(self, scale=2.0):
        self.scale = scale

    def get(self):
        return self.scale


class Scaled(layer.Layer):
    __slots__ = ("factor",)

    def __init__(self):
        super().__init__()
        self.factor = 2.0

    def forward(self, x):
        return x * self.factor


def by_default(values=None, *, more={"a": 2.0}):  # noqa: B006
    return more["a"]
