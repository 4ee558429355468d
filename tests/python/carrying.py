"""Models whose steps read tensors in attributes and replace them."""

import collections

import numpy as np
from recorded import Net
from singa_rs import autograd, layer
from singa_rs.tensor import Tensor, from_numpy

ROWS, WIDTH = 4, 5


def zeros(*shape):
    return Tensor(shape or (ROWS, WIDTH))


def ones():
    return from_numpy(np.ones((ROWS, WIDTH), np.float32))


class Carrying(Net):
    """Mixes a state into what its first layer makes."""

    def __init__(self):
        super().__init__()
        self.h = zeros()

    def forward(self, x):
        return self.fc2(self.mixed(self.fc1(x)))

    def mixed(self, x):
        self.h = autograd.tanh(x + self.h).detach()
        return x * self.h

    def between(self, i):
        """What the program does after a step."""


class Lstm(Carrying):
    def __init__(self):
        super().__init__()
        self.s = None

    def mixed(self, x):
        h, c = self.s or (zeros(), zeros())
        c = c * 0.5 + autograd.tanh(x)
        h = autograd.sigmoid(x + h) * c
        self.s = (h.detach(), c.detach())
        return h


class InDictionary(Carrying):
    def __init__(self):
        super().__init__()
        self.kept = {"h": zeros()}

    def mixed(self, x):
        self.kept["h"] = (x * 0.1 + self.kept["h"]).detach()
        return x + self.kept["h"]


class Average(Carrying):
    def mixed(self, x):
        self.h = 0.9 * self.h + 0.1 * x.detach().mean(0)
        return x - self.h


class Queue(Carrying):
    def __init__(self):
        super().__init__()
        self.queue = zeros(3 * ROWS, WIDTH)

    def mixed(self, x):
        y = x + self.queue.mean(0)
        self.queue = autograd.cat((self.queue[ROWS:], x.detach()), 0)
        return y


class InObject(Carrying):
    def __init__(self):
        super().__init__()
        self.kept = type("Kept", (), {})()
        self.kept.h = zeros()

    def mixed(self, x):
        self.kept.h = (x * 0.1 + self.kept.h).detach()
        return x + self.kept.h


class InLayer(Carrying):
    def __init__(self):
        super().__init__()

        class Cell(layer.Layer):
            def forward(cell, x):
                cell.h = (x * 0.5 + getattr(cell, "h", 0.0)).detach()
                return x + cell.h

        self.cell = Cell()

    def mixed(self, x):
        return self.cell(x)


class WrittenFirst(Carrying):
    def mixed(self, x):
        self.h *= 0.5
        self.h[0] = self.h[1] + 1
        return super().mixed(x)


class TwoPlaces(Carrying):
    def __init__(self):
        super().__init__()
        self.last = self.h

    def mixed(self, x):
        y = x * self.h - self.last * 0.5
        self.h = self.last = autograd.tanh(y).detach()
        return y

    def between(self, i):
        if i % 5 == 4:
            self.h = ones()
        if i % 5 == 2:
            self.last = ones()


class SetByTheProgram(Carrying):
    def between(self, i):
        if i % 4 == 3:
            self.h = ones()


class WrittenByTheProgram(Carrying):
    def between(self, i):
        if i % 4 == 3:
            self.h *= 0.5


class SetToNone(Carrying):
    def mixed(self, x):
        self.h = zeros() if self.h is None else self.h
        return super().mixed(x)

    def between(self, i):
        if i % 6 == 5:
            self.h = None


class Strided(Carrying):
    def mixed(self, x):
        y = super().mixed(x)
        self.h = autograd.cat((self.h, self.h), 1)[:, ::2]
        return y


class Sometimes(Carrying):
    def __init__(self):
        super().__init__()
        self.n = 0

    def mixed(self, x):
        self.n += 1
        y = x + self.h
        if self.n % 3 == 0:
            self.h = y.detach()
        return y


class LastLoss(Carrying):
    def __init__(self):
        super().__init__()
        self.last = zeros(1)

    def forward(self, x):
        return self.fc2(self.fc1(x))

    def train_one_batch(self, x, y):
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss * (1 + self.last))
        self.last = loss.detach().reshape((1,))
        return out, loss


class Delayed(Carrying):
    def __init__(self):
        super().__init__()
        self.before = zeros()

    def mixed(self, x):
        y = autograd.tanh(x + self.h - self.before)
        self.before, self.h = self.h, y.detach()
        return y

    def between(self, i):
        if i % 6 == 5:
            self.h = ones()


class InTurn(Carrying):
    def __init__(self):
        super().__init__()
        self.other = ones()

    def mixed(self, x):
        y = x + self.h
        self.h, self.other = self.other, self.h
        return y


class Latest(Carrying):
    def __init__(self):
        super().__init__()
        self.seen = collections.deque([zeros(), ones(), zeros()], maxlen=3)

    def mixed(self, x):
        y = x * self.seen[0] + self.seen[2]
        self.seen.append(y.detach())
        return y


class Back(Carrying):
    """Takes back the first state now and then."""

    def __init__(self):
        super().__init__()
        self.first, self.n = ones(), 0

    def mixed(self, x):
        y = super().mixed(x)
        self.n += 1
        if self.n % 4 == 0:
            self.h = self.first
        return y

    def between(self, i):
        if i == 13:
            self.first = zeros()


class LstmSetByTheProgram(Lstm):
    def between(self, i):
        if i % 5 == 4:
            self.s = (ones(), zeros())


class Nested(Carrying):
    def __init__(self):
        super().__init__()
        self.s = [(zeros(), ones()), (ones(), zeros())]

    def mixed(self, x):
        made = []
        for h, c in self.s:
            c = (c * 0.5 + x).detach()
            x = autograd.tanh(x + h) * c
            made.append((x.detach(), c))
        self.s = made
        return x

    def between(self, i):
        if i % 5 == 4:
            self.s = [(ones(), zeros()), (zeros(), ones())]


class BesideAnother(Carrying):
    """A tuple that holds a tensor that stays, too."""

    def __init__(self):
        super().__init__()
        self.weight = ones()
        self.s = (self.h, self.weight)

    def mixed(self, x):
        h, weight = self.s
        y = x + h * weight
        self.s = (autograd.tanh(y).detach(), self.weight)
        return y

    def between(self, i):
        if i == 9:
            self.weight = ones() * 2


class Marked(Carrying):
    """Reads an attribute that the program gives to one state alone."""

    def mixed(self, x):
        return super().mixed(x) * getattr(self.h, "factor", 1.0)

    def between(self, i):
        if i == 7:
            self.h.factor = 3.0
        if i == 10:
            self.h.requires_grad = True
        if i == 12:
            self.h.data = ones()


class InNewDictionary(Carrying):
    def __init__(self):
        super().__init__()
        self.s = {"h": zeros(), "factor": 0.5}

    def mixed(self, x):
        h = (x + self.s["h"] * self.s["factor"]).detach()
        self.s = {"h": h, "factor": 0.5}
        return x + h

    def between(self, i):
        if i % 6 == 5:
            self.s["h"] = zeros()
        if i == 9:
            self.s["factor"] = 0.25


class Shifted(Carrying):
    """A queue in a tuple."""

    def __init__(self):
        super().__init__()
        self.queue = (zeros(), ones(), zeros())

    def mixed(self, x):
        y = x + self.queue[0] * self.queue[2]
        self.queue = (self.queue[1], self.queue[2], y.detach())
        return y


KINDS = [
    Carrying, Lstm, InDictionary, Average, Queue, InObject, InLayer, WrittenFirst, TwoPlaces,
    SetByTheProgram, WrittenByTheProgram, SetToNone, Strided, Sometimes, LastLoss,
    Delayed, InTurn, Latest, Back, LstmSetByTheProgram, Nested,
    Marked, InNewDictionary, Shifted,
]  # fmt: skip
