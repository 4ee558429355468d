"""Models of one operator of onnxruntime's own, beside onnxruntime."""

import numpy as np
from onnx_models import one, there
from singa_rs import sonnx


def theirs(op, xs, outputs=1, unnamed=(), domain="com.microsoft", **attributes):
    """A model of one node, without the names of some outputs; inputs are None where left out."""
    proto = one(op, xs, outputs=outputs, domain=domain, **attributes)
    proto.opset_import.add(domain="com.microsoft", version=1)
    (node,) = proto.graph.node
    for i in sorted(unnamed, reverse=True):
        node.output[i] = ""
        del proto.graph.output[i]
    return proto


def agrees(op, *xs, rtol=1e-5, atol=1e-5, **settings):
    """Asserts onnxruntime's results, and that a second run gives the same bits."""
    proto, given = theirs(op, xs, **settings), [x for x in xs if x is not None]
    model = sonnx.prepare(proto)
    found, again, wanted = model.run(given), model.run(given), there(proto, given)
    assert len(found) == len(wanted)
    for got, same, want in zip(found, again, wanted, strict=True):
        np.testing.assert_array_equal(got, same)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol, atol)
