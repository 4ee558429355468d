"""Small modules for tests of names."""

import numpy as np
from singa_rs import layer, module

IMAGE = np.ones((2, 3, 6, 6), np.float32)
ROW = np.ones((2, 3), np.float32)


def names(one):
    return list(one.get_params())


class Block(layer.Layer):
    def __init__(self, width=3):
        super().__init__()
        self.conv = layer.Conv2d(width, 3, padding=1, bias=False)
        self.norm = layer.BatchNorm2d()

    def forward(self, x):
        return self.norm(self.conv(x))


def chain(build, x=IMAGE):
    """A module that computes with what `build(self)` returns; called once, in evaluation mode."""

    class Chain(module.Module):
        def __init__(self):
            super().__init__()
            self.compute = build(self)

        def forward(self, x):
            return self.compute(x)

    made = Chain()
    made.eval()
    made(x)
    return made
