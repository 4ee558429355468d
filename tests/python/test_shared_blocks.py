"""Parameters that are parts of one block of memory: their moments, and writing their values."""

import numpy as np
import pytest
from singa_rs import module, opt
from singa_rs.tensor import Tensor, from_numpy


def block(count=6):
    return from_numpy(np.arange(float(count)), dtype="float64")


class Parts(module.Module):
    """The halves of one block as parameters."""

    def __init__(self, block):
        super().__init__()
        self.q, self.k = block[:3], block[3:]
        self.q.stores_grad = self.k.stores_grad = True


#: Pairs of tensors of one shape in the same block.
PAIRS = {
    "halves": lambda: (lambda b: (b[:3], b[3:]))(block()),
    "every second": lambda: (lambda b: (b[::2], b[1::2]))(block()),
    "strides alone": lambda: (lambda b: (b[::3], b[:2]))(block()),
    "transposed": lambda: (lambda b: (b, b.T()))(block(9).reshape((3, 3))),
}


@pytest.mark.parametrize("make", [lambda: opt.SGD(0.1, 0.9), lambda: opt.Adam(0.1)])
@pytest.mark.parametrize("pair", PAIRS)
def test_each_part_has_moments_of_its_own(pair, make):
    """The parts have one name, and are told apart by their elements."""
    parts, optimizer, alone = PAIRS[pair](), make(), [make(), make()]
    copies = [part.clone() for part in parts]
    for i in range(3):
        for part, copy, own, factor in zip(parts, copies, alone, (1.0, 2.0), strict=True):
            gradient = from_numpy(np.full(part.shape, factor + i), dtype="float64")
            optimizer.apply("w", part, gradient)
            own.apply("w", copy, gradient)
    kinds = [kind for kind, of in optimizer.get_states().items() if isinstance(of, dict)]
    for kind in kinds:
        got = optimizer.get_states()[kind]
        for name, own in zip(("w", "w#2"), alone, strict=True):
            want = own.get_states()[kind]["w"].to_numpy()
            assert got[name].to_numpy().tobytes() == want.tobytes()


def test_another_object_on_the_same_elements_is_the_same_parameter():
    b, optimizer = block(), opt.SGD(0.1, 0.9)
    for _ in range(3):
        optimizer.apply("w", b[:3], from_numpy(np.ones(3), dtype="float64"))
    assert list(optimizer.get_states()["moments"]) == ["w"]
    np.testing.assert_allclose(b.to_numpy()[:3], np.arange(3) - 0.1 * (1 + 1.9 + 2.71))


def test_states_that_change_places():
    model = Parts(block())
    model.set_states({"q": model.k, "k": model.q})
    assert model.q.tolist() == [3, 4, 5] and model.k.tolist() == [0, 1, 2]
    model.set_params({"k": model.q, "q": model.k})
    assert model.q.tolist() == [0, 1, 2] and model.k.tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "value",
    [
        lambda b: b[1:4],
        lambda b: b[2::-1],
        lambda b: b[::2],
        lambda b: np.asarray(b.to_numpy()[1:4]),
        lambda b: np.from_dlpack(b)[1:4],
        lambda b: np.from_dlpack(b)[1:4].view(np.recarray),
    ],
    ids=["later", "backwards", "every second", "array", "shared array", "shared record array"],
)
def test_values_that_lie_in_what_is_written(value):
    b = block()
    model, given = Parts(b), value(b)
    want = np.array(given.to_numpy() if isinstance(given, Tensor) else given, np.float64)
    model.set_states({"k": model.q, "q": given})
    assert model.q.tolist() == want.tolist() and model.k.tolist() == [0, 1, 2]


def test_own_values_stay():
    model = Parts(block())
    model.set_states(model.get_states())
    assert model.q.tolist() == [0, 1, 2] and model.k.tolist() == [3, 4, 5]


def test_no_part_is_written_where_one_cannot_be():
    model, b = Parts(block()), block(2)
    model.q, model.k = b[:1].expand((3,)), b[1:].expand((3,))
    model.q.stores_grad = model.k.stores_grad = True
    with pytest.raises(ValueError, match="expanded"):
        model.set_states({"q": np.ones(3), "k": np.ones(3)})
    assert b.tolist() == [0, 1]


def test_moments_of_two_kinds_that_change_places():
    optimizer, parameter = opt.Adam(0.1), block()
    optimizer.apply("w", parameter, block())
    states = optimizer.get_states()
    m, v = (states[kind]["w"].tolist() for kind in ("m", "v"))
    assert m != v
    optimizer.set_states({"m": states["v"], "v": states["m"]})
    states = optimizer.get_states()
    assert (states["m"]["w"].tolist(), states["v"]["w"].tolist()) == (v, m)
