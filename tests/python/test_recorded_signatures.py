"""Calls of different forms: which arguments, how many, in which containers, by which names."""

import zlib

import pytest
from recorded import evaluated, replays, same, tensor
from singa_rs import module
from singa_rs.record.trees import leaves
from singa_rs.tensor import Tensor


class Mine(Tensor):
    pass


class Anyhow(module.Module):
    """Returns a different number for each form of a call."""

    def forward(self, x, y=None, *more, k=1.0, **rest):
        parts = list(leaves((x, y, more, k, rest)))
        total = sum((p * float(i + 2) for i, p in enumerate(parts) if isinstance(p, Tensor)), 0.5)
        known = [type(p).__name__ if isinstance(p, Tensor) else repr(p) for p in parts]
        return total + float(zlib.crc32(repr((known, type(x), type(y))).encode()) % 1000)


def as_mine(x):
    made = Mine(x.shape)
    made.copy_from(x)
    return made


def named(x):
    x = x.clone()
    x.name = "x"
    return x


FORMS = {
    "one": lambda x, y: ((x,), {}),
    "two": lambda x, y: ((x, y), {}),
    "none": lambda x, y: ((x, None), {}),
    "number": lambda x, y: ((x, 2.0), {}),
    "name": lambda x, y: ((x,), {"k": 2.0}),
    "another name": lambda x, y: ((x,), {"j": 2.0}),
    "second by name": lambda x, y: ((x,), {"y": y}),
    "list": lambda x, y: (([x],), {}),
    "tuple": lambda x, y: (((x,),), {}),
    "list of two": lambda x, y: (([x, y],), {}),
    "list and one": lambda x, y: (([x], y), {}),
    "dictionary": lambda x, y: (({"a": x},), {}),
    "one and a dictionary": lambda x, y: ((x, {"a": 2.0}), {}),
    "one and another dictionary": lambda x, y: ((x, {"a": 3.0}), {}),
    "three": lambda x, y: ((x, y, x), {}),
    "a class of the program's": lambda x, y: ((as_mine(x),), {}),
    "no gradient": lambda x, y: ((x.detach(),), {}),
    "a tensor with a name": lambda x, y: ((named(x),), {}),
}


@pytest.mark.parametrize("first", FORMS)
def test_calls_of_another_form(first):
    """One form until it takes the fast path, then another, then the first again."""
    for then in FORMS:
        recorded, eager = evaluated(Anyhow)
        for form in [first] * 4 + [then] * 4 + [first] * 2:
            args, kwargs = FORMS[form](tensor(2, 3), tensor(2, 3))
            same(recorded(*args, **kwargs), eager(*args, **kwargs))
        assert replays(recorded, "forward") >= 6
