"""Writes at lists and tensors of indices, and where a mask holds, are exported."""

import numpy as np
import pytest
from onnx_models import real
from singa_rs import autograd, sonnx, tensor
from singa_rs.errors import GraphError
from test_sonnx_export import BATCH, check

X = real(4, 5)
INDICES = np.array([0, 2, 0], np.int32)
LAST = np.arange(5.0, dtype=np.float32)


def written(write):
    """A function that writes into a copy."""

    def call(x, *others):
        made = x * 1
        write(made, x, *others)
        return made, x

    return call


def rows(y, x):
    y[[0, 2]] = 5.0
    y[-1] = np.ones(5)


def rows_of_a_tensor(y, x):
    y[[0, 2]] = x[[1, 3]] * 2


def rows_of_an_array(y, x):
    y[[0, 2]] = np.arange(10.0).reshape(2, 5)


def increments(y, x):
    y[[0, 2]] += 3
    y[[1, 3]] -= x[[0, 0]]
    y[[0, 3]] *= 2


def columns(y, x):
    y[:, [0, 2]] = 5.0
    y[:, [1]] += x[:, 3:4]


def pairs(y, x):
    y[[0, 2], [1, 1]] = 5.0


def part_of_a_view(y, x):
    y[1][[0, 2]] = 3
    y.T[[3]] = 2


def with_a_tensor(y, x):
    y[tensor.from_numpy(np.array([1, 2]))] = LAST


def a_mask_of_elements(y, x):
    y[x > 0] = 5.0
    y[x < -1] = x.max()


def a_mask_of_rows(y, x):
    y[x[:, 0] > 0] = 9.0


def nothing(y, x):
    y[[]] = 1.0


def methods(y, x):
    y.index_put_([tensor.from_numpy(np.array([1, 2]))], 3.0)
    y.index_fill_(0, tensor.from_numpy(np.array([0])), 2.0)
    y.scatter_(1, tensor.from_numpy(np.zeros((4, 1), np.int64)), 7.0)
    y.masked_fill_(x < 0, 2.0)


ALL = [rows, rows_of_a_tensor, rows_of_an_array, increments, columns, pairs, part_of_a_view]
ALL += [with_a_tensor, a_mask_of_elements, a_mask_of_rows, nothing, methods]


@pytest.mark.parametrize("write", ALL, ids=lambda one: one.__name__)
def test_writes(write):
    check(written(write), [X], BATCH, [[real(n, 5)] for n in (5, 9)])


@pytest.mark.parametrize("mask", [[True, False, True, False], np.array([True, False, True, False])])
def test_static_masks_of_rows(mask):
    def write(y, x):
        y[mask] = x[:2]

    check(written(write), [X])


def at_rows(y, x, i):
    y[i] = 5.0
    y[i] += 1.0


def at_columns(y, x, i):
    y[:, i] = 5.0


def at_pairs(y, x, i):
    y[i, i] = 2.0


@pytest.mark.parametrize("write", [at_rows, at_columns, at_pairs], ids=lambda one: one.__name__)
def test_indices_that_are_given(write):
    dynamic = {"x0": {0: "rows"}, "x1": {0: "count"}}
    others = [[real(7, 5), np.array([1, 3], np.int32)], [real(5, 5), np.array([3, 0, -1, 2, 1])]]
    others = [[x, i.astype(np.int32)] for x, i in others]
    check(written(write), [X, INDICES], dynamic, others)


def test_bools_and_integers():
    def call(x):
        found, whole = x > 0, autograd.cast(x * 3, "int32")
        found[[0, 1]] = True
        found[x > 1] = False
        whole[[1]] = 3
        return found, whole

    check(call, [X], BATCH, [[real(6, 5)]])


def test_arrays_that_become_tensors():
    def call(x):
        made, other = tensor.Tensor((4, 5)), tensor.from_numpy(np.eye(4, 5, dtype=np.float32))
        made.copy_from_numpy(np.ones((4, 5), np.float32))
        part = tensor.Tensor((4, 5))
        part.copy_from_numpy(np.ones((2, 5), np.float32), 5)
        made[0] = x[1]
        other[[1]] = x[2]
        return made + x, other, part

    check(call, [X])


def test_an_array_in_a_tensor_that_has_a_value_is_refused():
    def call(x):
        made = x * 1
        made.copy_from_numpy(np.ones((4, 5), np.float32))
        return made + x

    with pytest.raises(NotImplementedError, match="export: copy_from_numpy: writes an array"):
        sonnx.model_proto(call, [X])


def test_elements_where_a_mask_holds_are_refused_by_name():
    def write(y, x):
        y[x > 0] += 1

    with pytest.raises(GraphError, match="index: got a mask, on which the size depends"):
        sonnx.model_proto(written(write), [X])
