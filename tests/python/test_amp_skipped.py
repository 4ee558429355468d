"""Updates that are skipped, as a gradient in float16 is not finite."""

import numpy as np
import pytest
from singa_rs import autograd, layer, module, opt, tensor
from test_amp import IMAGES, LABELS, compiled, losses

OPTIMIZERS = {
    "SGD": lambda: opt.SGD(0.1, momentum=0.9),
    "AdamW": lambda: opt.AdamW(opt.ExponentialDecay(1e-2, 1, 0.5)),
    "LAMB": lambda: opt.LAMB(1e-2),
    "clipped": lambda: opt.Adam(1e-2, clip_norm=1.0, clip_value=0.5),
}


def written(model) -> dict[str, np.ndarray]:
    """Everything that an update writes, except the scale."""
    states = model.optimizer.get_states()
    found = {"step": np.array(states.pop("step_counter"))}
    for kind, moments in states.items():
        found |= {f"{kind}/{name}": t.to_numpy().copy() for name, t in moments.items()}
    found |= {name: t.to_numpy().copy() for name, t in model.get_params().items()}
    return found


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("goes_on", [False, True])
def test_an_update_that_overflows_is_skipped(name, use_graph, goes_on):
    model, other = (compiled(OPTIMIZERS[name](), use_graph=use_graph, amp="float16") for _ in "ab")
    losses(model, 4)
    if goes_on:
        other.optimizer.set_states(model.optimizer.get_states())
        model = other
    before, factor = written(model), model.loss_scale.factor.item()
    model.train_one_batch(np.full_like(IMAGES, np.inf), LABELS)
    after = written(model)
    assert before.keys() == after.keys()
    for key in before:
        np.testing.assert_array_equal(after[key], before[key], err_msg=key)
    assert model.loss_scale.factor.item() == factor / 2
    assert model.loss_scale.updates.item() == 0
    model.batch_norm.running_mean.set_value(0)
    model.batch_norm.running_var.set_value(1)
    model.train_one_batch(IMAGES, LABELS)
    now = written(model)
    assert now["step"] == before["step"] + 1
    assert any(not np.array_equal(now[key], before[key]) for key in before)


class Heavy(opt.Optimizer):
    """Momentum in attributes of its own, which `step` counts in a tensor."""

    def __init__(self, replaces):
        super().__init__(0.1)
        self.buffers, self.count, self.replaces = {}, tensor.zeros((1,)), replaces

    def apply(self, param_name, param_value, param_grad):
        buffer = self.buffers.setdefault(param_name, tensor.zeros_like(param_value))
        made = buffer * 0.9 + param_grad
        if self.replaces:
            self.buffers[param_name] = made
        else:
            buffer.copy_from(made)
        param_value -= made * self.lr_value

    def step(self):
        super().step()
        self.count += 1


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("replaces", [False, True])
def test_a_skipped_update_leaves_what_an_optimizer_holds(replaces, use_graph):
    model = compiled(Heavy(replaces), use_graph=use_graph, amp="float16")
    plain = compiled(opt.SGD(0.1, momentum=0.9), use_graph=use_graph, amp="float16")
    for one in (model, plain):
        losses(one, 4)
        one.train_one_batch(np.full_like(IMAGES, np.inf), LABELS)
        one.batch_norm.running_mean.set_value(0)
        one.batch_norm.running_var.set_value(1)
        losses(one, 4)
    assert model.optimizer.count.item() == 8
    for name, param in model.get_params().items():
        np.testing.assert_allclose(param.to_numpy(), plain.get_params()[name].to_numpy(), 1e-3)


class Lookahead(opt.Optimizer):
    """Parameters that follow others, of which each begins as a copy."""

    def __init__(self, grows=False):
        super().__init__(0.1)
        self.slow, self.seen, self.grows = {}, tensor.zeros((1,)), grows

    def apply(self, param_name, param_value, param_grad):
        slow = self.slow.setdefault(param_name, param_value.clone())
        slow -= param_grad * self.lr_value
        param_value.copy_from((param_value + slow) * 0.5)
        if self.grows:
            self.seen = tensor.zeros((self.seen.numel + 1,))


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("groups", [(), ("*.W",)])
def test_what_an_optimizer_begins_in_a_skipped_update(groups, use_graph):
    found = []
    for skips in (True, False):
        model = compiled(Lookahead(), use_graph=use_graph, amp="float16")
        for group in groups:
            model.optimizer.group(group, lr=0.01).slow = {}
        before = {name: p.to_numpy().copy() for name, p in model.get_params().items()}
        for _ in range(2 * skips):
            model.train_one_batch(np.full_like(IMAGES, np.inf), LABELS)
        for name, p in model.get_params().items():
            np.testing.assert_array_equal(p.to_numpy(), before[name])
        model.batch_norm.running_mean.set_value(0)
        model.batch_norm.running_var.set_value(1)
        model.loss_scale.factor.set_value(1024.0)
        losses(model, 4)
        found.append(model.get_params())
    for name, p in found[0].items():
        np.testing.assert_array_equal(p.to_numpy(), found[1][name].to_numpy(), err_msg=name)


def test_what_an_optimizer_holds_keeps_its_shape():
    model = compiled(Lookahead(grows=True), use_graph=False, amp="float16")
    with pytest.raises(ValueError, match=r"got shape .* for 0.seen, want \(1,\) as before"):
        losses(model, 1)


def test_a_first_update_that_overflows_leaves_zero_moments():
    model = compiled(opt.Adam(1e-2), use_graph=False, amp="float16")
    model.train_one_batch(np.full_like(IMAGES, np.inf), LABELS)
    moments = [t for kind in "mv" for t in model.optimizer.get_states()[kind].values()]
    assert moments and all(not t.to_numpy().any() for t in moments)


class InTwo(module.Module):
    """Accumulates the gradients of the first half of each batch."""

    def __init__(self):
        super().__init__()
        self.head, self.optimizer = layer.Linear(5), opt.SGD(0.1, momentum=0.9)

    def forward(self, x):
        return self.head(x)

    def train_one_batch(self, x, t):
        losses = [autograd.softmax_cross_entropy(self(x[i::2]), t[i::2]) * 0.5 for i in range(2)]
        self.optimizer.accumulate(losses[0])
        self.optimizer(losses[1])
        return losses[1]


@pytest.mark.parametrize("use_graph", [False, True])
@pytest.mark.parametrize("half", [0, 1])
def test_a_skipped_update_drops_the_sums(half, use_graph):
    good, bad = np.ones((8, 16), np.float32), np.ones((8, 16), np.float32)
    bad[half::2] = np.inf
    model = InTwo()
    model.compile([good], use_graph=use_graph, amp="float16")
    for _ in range(4):
        model.train_one_batch(good, LABELS)
    before = written(model)
    model.train_one_batch(bad, LABELS)
    after = written(model)
    for key, value in after.items():
        np.testing.assert_array_equal(value, before[key], err_msg=key)
    sums = [value for key, value in after.items() if key.startswith("accumulated")]
    assert len(sums) == 2 and not any(value.any() for value in sums)
    model.train_one_batch(good, LABELS)
    assert all(np.isfinite(value).all() for value in written(model).values())


class Grouped(module.Module):
    """A schedule that the optimizer and a group have."""

    def __init__(self):
        super().__init__()
        self.w, self.v = (
            layer.Parameter(tensor.from_numpy(np.ones(shape, np.float32)))
            for shape in ((4, 4), (4, 1))
        )
        self.optimizer = opt.SGD(opt.StepDecay(1.0, 1, 0.5))
        self.group = self.optimizer.group("v", lr=opt.StepDecay(1.0, 1, 0.5))

    def forward(self, x):
        return (x @ self.w) @ self.v

    def train_one_batch(self, x):
        loss = self.forward(x).square().mean()
        self.optimizer(loss)
        return loss


@pytest.mark.parametrize("use_graph", [False, True])
def test_a_skipped_update_leaves_the_schedules_of_groups(use_graph):
    model, good = Grouped(), np.full((2, 4), 1e-3, np.float32)
    model.compile([good], amp="float16", use_graph=use_graph)
    for x in (good, *[np.full((2, 4), 6e4, np.float32)] * 3, good):
        model(x)
    assert model.optimizer.step_counter.item() == 2
    assert model.optimizer.lr_value.item() == model.group.lr_value.item() == 0.25
