"""Writes into parts of tensors are exported as new values of the whole, or refused."""

import numpy as np
import pytest
from onnx_models import real
from singa_rs import sonnx, tensor
from test_sonnx_export import BATCH, check, kinds

X = real(3, 4)


def into(shape, write):
    """A function that writes into zeros, and one that writes into what is not all alike."""

    def zeros(x):
        made = tensor.zeros(shape)
        write(made, x)
        return made

    def others(x):
        made = x.reshape((12,))[:1] + tensor.zeros(shape)
        write(made, x)
        return made

    return zeros, others


def put(key, take=lambda x: x):
    """Writes what is taken of `x` at a key."""

    def write(made, x):
        made[key] = take(x)

    return write


def rows_in_another_shape(made, x):
    made.reshape((2, 6))[:1] = x.reshape((2, 6))[:1]


def turned(made, x):
    made.transpose((1, 0))[1:4, 1:3] = x[:, 1:3]


WRITES = {
    "steps": ((6, 4), put(np.s_[::2])),
    "backwards": ((3, 4), put(np.s_[::-1])),
    "steps of columns": ((3, 9), put(np.s_[:, 1:8:2])),
    "both axes": ((7, 8), put(np.s_[1::2, ::-2])),
    "a vector": ((12,), put(np.s_[::2], lambda x: x.reshape((12,))[:6])),
    "a row": ((3, 4), put(1, lambda x: x[0])),
    "a column": ((4, 3), put(np.s_[1:, 1], lambda x: x[0, :3])),
    "an element": ((3, 4), put((2, 1), lambda x: x[0, 0])),
    "a box": ((5, 6), put(np.s_[1:4, 2:6])),
    "a number": ((3, 4), put(np.s_[:, 1], lambda x: 5.0)),
    "another shape": ((4, 3), rows_in_another_shape),
    "turned": ((4, 5), turned),
    "nothing": ((3, 4), put(np.s_[3:], lambda x: x[:0])),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", WRITES)
def test_parts(name, which):
    check(into(*WRITES[name])[which], [X])


def test_steps_of_a_row_at_a_time():
    def stack(x):
        made = tensor.zeros((3, x.shape[0], 4))
        for t in range(3):
            made[t] = x * t
        return made

    check(stack, [X], BATCH, [[real(1, 4)], [real(9, 4)]])


def test_a_copy_that_is_written_into():
    def cloned(x):
        made = x.clone()
        made[:, 1] = 5.0
        made[0] += x[1]
        return made, x

    check(cloned, [X], BATCH, [[real(7, 4)]])


def test_views_from_before_a_write():
    """They show what their tensor has become, and may be written into themselves."""

    def call(x):
        y = x * 1
        rows, turned = y[:2], y.T
        column = turned[1]
        y += 1
        rows[0] *= 2
        turned[0] -= 1
        row = rows[1]
        row *= 3
        return y, rows, turned, column

    check(call, [X], BATCH, [[real(n, 4)] for n in (2, 7)])


def test_writes_through_another_order_of_axes():
    def call(x):
        y = x * 1
        y.T[1:3] += x.T[:2]
        turned = y.transpose((1, 0))
        turned *= 2
        y.reshape((y.numel,))[...] += 1
        return y

    check(call, [X], BATCH, [[real(n, 4)] for n in (2, 4, 7)])


def test_a_part_at_the_end_of_any_size():
    def late(x):
        made = tensor.zeros((x.shape[0] + 2, 4))
        made[2:] = x
        return made

    assert "Pad" in kinds(check(late, [X], BATCH, [[real(1, 4)]]))


def test_steps_along_an_axis_of_any_size_are_refused():
    def interleave(x):
        made = tensor.zeros((2 * x.shape[0], 4))
        made[::2] = x
        return made

    with pytest.raises(NotImplementedError, match="export: a write in steps along an axis whose"):
        sonnx.model_proto(interleave, [X], dynamic=BATCH)


def test_a_shift_along_an_axis_of_any_size():
    def shifted(x):
        made = tensor.zeros(x.shape)
        made[1:] = x[:-1] * 2
        return made

    check(shifted, [X], BATCH, [[real(rows, 4)] for rows in (1, 2, 7)])
