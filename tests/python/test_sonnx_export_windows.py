"""Attention of any number of axes, where the greatest elements of windows are, and transposed
convolutions of any length are exported."""

import pytest
from onnx_models import needs, real
from singa_rs import autograd, layer
from test_sonnx_export import BATCH, check

BY_RANK = [(5, 6), (2, 5, 6), (2, 3, 2, 5, 6), (2, 1, 3, 2, 5, 6)]


def attended(q, *mask):
    return autograd.scaled_dot_product_attention(q, q, q, *mask)


@needs(23)
@pytest.mark.parametrize("shape", BY_RANK, ids=len)
def test_attention(shape):
    front = shape[:-2]
    check(attended, [real(*shape)])
    for mask in ((5, 5), (1, 5), (*front, 5, 5), (*(1 for _ in front), 5, 1)):
        check(attended, [real(*shape), real(*mask)])


@needs(23)
@pytest.mark.parametrize("shape", BY_RANK[1:], ids=len)
def test_attention_of_any_batch_and_length(shape):
    dynamic = {"x": {0: "batch", len(shape) - 2: "length"}}
    others = [[real(n, *shape[1:-2], rows, 6)] for n, rows in ((1, 5), (4, 3), (3, 7))]
    check(attended, [real(*shape)], dynamic, others)


@needs(23)
def test_attention_of_other_keys_with_a_mask_of_any_batch():
    def cross(q, k, mask):
        return autograd.scaled_dot_product_attention(q, k, k, mask)

    def given(n):
        return [real(2, n, 2, 5, 6), real(2, n, 2, 7, 6, seed=1), real(n, 1, 5, 7)]

    dynamic = {"x0": {1: "n"}, "x1": {1: "n"}, "x2": {0: "n"}}
    check(cross, given(3), dynamic, [given(1), given(4)])


def pooled(*geometry, **options):
    def call(x):
        return autograd.max_pool(x, *geometry, return_indices=True, **options)

    return call


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (pooled(3, 2), (3, 2, 9)),
        (pooled((2, 3), 2, 1), (3, 2, 7, 8)),
        (pooled(2, 1, 0, 2), (2, 3, 7, 7)),
        (pooled(2, ceil_mode=True), (2, 3, 5, 7)),
        (pooled((2, 2, 3), (1, 2, 1)), (2, 3, 4, 4, 5)),
    ],
)
def test_where_the_greatest_elements_are(function, shape):
    check(function, [real(*shape)], BATCH, [[real(n, *shape[1:])] for n in (1, 5)])


def test_greatest_elements_put_back():
    def call(x):
        return autograd.max_unpool(*autograd.max_pool(x, 2, return_indices=True), 2)

    check(call, [real(3, 2, 4, 6)], BATCH, [[real(5, 2, 4, 6)]])


def test_where_the_greatest_of_images_of_any_size_are():
    def call(x):
        return autograd.max_pool(x, x.shape[2:], return_indices=True)

    check(call, [real(3, 2, 4, 6)], {"x": [2, 3]}, [[real(3, 2, 7, 5)]])


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2, "padding": 1},
        {"stride": 3, "output_padding": 1},
        {"stride": 2, "dilation": 2},
        {},
    ],
)
def test_transposed_convolutions_of_any_length(options):
    others = [[real(n, 4, size)] for n, size in ((1, 4), (3, 13))]
    dynamic = {"x": {0: "batch", 2: "length"}}
    check(layer.ConvTranspose1d(4, 3, **options), [real(2, 4, 9)], dynamic, others)


def test_columns_added_up_in_images():
    fold = layer.Fold((6, 5), (2, 3), stride=2, padding=1)
    check(fold, [real(2, 18, 12)], BATCH, [[real(5, 18, 12)]])


def test_windows_of_batches_of_any_size():
    def call(x):
        return autograd.fold(autograd.unfold(x, 2), (5, 5), 2)

    check(call, [real(2, 3, 5, 5)], BATCH, [[real(4, 3, 5, 5)]])
