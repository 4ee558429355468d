"""onnxruntime's attention and rotary positions, and a file that its optimizer has written."""

import numpy as np
import onnx
import onnxruntime
import pytest
from microsoft_models import agrees, theirs
from onnx import helper
from onnx_models import model, real, replays, there
from singa_rs import sonnx

B, S, D, N = 2, 5, 12, 3
X, W, BIAS = real(B, S, D), real(D, 3 * D) / 4, real(3 * D)
PAST = real(2, B, N, 3, D // N)

#: Inputs of rotary positions.
ROTARY = X, np.array([0]), real(9, 2), real(9, 2)


def ints(*values):
    return np.array(values, np.int32)


def chance(*shape):
    mask = (np.random.default_rng(list(shape)).random(shape) < 0.6).astype(np.int32)
    mask[..., 0] = 1
    return mask


MASKS = [None, ints(3, 5), ints(3, 5, 1, 0), chance(B, S), chance(B, S, S)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention(mask, is_causal):
    settings = {"num_heads": N, "unidirectional": is_causal}
    agrees("Attention", X, W, BIAS, mask, **settings)
    agrees("Attention", X, W, None, mask, outputs=2, scale=0.3, **settings)
    agrees("Attention", X, W, BIAS, mask, None, real(B, N, S, S), **settings)
    agrees("Attention", X, W, BIAS, mask, None, real(1, 1, S, S), **settings)
    agrees("Attention", X, W, BIAS, mask, mask_filter_value=-2.0, **settings)


def test_masks_of_no_key():
    for mask in (ints(0, 5), np.zeros((B, S), np.int32)):
        for is_causal in (0, 1):
            agrees("Attention", X, W, BIAS, mask, num_heads=N, unidirectional=is_causal)


@pytest.mark.parametrize("mask", [None, ints(4, 8), chance(B, S + 3), chance(B, S, S + 3)])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_after_a_past(mask, is_causal):
    settings = {"num_heads": N, "unidirectional": is_causal, "outputs": 2}
    agrees("Attention", X, W, BIAS, mask, PAST, **settings)
    agrees("Attention", X[:, :1], W, BIAS, None, PAST, **settings)


def test_values_of_another_width():
    w, b = real(D, 6 + 6 + 15), real(27)
    agrees("Attention", X, w, b, num_heads=N, qkv_hidden_sizes=[6, 6, 15])


def test_what_attention_refuses():
    def refused(match, *xs, op="Attention", **settings):
        with pytest.raises(NotImplementedError, match=match):
            sonnx.prepare(theirs(op, xs, num_heads=N, **settings)).run(xs)

    given, rotary = (X, W, BIAS), {"op": "RotaryEmbedding"}
    refused("Attention: got do_rotary 1, want none", *given, do_rotary=1)
    refused("got past_present_share_buffer 1", *given, past_present_share_buffer=1)
    refused("want at most 3 axes", *given, np.ones((B, 1, 8, 8), np.int32))
    refused("want ends, or ends and starts", *given, np.ones(3 * B + 2, np.int32))
    refused("got qk as an output, want none", X, X, X, op="MultiHeadAttention", outputs=4)
    refused("RotaryEmbedding: got is_packed_batching 1", *ROTARY, is_packed_batching=1, **rotary)
    refused("RotaryEmbedding: got scale 2.0", *ROTARY, scale=2.0, **rotary)
    refused("got a packed query", real(B, S, N, 3, 4), op="MultiHeadAttention")


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_of_three(is_causal):
    q, k, v = real(B, S, D), real(B, S, D, seed=1), real(B, S, 15)
    bias, settings = real(2 * D + 15), {"num_heads": N, "unidirectional": is_causal}
    op = "MultiHeadAttention"
    agrees(op, q, k, v, **settings)
    agrees(op, q, k, v, bias, scale=0.4, **settings)
    agrees(op, q, k, v, bias, None, real(B, 1, S, S), **settings)
    for mask in (ints(3, 5), chance(B, S), chance(B, S, S)):
        agrees(op, q, k, v, bias, mask, **settings)
        agrees(op, q, k, v, None, mask, real(1, N, S, S), outputs=3, **settings)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_of_three_after_a_past(is_causal):
    q, k, v, past = X, real(B, S, D, seed=1), real(B, S, D, seed=2), [PAST[0], PAST[1]]
    settings = {"num_heads": N, "unidirectional": is_causal, "outputs": 3}
    agrees("MultiHeadAttention", q, k, v, BIAS, None, None, *past, **settings)
    mask = chance(B, S + 3)
    agrees("MultiHeadAttention", q, k, v, None, mask, None, *past, **settings)


def test_attention_to_another_sequence():
    memory = real(B, 7, D, seed=1)
    agrees("MultiHeadAttention", X, memory, memory, BIAS, chance(B, 7), num_heads=N)
    by_heads = real(B, N, 7, 4, seed=3), real(B, N, 7, 4, seed=4)
    agrees("MultiHeadAttention", X, *by_heads, num_heads=N)
    agrees("MultiHeadAttention", X, *by_heads, BIAS, num_heads=N)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("is_interleaved", [0, 1])
def test_rotary_positions(kind, is_interleaved):
    tables = [x.astype(kind) for x in (np.cos(real(9, 4)), np.sin(real(9, 4)))]
    flat, heads = (x.astype(kind) for x in (real(B, S, 24), real(B, N, S, 8)))
    near = {"rtol": 1e-2, "atol": 1e-2} if kind == np.float16 else {}
    settings = {"interleaved": is_interleaved, **near}
    for at in (np.array([2]), np.array([[0, 1, 2, 3, 4], [3, 8, 1, 0, 2]])):
        agrees("RotaryEmbedding", flat, at, *tables, **settings)
        agrees("RotaryEmbedding", heads, at, *tables, **settings)
        narrow = [x[:, :2].copy() for x in tables]
        part = {"rotary_embedding_dim": 4, "num_heads": N}
        agrees("RotaryEmbedding", flat, at, *narrow, **part, **settings)


def test_replays():
    mask = ints(3, 5)
    replays(theirs("Attention", (X, W, BIAS, mask), num_heads=N), X, W, BIAS, mask)
    replays(theirs("MultiHeadAttention", (X, X, X), num_heads=N, unidirectional=1), X, X, X)


# ---- a file of the optimizer ---------------------------------------------------------------------


def normalised(x, branch, made, constants):
    """The nodes of a normalised sum."""
    constants |= {f"{made}_scale": real(D, seed=2), f"{made}_bias": real(D, seed=3)}
    names = [f"{made}_sum", f"{made}_scale", f"{made}_bias"]
    total = helper.make_node("Add", [branch, x], names[:1])
    return [total, helper.make_node("LayerNormalization", names, [made])]


def dense(x, made, inner, outer, constants):
    """The nodes of a product with a bias."""
    constants |= {f"{made}_w": real(inner, outer) / 3, f"{made}_b": real(outer)}
    product = helper.make_node("MatMul", [x, f"{made}_w"], [f"{made}_xw"])
    return [product, helper.make_node("Add", [f"{made}_xw", f"{made}_b"], [made])]


def encoder():
    """A layer of a transformer, as exporters write it."""
    node, whole = helper.make_node, {"heads": np.array([0, 0, N, -1]), "flat": np.array([0, 0, D])}
    constants, nodes = {**whole, "root": np.array(2.0, np.float32)}, []
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += dense("x", f"{name}0", D, D, constants)
        nodes.append(node("Reshape", [f"{name}0", "heads"], [f"{name}1"]))
        nodes.append(node("Transpose", [f"{name}1"], [name], perm=order))
    nodes += [
        node("MatMul", ["q", "k"], ["qk"]),
        node("Div", ["qk", "root"], ["scores"]),
        node("Softmax", ["scores"], ["shares"]),
        node("MatMul", ["shares", "v"], ["heads_out"]),
        node("Transpose", ["heads_out"], ["turned"], perm=[0, 2, 1, 3]),
        node("Reshape", ["turned", "flat"], ["joined"]),
        *dense("joined", "attended", D, D, constants),
        *normalised("x", "attended", "z", constants),
        *dense("z", "wide", D, 20, constants),
        node("Gelu", ["wide"], ["gelu"]),
        *dense("gelu", "narrow", 20, D, constants),
        *normalised("z", "narrow", "y", constants),
    ]
    return model(nodes, {"x": X}, ["y"], constants, opset=20)


def test_a_file_of_the_optimizer(tmp_path):
    path, options = tmp_path / "net.onnx", onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath, options.log_severity_level = str(path), 4
    proto = encoder()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"  # else products are Gemm
    onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    kinds = {node.op_type for node in onnx.load(path).graph.node if node.domain}
    assert {"SkipLayerNormalization", "BiasGelu"} <= kinds
    net = sonnx.prepare(path)
    (got,), (again,), (want,) = net.run([X]), net.run([X]), there(proto, [X])
    np.testing.assert_array_equal(got, again)
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
