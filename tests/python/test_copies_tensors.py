"""Tensors, operations and small objects can be pickled and copied, and the copies work alike."""

import copy

import numpy as np
import pytest
from layer_calls import normal
from singa_rs import (
    GraphError,
    autograd,
    device,
    initializer,
    loss,
    metric,
    opt,
    tensor,
)  # fmt: skip
from singa_rs.tensor import Placeholder, Tensor
from test_copies import (
    IMAGES,
    LABELS,
    ROWS,
    Net,
    each_deep_way,
    each_way,
    pickled,
    steps,
)

TENSORS = {
    "plain": Tensor(data=normal(2, 3), name="w", stores_grad=True),
    "fixed": Tensor(data=normal(2), requires_grad=False),
    "view": Tensor(data=normal(4, 4))[1:, ::-2],
    "turned": Tensor(data=normal(4, 3)).transpose(),
    "empty": Tensor((0, 3)),
    "number": Tensor(data=2.5),
    "truth": Tensor(data=[True, False]),
    **{
        name: Tensor(data=np.array([1, 2, 3])).as_type(name)
        for name in ("float64", "float16", "bfloat16", "int64", "int8", "uint8")
    },
    "raw": Tensor(data=normal(2, 3)).data,
}


@each_way
@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name, way):
    one = TENSORS[name]
    made = way(one)
    assert type(made) is type(one) and made.dtype == one.dtype and made.shape == one.shape
    assert made.to_numpy().tobytes() == one.to_numpy().tobytes()
    assert (made.requires_grad, made.stores_grad) == (one.requires_grad, one.stores_grad)
    assert made._name == one._name and made.shares_block(one) == (way is copy.copy)
    assert (made + 1).shape == one.shape


@each_way
def test_gradients_that_tensors_have(way):
    one = Tensor(data=normal(3), stores_grad=True)
    with autograd._training_scope(True):
        autograd.reduce_sum(one * one).backward()
    made = way(one)
    np.testing.assert_array_equal(made.grad.to_numpy(), one.grad.to_numpy())
    assert made.grad.shares_block(one.grad) == (way is copy.copy)


@each_way
def test_recorded_tensors_are_leaves_afterwards(way):
    one = Tensor(data=normal(3), stores_grad=True)
    with autograd._training_scope(True):
        made = way(one * 2)
    np.testing.assert_allclose(made.to_numpy(), one.to_numpy() * 2)
    assert made.is_dummy() == (way is not copy.copy)


@each_way
def test_placeholders(way):
    one = Placeholder((2, 3), dtype=tensor.int32, name="x", requires_grad=False)
    made = way(one)
    assert type(made) is Placeholder and made.shape == (2, 3) and made.dtype == tensor.int32
    assert made.name == "x" and not made.requires_grad
    made.set_value(3)
    assert type(made) is Tensor and made.tolist() == [[3] * 3] * 2 and type(one) is Placeholder


@each_way
def test_gradients_are_found_by_the_copied_tensors(way):
    w, b = Tensor(data=normal(3), stores_grad=True), Tensor(data=normal(3), stores_grad=True)
    with autograd._training_scope(True):
        found = autograd.gradients(autograd.reduce_sum(w * b))
    again, (w2, b2) = way((found, (w, b)))
    np.testing.assert_array_equal(again[w2].to_numpy(), b.to_numpy())
    np.testing.assert_array_equal(again[b2].to_numpy(), w.to_numpy())
    assert len(again) == 2


OPERATIONS = [
    autograd.ReLU(),
    autograd.Reshape((3, 2)),
    autograd.LeakyRelu(0.3),
    autograd.Clip(0, 1),
]
OPERATIONS += [
    autograd.Elu(0.5),
    autograd.SoftMax(1),
    autograd.Transpose((1, 0)),
    autograd.Cast("float64"),
]
OPERATIONS += [
    autograd.ReduceSum((0,)),
    autograd.Dropout(0.0),
    autograd.Flatten(1),
    autograd.Square(),
]


@each_way
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_operations(operation, way):
    x = Tensor(data=normal(2, 3))
    for _ in range(2):  # before and after it ran
        with autograd._training_scope(True):
            want, got = operation(x)[0], way(operation)(x)[0]
        np.testing.assert_array_equal(got.to_numpy(), want.to_numpy())
        dy = Tensor(data=np.ones(got.shape, np.float32)).as_type(got.dtype)
        np.testing.assert_array_equal(
            got.creator.backward(dy).to_numpy(), want.creator.backward(dy).to_numpy()
        )


FUNCTIONS = {
    f"{home.__name__}.{name}": one
    for home in (autograd, tensor, initializer)
    for name, one in vars(home).items()
    if callable(one) and not name.startswith("_") and one.__module__.startswith("singa_rs")
}
HELD = {
    "device": device.get_default_device(),
    "size": Tensor((2, 3)).size,
    "metric": metric.Accuracy(2),
    "precision": metric.Precision(2),
    "recall": metric.Recall(3),
    "convolution": autograd.ConvHandle((3, 2), 1, 2),
    "pooling": autograd.PoolingHandle(2, is_max=False),
    "normalisation": autograd.BatchNormHandle(0.2),
    "loss": loss.SquaredError(),
    "constant": opt.Constant(0.1),
    "decay": opt.ExponentialDecay(0.1, 2, 0.5),
    **{d: getattr(tensor, d) for d in ("float32", "bfloat16", "bool_", "int8")},
}


@each_way
def test_functions_and_classes_are_found_by_name(way):
    assert len(FUNCTIONS) > 200
    for name, one in FUNCTIONS.items():
        assert way(one) is one, name


@each_way
@pytest.mark.parametrize("name", HELD)
def test_small_things(name, way):
    made = way(HELD[name])
    assert type(made) is type(HELD[name])
    if not hasattr(made, "__dict__") or name in ("device", "size"):
        assert made == HELD[name]
    else:
        assert {k: str(v) for k, v in vars(made).items()} == {
            k: str(v) for k, v in vars(HELD[name]).items()
        }


@each_way
def test_losses_in_the_middle(way):
    one = loss.SquaredError()
    one.forward(True, Tensor(data=ROWS), Tensor(data=ROWS + 1))
    with pytest.raises(GraphError, match="forward"):
        way(one).backward()
    assert one.backward().shape == ROWS.shape


@each_deep_way
def test_taps_are_removed_ones_in_copies(way):
    net = Net()
    net.forward(IMAGES)
    with net.tap("conv") as tap:
        net.held = tap
        made = way(net)
        made.held.remove()
        net.forward(IMAGES)
        assert tap.value is not None and made.held.value is None and made.taps == {}
    del net.held


@pytest.mark.parametrize("way", [pickled, copy.deepcopy])
def test_recordings_refuse_to_be_copied(way):
    net = Net()
    net.compile([Tensor(data=IMAGES)])
    steps(net, 3)
    plan = net.plan(IMAGES, LABELS)
    with device.get_default_device().record() as recorded:
        Tensor((2,)) + 1
    for one in (net.graphs[0], plan, recorded):
        with pytest.raises(TypeError, match="cannot pickle|cannot be copied"):
            way(one)
