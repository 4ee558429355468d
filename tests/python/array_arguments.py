"""Arguments as tensors and as arrays, and what calls make of them, to the bit."""

import numpy as np
from singa_rs import device, tensor
from singa_rs.tensor import Tensor

SEEDED = np.random.default_rng(5)
A = np.arange(6, dtype=np.float32).reshape(2, 3)


def filled(value):
    """For a tensor of zeros one of shares of 1, of which all functions give numbers; integers stay
    as they are."""
    if isinstance(value, list):
        return [filled(one) for one in value]
    if not isinstance(value, Tensor) or value.dtype.is_int or value.to_numpy().any():
        return value
    shares = SEEDED.uniform(0.1, 0.9, value.shape)
    return tensor.from_numpy(shares if value.dtype.is_float else shares > 0.5, dtype=value.dtype)


def array_of(value):
    """The same as arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(array_of, value))
    return value.to_numpy() if isinstance(value, Tensor) else value


def bits(made):
    """What a call returns, for comparison to the bit."""
    if isinstance(made, (list, tuple)):
        return [bits(one) for one in made]
    if isinstance(made, Tensor):
        return made.dtype.name, made.shape, made.to_numpy().tobytes()
    return (made.dtype.name, made.tobytes()) if isinstance(made, np.ndarray) else repr(made)


def called(function, *args, **kwargs):
    device.get_default_device().set_seed(3)
    return bits(function(*args, **kwargs))


def is_tensors(value):
    return isinstance(array_of(value), np.ndarray) or (
        isinstance(value, list) and all(map(is_tensors, value))
    )
