"""onnxruntime's products of quantised matrices, whose results are floats, and operators of its own
that are ONNX's in another form."""

import numpy as np
import pytest
from microsoft_models import agrees, theirs
from onnx_models import real, replays
from singa_rs import sonnx

RNG = np.random.default_rng(0)
ROW = real(5)


def whole(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, shape, kind, endpoint=True)


def scale(*shape):
    return np.asarray(RNG.random(shape) / 50 + 0.01, np.float32)


@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("columns", [(), (5,)])
def test_products_to_floats(kinds, columns):
    # Halves, since onnxruntime may cut sums of two products off.
    a, b = whole(2, 4, 6, kind=kinds[0]), whole(6, 5, kind=kinds[1]) // 2
    zeros = np.array(3, kinds[0]), np.full(columns, 5, kinds[1])
    factors, op, near = (scale(), scale(*columns)), "MatMulIntegerToFloat", {"atol": 1e-3}
    agrees(op, a, b, *factors, *zeros, ROW, **near)
    agrees(op, a, b, *factors, **near)
    agrees(op, a, b, *factors, None, zeros[1], ROW, **near)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("columns", [(), (5,)])
def test_products_that_quantise(kind, columns):
    a, b = real(2, 4, 6), whole(6, 5, kind=kind) // 2
    zero, op = np.full(columns, 5, kind), "DynamicQuantizeMatMul"
    agrees(op, a, b, scale(*columns), zero, ROW, atol=1e-3)
    agrees(op, a, b, scale(*columns), atol=1e-3)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention(is_causal):
    x, w, bias = whole(2, 5, 12), whole(12, 36, kind=np.int8) // 2, real(36)
    zeros = np.uint8(120), np.int8(4)
    factors, settings = (scale(), scale()), {"num_heads": 3, "unidirectional": is_causal}
    zeros = [np.asarray(x) for x in zeros]
    mask, past = np.array([3, 5], np.int32), real(2, 2, 3, 4, 4)
    settings |= {"rtol": 1e-4, "atol": 1e-4}
    agrees("QAttention", x, w, bias, *factors, mask, *zeros, **settings)
    agrees("QAttention", x, w, bias, *factors, None, *zeros, past, outputs=2, **settings)
    agrees("QAttention", x, w, bias, scale(), scale(36), None, *zeros[:1], **settings)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("k", "block"), [(64, 32), (40, 16)])
def test_blocks_of_few_bits(bits, k, block):
    n, blocks = 6, -(-k // block)
    a, b = real(2, 3, k), whole(n, blocks, block * bits // 8)
    packed = whole(n, -(-blocks * bits // 8))
    factors, sizes = scale(n, blocks), {"K": k, "N": n, "block_size": block, "bits": bits}
    agrees("MatMulNBits", a, b, factors, atol=2e-4, **sizes)
    agrees("MatMulNBits", a, b, factors, packed, None, real(n), atol=2e-4, **sizes)
    if bits == 4:
        agrees("MatMulNBits", a, b, factors, scale(n, blocks), atol=2e-4, **sizes)
        half = [x.astype(np.float16) for x in (a, factors)]
        near = {"rtol": 2e-2, "atol": 2e-2}
        agrees("MatMulNBits", half[0], b, half[1], packed, **sizes, **near)


def test_what_is_refused():
    a, b, factors = real(3, 16), whole(4, 1, 8), scale(4, 1)
    sizes = {"K": 16, "N": 4, "block_size": 16}
    for match, xs, more in (
        ("MatMulNBits: got weight_prepacked 1", (a, b, factors), {"weight_prepacked": 1}),
        ("MatMulNBits: got bits 3", (a, b, factors), {"bits": 3}),
        ("MatMulNBits: got g_idx", (a, b, factors, None, np.zeros(16, np.int32)), {}),
    ):
        with pytest.raises(NotImplementedError, match=match):
            proto = theirs("MatMulNBits", xs, **sizes, **more)
            sonnx.prepare(proto).run([x for x in xs if x is not None])
    xs = whole(3, 4), whole(4, 5), scale(4), scale()
    with pytest.raises(NotImplementedError, match="MatMulIntegerToFloat: got scales"):
        sonnx.prepare(theirs("MatMulIntegerToFloat", xs)).run(xs)


def test_operators_of_another_form():
    x = real(3, 4, 5)
    for upper in (0, 1):
        agrees("Trilu", x, np.array(1), upper=upper)
        agrees("Trilu", x, upper=upper)
    for axis in (0, 2, -1, -4):
        agrees("ExpandDims", x, np.array(axis, np.int32))
    agrees("Inverse", real(2, 4, 4) + 3 * np.eye(4, dtype=np.float32))
    pads = np.array([1, 0, 2, 0, 1, 1])
    agrees("Pad", x, pads)
    agrees("Pad", x, pads[None], np.array([2.5], np.float32))
    for mode in ("edge", "reflect"):
        agrees("Pad", x, pads, mode=mode)
    agrees("Range", np.array(2), np.array(9))
    agrees("Range", *(np.array([x], np.float32) for x in (1.0, 4.0, 0.7)))
    agrees("Unique", np.array([2, 1, 1, 3, 4, 3], np.float32), outputs=3)


def test_replays():
    a, b = real(4, 16), whole(6, 1, 8)
    sizes = {"K": 16, "N": 6, "block_size": 16}
    given = a, b, scale(6, 1)
    replays(theirs("MatMulNBits", given, **sizes), *given)
    given = a, whole(16, 5), np.array([0.1], np.float32)
    replays(theirs("DynamicQuantizeMatMul", given), *given)
