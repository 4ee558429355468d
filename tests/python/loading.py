"""Data sets that tests of loaders read. Worker processes import them from here."""

import os
import signal
import time

import numpy as np
from singa_rs import data


class Numbers:
    """Samples (array, number)."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if not 0 <= i < self.count:
            raise IndexError(i)
        return np.full((2, 3), i, np.float32), i


class Drawn(Numbers):
    """Samples that are random."""

    def __getitem__(self, i):
        return i, data.rng().random(3)


class Slow(Numbers):
    """The later a sample, the sooner it is made."""

    def __getitem__(self, i):
        time.sleep(0.002 * (self.count - i) / self.count)
        return super().__getitem__(i)


class Processes(Numbers):
    """Samples that tell which process made them."""

    def __getitem__(self, i):
        return i, os.getpid()


class Asleep(Processes):
    """From a sample on, none is ever made."""

    def __getitem__(self, i):
        if i >= self.count // 2:
            time.sleep(1000)
        return super().__getitem__(i)


class Strange(Exception):
    """An error that pickle cannot make again."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Failing(Numbers):
    """One sample raises an error."""

    def __init__(self, count, at, error):
        super().__init__(count)
        self.at, self.error = at, error

    def __getitem__(self, i):
        if i == self.at:
            self.fail()
        return super().__getitem__(i)

    def fail(self):
        raise self.error


class Odd(Failing):
    """One sample raises an error that pickle cannot make again."""

    def fail(self):
        raise Strange("odd", "strange")


class Killed(Failing):
    """The process that makes one sample is killed."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Failing):
    """The process that makes one sample ends."""

    def fail(self):
        os._exit(3)


class Refused(Numbers):
    """A data set that cannot be made again from its copy."""

    def __setstate__(self, state):
        raise ValueError("refused to be copied")


class Again:
    """An iterable that can be read again and again."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def jittered(batch):
    """A transform that draws."""
    x, y = batch
    return x + data.rng().random(x.shape), y


def unsendable(batch):
    """A transform whose result pickle cannot copy."""
    return lambda: batch
