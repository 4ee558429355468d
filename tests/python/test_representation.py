"""What is shown of tensors, layers, models and optimizers; tensors in NumPy's functions; reading
values while a step is recorded; where errors from inside a model are said to come from."""

import builtins
import copy
import pickle
import traceback

import numpy as np
import pytest
import singa_rs
from singa_rs import GraphError, ShapeError, autograd, data, layer, metric, module, opt, tensor
from singa_rs.tensor import Placeholder, Tensor, from_numpy

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)
X = Placeholder((2, 3))


class Block(module.Module):
    def __init__(self, units):
        super().__init__()
        self.mlp = [layer.Linear(units)]

    def forward(self, x):
        return self.mlp[0](x)


class Net(module.Module):
    def __init__(self, look=lambda h: None):
        super().__init__()
        self.blocks, self.look = [Block(4), Block(5)], look

    def forward(self, x):
        h = self.blocks[0](x)
        self.look(h)
        return self.blocks[1](h)


# ---- layers, models, optimizers ------------------------------------------------------------------


def test_layers_show_their_arguments():
    made = layer.Conv2d(8, kernel_size=3, padding=1, activation="RELU")
    assert repr(made).startswith("Conv2d(8, kernel_size=3, padding=1, activation='RELU')")
    assert repr(layer.Flatten()) == "Flatten()"
    assert repr(copy.deepcopy(made)) == repr(made) == repr(pickle.loads(pickle.dumps(made)))


def test_models_are_trees():
    net = Net()
    assert "mlp.0: Linear(4)  not called yet" in repr(net)
    net.compile([X], is_train=False)
    assert repr(net).split("\n") == [
        "Net(): 41 parameters",
        "  blocks.0: Block(4)",
        "    mlp.0: Linear(4)  W (3, 4), b (4,)  16 parameters",
        "  blocks.1: Block(5)",
        "    mlp.0: Linear(5)  W (4, 5), b (5,)  25 parameters",
    ]
    assert repr(net.blocks[1]).split("\n")[1].startswith("  mlp.0: Linear(5)")


def test_shared_parameters_are_counted_once():
    net = layer.Sequential(layer.Linear(3), layer.Linear(3))
    net(from_numpy(A))
    net[1].W = net[0].W
    assert repr(net).split("\n")[0] == "Sequential(): 15 parameters"


def test_arguments_are_not_kept_alive():
    made = layer.Linear(2, kernel_init=lambda t: t.set_value(0.0))
    assert repr(made).startswith("Linear(2, kernel_init=<lambda>)")


def test_optimizers_show_their_settings():
    assert repr(opt.SGD(lr=0.1, momentum=0.9)) == "SGD(lr=0.1, momentum=0.9)"
    assert repr(opt.Adam(0.01)) == "Adam(lr=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-08)"
    assert repr(opt.SGD(opt.ExponentialDecay(0.1, 2, 0.5))).startswith(
        "SGD(lr=ExponentialDecay(init_value=0.1"
    )
    assert repr(opt.SGD(0.1, 0.9, nesterov=True)) == "SGD(lr=0.1, momentum=0.9, nesterov=True)"


SCHEDULES = {
    "CosineDecay(init_value=0.1, decay_steps=9, final_value=0.0)": opt.CosineDecay(0.1, 9),
    "OneCycle(max_value=1.0, total_steps=9, rise=0.3, div_factor=25.0, "
    "final_div_factor=10000.0)": opt.OneCycle(1.0, 9),
    "Warmup(steps=3, then=Constant(0.1))": opt.Warmup(3, 0.1),
}


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules_show_their_arguments(text):
    assert repr(SCHEDULES[text]) == text


def test_notebooks():
    net = Net()
    net.compile([X], is_train=False)
    for one in (net, net.plan(from_numpy(A))):
        assert one._repr_html_().startswith("<pre>") and "<" not in one._repr_html_()[5:-6]


# ---- NumPy's functions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        np.sum, np.mean, np.max, np.std, np.cumsum, np.transpose, np.squeeze, np.exp, np.argsort,
        np.linalg.norm, np.ravel, np.shape, np.ndim, np.diff, np.isfinite, np.count_nonzero,
    ],
)  # fmt: skip
def test_numpys_functions_take_tensors(function):
    made, want = function(from_numpy(A)), function(A)
    assert type(made) is type(want)
    np.testing.assert_array_equal(made, want)


def test_numpys_functions_of_several():
    t = from_numpy(A)
    for made, want in (
        (np.concatenate([t, t], 1), np.concatenate([A, A], 1)),
        (np.where(t > 2, t, 0), np.where(A > 2, A, 0)),
        (np.sum(t, axis=1, keepdims=True), A.sum(1, keepdims=True)),
        (np.einsum("ij,kj->ik", t, A), A @ A.T),
    ):
        assert isinstance(made, np.ndarray)
        np.testing.assert_array_equal(made, want)


def test_arrays_beside_tensors():
    """An operator gives a tensor; one in place writes into the array, as NumPy has it."""
    t, scalar = from_numpy(A), np.float32(2)
    for made, want in (
        (A - t, A - A),
        (A @ t.T, A @ A.T),
        (scalar / (t + 1), scalar / (A + 1)),
        (A > t + 1, A > A + 1),
        (A == t, A == A),  # noqa: PLR0124 - element by element
    ):
        assert type(made) is Tensor
        np.testing.assert_array_equal(made.to_numpy(), want)
    array = other = A.copy()
    array += t
    array *= t[0]
    assert array is other and type(array) is np.ndarray
    np.testing.assert_array_equal(other, 2 * A * A[0])
    np.testing.assert_array_equal(np.multiply(t, t), A * A)
    counts = np.zeros(3, int)
    with pytest.raises(TypeError, match="same_kind"):
        counts += t[0]
    with pytest.raises(ValueError, match="non-broadcastable output"):
        array[0] += t


def test_numpy_does_not_write_into_tensors():
    t = from_numpy(A)
    for call in (
        lambda: np.add(A, A, out=t),
        lambda: np.sum(A, axis=0, out=t),
        lambda: np.copyto(t, 1),
        lambda: np.put(t, 0, 1),
    ):
        with pytest.raises(TypeError, match="(add|sum|copyto|put): NumPy cannot write into a"):
            call()
    assert np.array_equal(t.to_numpy(), A)


def test_single_values_are_numbers():
    loss = from_numpy(A).sum().reshape(1)
    assert float(loss) == 15 and f"{loss:.2f}" == "15.00" and f"{loss}" == repr(loss)


# ---- while a step is recorded --------------------------------------------------------------------


def test_a_dtype_can_be_typed_as_it_is_shown():
    kinds = {one for one in vars(tensor).values() if isinstance(one, type(tensor.float32))}
    assert len(kinds) == 13
    for one in kinds:
        assert eval(repr(one), {"singa_rs": singa_rs}) == one
        assert getattr(singa_rs, one.name if one != tensor.bool_ else "bool_") == one


def test_importing_everything_hides_no_builtin():
    assert not set(singa_rs.__all__) & set(dir(builtins))


def test_printing_while_recording():
    shown = []
    net = Net(lambda h: shown.append((repr(h), str(h), f"{h}")))
    net.compile([X], is_train=False)
    net(from_numpy(A))
    for texts in shown:
        for text in texts:
            assert text.startswith("Tensor(shape=(2, 4), dtype=float32, recorded at ")
            assert text.partition(" at ")[2][:-1].rpartition(":")[2].isdigit()


def test_tensors_without_a_value_are_shown():
    assert repr(Tensor.__new__(Tensor)).startswith("Tensor(")
    assert repr(X) == "Placeholder((2, 3), dtype=float32)"


def test_reading_while_recording_says_what_helps():
    net = Net(lambda h: float(h.sum()))
    with pytest.raises(GraphError, match="use_graph=False"):
        net.compile([X])
    for options in ({"use_graph": False}, {"debug": True}):
        net = Net(lambda h: float(h.sum()))
        net.compile([X], **options)
        assert len(net.get_params()) == 4 and net.training
        assert np.array_equal(net(from_numpy(A)).to_numpy(), net.forward(from_numpy(A)).to_numpy())


def test_a_run_on_zeros_changes_no_states():
    class Normed(Net):
        def __init__(self):
            super().__init__(lambda h: float(h.sum()))
            self.norm = layer.BatchNorm2d()

        def forward(self, x):
            return self.norm(super().forward(x + 1))

    net = Normed()
    net.compile([X], is_train=True, use_graph=False)
    assert not net.norm.running_mean.to_numpy().any()
    assert (net.norm.running_var.to_numpy() == 1).all()


# ---- errors --------------------------------------------------------------------------------------


def test_errors_begin_with_the_path():
    net = Net()
    net.compile([X], is_train=False, use_graph=False)
    with pytest.raises(ShapeError) as caught:
        net(from_numpy(A[:, :2]))
    assert str(caught.value).startswith("blocks.0.mlp.0: Linear: got shape (2, 2)")
    net.look = lambda h: autograd.matmul(h, h)
    with pytest.raises(ShapeError, match="^matmul: got"):  # the model itself has no path
        net(from_numpy(A))


def test_the_innermost_path_is_named_once():
    class Outer(module.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, x):
            return self.net(x)

    outer = Outer()
    outer.eval()
    outer(from_numpy(A))
    with pytest.raises(ShapeError) as caught:
        outer(from_numpy(A[:, :2]))
    assert str(caught.value).startswith("net.blocks.0.mlp.0: Linear: got")


def test_errors_of_users_stay_as_they_are():
    def fail(h):
        raise ValueError("mine: it is")

    net = Net(fail)
    net.eval()
    with pytest.raises(ValueError, match="^mine: it is$"):
        net(from_numpy(A))


def test_tracebacks_leave_out_the_package(monkeypatch):
    net = Net()
    net.eval()
    net(from_numpy(A))

    def inside():
        with pytest.raises(ShapeError) as caught:
            net(from_numpy(A[:, :2]))
        frames = traceback.extract_tb(caught.value.__traceback__)
        return sum("singa_rs/layer/linear" in one.filename for one in frames), frames

    monkeypatch.delenv("SINGA_RS_FULL_TRACEBACK", raising=False)
    count, frames = inside()
    assert count == 0 and frames[-1].line.startswith("return self.mlp[0](x)")
    monkeypatch.setenv("SINGA_RS_FULL_TRACEBACK", "1")
    assert inside()[0] > 0


def test_warnings_are_shown_once_at_the_callers_line():
    from singa_rs import notices

    notices._shown.discard("copy")
    with pytest.warns(UserWarning, match="clone") as caught:
        tensor.ones((2,)).copy()
        tensor.ones((2,)).copy()
    assert len(caught) == 1 and caught[0].filename == __file__


DESCRIBED = {
    "Accuracy()": lambda: metric.Accuracy(),
    "Accuracy(top_k=3)": lambda: metric.Accuracy(3),
    "F1Score(average='macro')": lambda: metric.F1Score("macro"),
    "ConfusionMatrix(classes=4, threshold=0.5)": lambda: metric.ConfusionMatrix(4, 0.5),
    "EarlyStopping(patience=5, mode='min')": lambda: module.callbacks.EarlyStopping(patience=5),
    "DataLoader(batch_size=4, shuffle=True): 10 rows in 3 batches": lambda: data.DataLoader(
        np.zeros((10, 2)), 4, shuffle=True
    ),
    "DataLoader(batch_size=4, drop_last=True): 10 rows in 2 batches": lambda: data.DataLoader(
        np.zeros((10, 2)), 4, drop_last=True
    ),
    "DataLoader(batch_size=2): rows of a list_iterator": lambda: data.DataLoader(iter([1.0]), 2),
}


@pytest.mark.parametrize("text", DESCRIBED)
def test_what_training_is_made_of_describes_itself(text):
    assert repr(DESCRIBED[text]()) == text


@pytest.mark.parametrize("shape", [(2**20 + 3,), (1100, 1100), (3, 5, 100, 1000), (2**21, 1)])
def test_large_tensors_are_not_copied_to_show_a_few_elements(shape):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for options in ({}, {"edgeitems": 1, "precision": 2}):
        with np.printoptions(**options):
            text = np.array2string(array, separator=", ", prefix="Tensor(", threshold=100)
            assert repr(tensor.from_numpy(array)) == f"Tensor({text}, dtype=float32)"


def test_tensors_that_no_memory_holds_are_shown():
    wide = tensor.ones((1, 1)).broadcast_to((10**7, 10**7))
    assert repr(wide).startswith("Tensor([[1., 1., 1., ..., 1., 1., 1.],")
    want = "Tensor(shape=(10000000, 10000000), dtype=float32, not written yet)"
    assert repr(Tensor((10**7, 10**7))) == want
