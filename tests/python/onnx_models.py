"""Small ONNX models, and what onnxruntime computes of them."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, defs, helper
from singa_rs import autograd, sonnx
from singa_rs.sonnx.arrays import element_of, from_array, native
from singa_rs.tensor import Tensor, to_numpy


def needs(opset):
    """Marks what older packages of ONNX do not have."""
    newest = defs.onnx_opset_version()
    return pytest.mark.skipif(newest < opset, reason=f"onnx knows opsets up to {newest}")


def real(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def element(array):
    text = array.dtype.kind in "OU"
    return TensorProto.STRING if text else element_of(array.dtype)


def model(nodes, inputs, outputs, constants=(), opset=21, ml=3):
    """A model of nodes, of inputs by name as arrays that show their types and shapes, and of
    outputs and constants by name."""
    infos = [helper.make_tensor_value_info(k, element(x), x.shape) for k, x in inputs.items()]
    graph = helper.make_graph(
        nodes,
        "test",
        infos,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [from_array(x, name) for name, x in dict(constants).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)]
    opsets.append(helper.make_opsetid("ai.onnx.preview.training", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def graph(nodes, inputs, outputs):
    """A body; inputs and outputs are names with element types and shapes."""
    made = [[helper.make_tensor_value_info(*one) for one in given] for given in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *made)


def one(op, xs, outputs=1, opset=21, domain="", **attributes):
    """A model of one node, which has no inputs where `xs` has None."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(xs)]
    made = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, made, domain=domain, **attributes)
    inputs = {name: x for name, x in zip(names, xs, strict=True) if name}
    return model([node], inputs, made, opset=opset)


def run(op, *xs, **settings):
    """The outputs of a node, one or several."""
    found = sonnx.prepare(one(op, xs, **settings)).run([x for x in xs if x is not None])
    found = [native(y) if isinstance(y, np.ndarray) else y for y in found]
    return found[0] if len(found) == 1 else found


def there(proto, arrays):
    """The results of onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(zip((x.name for x in session.get_inputs()), arrays, strict=True)))


def agrees(op, *xs, rtol=1e-5, atol=1e-6, **settings):
    """Asserts that a node gives what onnxruntime gives, in the same dtypes."""
    proto = one(op, xs, **settings)
    given = [x for x in xs if x is not None]
    for got, want in zip(sonnx.prepare(proto).run(given), there(proto, given), strict=True):
        if want.dtype.kind == "O":
            assert list(np.ravel(got)) == list(want.ravel()) and got.shape == want.shape
        else:
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol, atol)


def replays(proto, *arrays):
    """Asserts that a compiled model replays what it computes eagerly, to the bit, also for inputs
    that it has not seen."""
    eager, compiled = sonnx.SONNXModel(proto), sonnx.SONNXModel(proto)
    eager.eval()
    first = [Tensor(data=x, dtype=x.dtype.name) for x in arrays]
    compiled.compile(first, is_train=False, use_graph=True)
    other = [Tensor(data=np.flip(x, 0).copy(), dtype=x.dtype.name) for x in arrays]
    for xs in (first, first, first, other):
        for got, want in zip(compiled.forward(*xs), eager.forward(*xs), strict=True):
            np.testing.assert_array_equal(to_numpy(got), to_numpy(want))
    assert len(compiled.graphs) == 1


def slopes(op, *xs, step=1e-5, rtol=1e-4, atol=1e-6, **settings):
    """Asserts that the gradients of a node's first output with respect to its inputs of float64 are
    those that differences give."""
    net = sonnx.SONNXModel(one(op, xs, **settings))
    given = [x for x in xs if x is not None]
    weight = real(*sonnx.prepare(one(op, xs, **settings)).run(given)[0].shape, seed=9)

    def loss(arrays):
        ts = [Tensor(data=a, dtype=a.dtype.name, requires_grad=True) for a in arrays]
        return ts, autograd.reduce_sum(
            net.forward(*ts)[0] * Tensor(data=weight, dtype="float64"), None, 0
        )

    autograd.training = True
    floats = [i for i, x in enumerate(given) if x.dtype == np.float64]
    ts, total = loss(given)
    found = autograd.gradients(total, xs=[ts[i] for i in floats])
    for i, got in zip(floats, found, strict=True):
        want = np.zeros_like(given[i])
        for at in np.ndindex(want.shape):
            ends = []
            for by in (step, -step):
                moved = [x.copy() for x in given]
                moved[i][at] += by
                ends.append(float(to_numpy(loss(moved)[1])))
            want[at] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(to_numpy(got), want, rtol, atol)
