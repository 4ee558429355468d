"""The rest of a step: losses added with factors, optimizers, how gradients become updates."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from singa_rs import opt

from . import catalogue, values

if TYPE_CHECKING:
    from .draw import Draw

# ---- losses --------------------------------------------------------------------------------------


def _flat(out: str) -> str:
    return f"{out}.reshape(({out}.shape[0], -1))"


def loss_terms(d: Draw) -> list[tuple[str, str]]:
    """(what is counted, the text) of losses of `out` and of parameters."""
    out, rank = "out", d.value("out").rank
    wide = "out" if rank == 2 else _flat(out)
    full = d.value("out").shape
    target = f"np.zeros({out}.shape, np.float32)"
    terms = [
        ("mean of squares", f"autograd.reduce_mean({out} * {out}).reshape((1,))"),
        ("mse_loss", f"autograd.mse_loss({out}, {target})"),
        ("mse_loss", f"autograd.mse_loss({out}, draw({d.seed()}, {out}.shape))"),
        ("layer loss", f"self.mse({out}, held(np.ones({out}.shape, np.float32)))"),
        ("tanh sum", f"(autograd.tanh({out}).sum() * 0.1).reshape((1,))"),
        ("maximum", f"autograd.reduce_mean(autograd.maximum({out}, 0.3 * {out})).reshape((1,))"),
        ("ranking_loss", f"autograd.ranking_loss({out}, {out} * 0.5)"),
        ("mean", f"{out}.mean()"),
    ]
    if rank >= 2 and full[0] == d.value("y").shape[0]:
        terms += 2 * [
            ("softmax_cross_entropy", f"autograd.softmax_cross_entropy({wide}, y)"),
            ("layer cross entropy", f"self.xent({wide}, y)"),
        ]
        soft = f"autograd.softmax({wide})"
        weights = f"draw({d.seed()}, {wide}.shape, 0, 1)"
        terms += [
            ("cross_entropy", f"autograd.cross_entropy({soft}, {weights})"),
            ("soft labels", f"autograd.softmax_cross_entropy({wide}, {weights})"),
            ("binary_cross_entropy", f"autograd.binary_cross_entropy({wide}.sigmoid(), {weights})"),
            ("log_softmax", f"-(autograd.log_softmax({wide}) * {weights}).sum().reshape((1,)) / 8"),
            ("log of softmax", f"-autograd.reduce_mean(autograd.log({soft} + 0.01)).reshape((1,))"),
        ]
    weights = [n for n in d.pool if n.startswith("self.p")]
    if weights:
        p = d.rng.choice(weights)
        terms += [
            ("penalty", f"(autograd.reduce_sum({p} * {p}) * 0.01).reshape((1,))"),
            ("penalty", f"autograd.reduce_mean(autograd.abs({p})).reshape((1,))"),
        ]
    return terms


def losses(d: Draw) -> list[str]:
    """Lines that end with `loss`."""
    lines, names = [], []
    for i in range(d.rng.choice([1, 1, 1, 2, 2, 3])):
        for _ in range(6):
            what, text = d.rng.choice(loss_terms(d))
            line = f"loss{i} = {text}"
            if d.write(line, lines):
                d.program.tags["loss " + what] += 1
                names.append(f"loss{i}")
                break
    if not names:
        return [*lines, "loss = autograd.reduce_mean(out * out).reshape((1,))"]
    text = names[0]
    for name in names[1:]:
        text = d.rng.choice(
            [
                f"{text} + {name}",
                f"{text} + 0.5 * {name}",
                f"{name} * 0.25 + {text}",
                f"{text} - {name} * 0.1",
            ]
        )
        d.program.tags["several losses"] += 1
    text = d.rng.choice([text, text, text, f"({text}) * 0.5", f"({text}) / 2", f"0.1 * ({text})"])
    line = f"loss = {text}"
    if not d.write(line, lines):
        lines.append(f"loss = {names[0]}")
    return lines


# ---- optimizers ----------------------------------------------------------------------------------

_ARGUMENTS = {
    "momentum": ("0.9", "0.5"),
    "dampening": ("0.1",),
    "weight_decay": ("0.01", "0.1"),
    "nesterov": ("True",),
    "rho": ("0.5",),
    "epsilon": ("1e-4", "1e-6"),
    "beta_1": ("0.5",),
    "beta_2": ("0.9",),
    "momentum_decay": ("0.1",),
    "centered": ("True",),
}
_RATES = ("0.1", "0.05", "0.01", "0.001")


_SCHEDULES = {
    "StepDecay": "0.1, 2, 0.5",
    "LinearDecay": "0.1, 3, 0.01",
    "CosineDecay": "0.1, 4",
    "OneCycle": "0.1, 6, 0.5",
    "Warmup": "2, opt.LinearDecay(0.1, 3)",
}


def schedule(rng: Random) -> str:
    """A schedule of a hyperparameter."""
    name = rng.choice(catalogue.schedules())
    if name == "ExponentialDecay":
        return f"opt.ExponentialDecay(0.1, 2, 0.5, {rng.random() < 0.5})"
    return f"opt.{name}({_SCHEDULES.get(name, '0.05')})"


def optimizer(d: Draw) -> str:
    """The text of an optimizer."""
    rng = d.rng
    name = rng.choice(catalogue.optimizers())
    d.program.tags[f"opt.{name}"] += 1
    rate = rng.choice(_RATES)
    if rng.random() < 0.15:
        rate = schedule(rng)
        d.program.tags[rate.partition("(")[0]] += 1
    made = [rate]
    for _ in range(4):
        parts = [rate]
        for key in _keywords(name):
            if rng.random() < 0.35:
                value = rng.choice(_ARGUMENTS[key])
                if rng.random() < 0.05 and key not in ("nesterov", "centered", "momentum_decay"):
                    value = schedule(rng)
                parts.append(f"{key}={value}")
        if rng.random() < 0.15:
            parts.append(rng.choice(("clip_norm=0.3", "clip_value=0.05", "clip_norm=0.1")))
        try:
            d.value(f"opt.{name}({', '.join(parts)})")
        except ValueError:  # options that exclude each other
            continue
        made = parts
        d.program.tags.update(f"opt {p.partition('=')[0]}" for p in parts[1:])
        break
    return f"opt.{name}({', '.join(made)})"


def _keywords(name: str) -> list[str]:
    import inspect

    return [k for k in inspect.signature(getattr(opt, name)).parameters if k in _ARGUMENTS]


# ---- updates -------------------------------------------------------------------------------------

_EACH = "for p in self.get_params().values():"
#: Ways from a loss to updated parameters: the number of optimizers they need, and lines.
UPDATES: dict[str, tuple[int, list[str]]] = {
    "called": (1, ["self.opt0(loss)"]),
    "backward_and_update": (1, ["self.opt0.backward_and_update(loss)"]),
    "in two parts": (
        1,
        [
            "self.opt0.accumulate(loss)",
            "self.opt0(autograd.reduce_mean(self.forward({inputs}) * 0.5).reshape((1,)))",
        ],
    ),
    "without step": (1, ["self.opt0.call(loss)"]),
    "pairs": (
        1,
        [
            "for p, g in autograd.backward(loss):",
            "    self.opt0.apply(p.name, p, g)",
            "self.opt0.step()",
        ],
    ),
    "clipped": (
        1,
        [
            "for p, g in autograd.backward(loss):",
            "    self.opt0.apply(p.name, p, g.clip(-0.1, 0.1))",
            "self.opt0.step()",
        ],
    ),
    "by norm": (
        1,
        [
            "pairs = list(autograd.backward(loss))",
            "with autograd.no_grad():",
            "    norm = sum(((g * g).sum() for _, g in pairs), tensor.zeros(())) + 1e-3",
            "    for p, g in pairs:",
            "        self.opt0.apply(p.name, p, (g / norm).as_type(p.dtype))",
            "self.opt0.step()",
        ],
    ),
    "two optimizers": (
        2,
        [
            "for p, g in autograd.backward(loss):",
            "    (self.opt0 if p.name.startswith('l') else self.opt1).apply(p.name, p, g)",
            "self.opt0.step()",
            "self.opt1.step()",
        ],
    ),
    "by shape": (
        2,
        [
            "for p, g in autograd.backward(loss):",
            "    (self.opt0 if p.ndim > 1 else self.opt1).apply(p.name, p, g)",
            "self.opt1.step()",
        ],
    ),
    "grad": (
        1,
        [
            "loss.backward()",
            _EACH,
            "    if p.grad is not None:",
            "        self.opt0.apply(p.name, p, p.grad)",
            "        p.grad = None",
            "self.opt0.step()",
        ],
    ),
    "grad set to 0": (
        1,
        [
            "loss.backward()",
            _EACH,
            "    if p.grad is not None:",
            "        self.opt0.apply(p.name, p, p.grad)",
            "        p.grad.set_value(0.0)",
        ],
    ),
    "accumulated": (
        1,
        [
            "(loss * 0.5).backward()",
            "if self.n % 2 == 0:",
            "    for p in self.get_params().values():",
            "        if p.grad is not None:",
            "            self.opt0.apply(p.name, p, p.grad)",
            "            p.grad = None",
        ],
    ),
    "accumulated within": (
        1,
        [
            "loss.backward()",
            "again = autograd.reduce_mean(self.forward({inputs}) * 0.5).reshape((1,))",
            "again.backward()",
            _EACH,
            "    if p.grad is not None:",
            "        self.opt0.apply(p.name, p, p.grad)",
            "        p.grad = None",
        ],
    ),
    "by hand": (
        0,
        [
            "grads = autograd.gradients(loss)",
            "with autograd.no_grad():",
            "    for p in self.get_params().values():",
            "        if p in grads:",
            "            p -= (grads[p] * 0.05).as_type(p.dtype)",
        ],
    ),
    "two losses": (
        2,
        [
            "self.opt0(loss)",
            "again = autograd.reduce_mean(autograd.abs(self.forward({inputs}))).reshape((1,))",
            "self.opt1(again)",
        ],
    ),
    "moving average": (
        1,
        [
            "self.opt0(loss)",
            "with autograd.no_grad():",
            "    for p, a in zip(self.get_params().values(), self.average):",
            "        a *= 0.9",
            "        a += p * 0.1",
        ],
    ),
    "none": (0, []),
}
#: Those that do not do the same in each step.
_BY_STEP = {"accumulated", "grad", "accumulated within"}


def update(d: Draw) -> list[str]:
    """Lines from the computation of gradients on."""
    what = d.rng.choices(list(UPDATES), [8, 2, 1] + [2] * (len(UPDATES) - 4) + [1])[0]
    count, lines = UPDATES[what]
    d.program.tags["update " + what] += 1
    if what in _BY_STEP:
        d.program.is_plain = False
    for i in range(count):
        d.define(f"self.opt{i} = {optimizer(d)}")
    if what == "moving average":
        names = [n for n in d.pool if n.startswith("self.p")]
        d.define(f"self.average = [p.clone().detach() for p in [{', '.join(names)}]]")
    return [line.replace("{inputs}", d.program.inputs) for line in lines]


def kept(d: Draw) -> list[str]:
    """Lines that keep values of the step in the model."""
    lines = []
    for form in (
        "self.kept = out",
        "self.last = (loss, out)",
        "self.log.append(loss)",
        "self.log[:] = [loss, out]",
        "self.table['out'] = out * 1.0",
        "self.s0 += out.detach().sum()",
        "self.s0 = self.s0 * 0.5 + loss.detach().sum()",
        "self.s0.copy_from(out.detach().mean().reshape(()))",
        "del out.grad",
        "self.kept = self.kept + out.sum() if self.kept is not None else out.sum()",
    ):
        if d.rng.random() < 0.06:
            lines.append(form)
            d.program.tags["kept"] += 1
            d.program.is_plain = False
    return [line for line in lines if not line.startswith("del")]


__all__ = ["kept", "losses", "update", "values"]
