"""Changes to a model between two steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .sessions import Session


#: The first tensor of a result `r`.
FIRST = (
    "next(t for t in (r if isinstance(r, (tuple, list)) else r.values() if isinstance(r, dict)"
    " else [r]) if isinstance(t, Tensor))"
)


def some(s: Session) -> str | None:
    """The text of a parameter."""
    names = [n for n in s.d.pool if n.startswith("self.p")]
    return "m" + s.rng.choice(names)[4:] if names else None


def parameter(s: Session) -> None:
    """A parameter is written."""
    p = some(s)
    if p is not None:
        seed = s.d.seed()
        s.add(
            "parameter written",
            s.rng.choice(
                [
                    f"{p}.copy_from(draw({seed}, {p}.shape))",
                    f"{p}.set_value(0.25)",
                    f"{p} *= 0.5",
                    f"{p}[...] = 0.5",
                    "m.set_params({k: v.to_numpy() * 0.5 for k, v in m.get_params().items()})",
                ]
            ),
        )


def assign(s: Session) -> None:
    """A parameter gets other memory."""
    p = some(s)
    if p is not None:
        s.add("memory exchanged", f"{p}.data = held(draw({s.d.seed()}, {p}.shape))")


def rate(s: Session) -> None:
    """A hyperparameter changes."""
    if "self.opt0" in "\n".join(s.d.program.init):
        name, value = s.rng.choice(
            [("lr", "0.02"), ("lr", "0.2"), ("weight_decay", "0.05"), ("weight_decay", "0")]
        )
        if hasattr(s.d.value("self.opt0"), name):
            s.add("hyperparameter", f"m.opt0.{name} = {value}")


def flag(s: Session) -> None:
    """An attribute changes."""
    s.add("attribute", "m.flag = not m.flag")


def count(s: Session) -> None:
    """The counter changes."""
    s.add("attribute", f"m.n = {s.rng.randint(0, 9)}")


def inputs(s: Session) -> None:
    """A batch is written."""
    i = s.rng.randrange(s.batches)
    s.add(
        "argument written",
        s.rng.choice(
            [
                f"x{i}.copy_from(draw({s.d.seed()}, x{i}.shape))",
                f"x{i}[...] = x{i} * 0.5",
                f"x{i}[0] = 0.5",
            ]
        ),
    )


def plan(s: Session) -> None:
    """A step is planned."""
    i = s.rng.randrange(s.batches)
    plain = ", ".join([*(f"{name}{i}" for name in s.names), f"y{i}"])
    s.add("plan", f"m.plan({plain})")


def states(s: Session) -> None:
    """States are put back."""
    s.add("states", "states = {k: v.to_numpy() for k, v in m.get_states().items()}")
    s.step()
    s.lines.append("m.set_states(states)")


def file(s: Session) -> None:
    """States are written to a file and read again."""
    if s.rng.random() < 0.3:
        s.add("file", 'm.save_states("states.zip")')
        s.step()
        s.lines.append('m.load_states("states.zip")')


def tap(s: Session) -> None:
    """Values inside steps are tapped."""
    layers = [
        line.split(" = ")[0][5:]
        for line in s.d.program.init
        if line.startswith("self.l") and " = layer." in line
    ]
    used = "\n".join(s.d.program.forward)
    layers = [one for one in layers if f"self.{one}(" in used]
    p = None if s.is_frozen else some(s)
    if layers and s.rng.random() < 0.7:
        what = repr(s.rng.choice(layers))
    elif p is not None:
        what = repr(p[2:])
    else:
        return
    grad = s.rng.choice(["", ", grad=True"])
    s.add("tap", f"tap = m.tap({what}{grad})")
    for _ in range(s.rng.randint(1, 3)):
        s.step()
        s.lines.append("see(tap.value, tap.grad)")
    s.lines.append("tap.remove()")


def freeze(s: Session) -> None:
    """A parameter is frozen, or trained again."""
    p = some(s)
    if p is not None:
        name = s.rng.choice(["requires_grad", "stores_grad"])
        s.is_frozen = True
        s.add("frozen", f"{p}.{name} = {s.rng.random() < 0.4}")


def seed(s: Session) -> None:
    """The random generators are seeded again."""
    s.add("seed", f"dev.set_seed({s.rng.randint(0, 9)})")


def mode(s: Session) -> None:
    """The mode is set again."""
    s.add("mode", s.rng.choice(["m.train()", "autograd.training = True", "m.train(True)"]))


def look(s: Session) -> None:
    """All state is compared."""
    s.add("look", "seen.look(m)")


def kept(s: Session) -> None:
    """What the model keeps is compared or dropped."""
    s.add("kept", s.rng.choice(["see(m.kept, keep=False)", "m.kept = None", "m.log.clear()"]))


def trim(s: Session) -> None:
    """Memory is given back."""
    s.add("trim", "dev.trim()")


def gradient(s: Session) -> None:
    """Gradients are dropped."""
    s.add(
        "gradients dropped",
        "for p in m.get_params().values():",
        f"    p.grad = {s.rng.choice(['None', 'p.grad'])}",
    )


def block(s: Session) -> None:
    """A module below the model changes its mode."""
    blocks = [line.split(" = ")[0] for line in s.d.program.init if " = Block(" in line]
    if blocks:
        name = "m" + s.rng.choice(blocks)[4:]
        s.add("module's mode", f"{name}.{s.rng.choice(['eval', 'train'])}()")


def optimizer(s: Session) -> None:
    """An optimizer or its schedule is replaced."""
    if any(line.startswith("self.opt0") for line in s.d.program.init):
        new = s.rng.choice(["opt.Adam(0.01)", "opt.SGD(0.05, momentum=0.5)"])
        rate = "opt.ExponentialDecay(0.1, 2, 0.5, True)"
        line = s.rng.choice([f"m.opt0 = {new}", f"m.opt0.lr = {rate}"])
        s.add("optimizer exchanged", line)


def wrong(s: Session) -> None:
    """A call that may be refused, which ends the session."""
    if s.rng.random() < 0.3:
        given = ", ".join(f"{name}0" for name in s.names)
        line = s.rng.choice(
            [f"see(m({given}, y0 + 99))", f"see(m({given}))", f"see(m({given}, x0, 3))"]
        )
        s.add("wrong call", line)


def second(s: Session) -> None:
    """A second model on the same device."""
    if len(s.models) == 1 and s.rng.random() < 0.5:
        s.models.append("o")
        inputs = ", ".join(name + "0" for name in s.names)
        s.add("second model", "o = Net()", f"o.compile([{inputs}], **how)")


def layer_attribute(s: Session) -> None:
    """A setting of a layer changes, or the layer is replaced."""
    for line in s.d.program.init:
        name, _, made = line.partition(" = layer.")
        attribute = _SETTINGS.get(made.partition("(")[0])
        if attribute is not None and s.rng.random() < 0.5:
            s.add("layer's attribute", f"m{name[4:]}.{attribute}")
            return


#: By layer: the attributes that may be set.
_SETTINGS = {
    "Dropout": "ratio = 0.8",
    "BatchNorm2d": "momentum = 0.3",
    "LeakyReLU": "a = 0.3",
    "ELU": "alpha = 0.5",
    "SoftMax": "axis = -1",
    "Flatten": "axis = 0",
    "HardSigmoid": "alpha = 0.3",
    "RankingLoss": "M = 0.4",
    "Gemm": "alpha = 0.25",
}


def schedule(s: Session) -> None:
    """A schedule's own attributes change."""
    new = s.rng.choice(["decay_rate = 0.9", "init_value = 0.2", "decay_steps = 1"])
    if any(" = opt." in line and "ExponentialDecay" in line for line in s.d.program.init):
        s.add(
            "schedule's attribute",
            "for o in (getattr(m, 'opt0', None), getattr(m, 'opt1', None)):",
            "    if isinstance(getattr(o, 'lr', None), opt.ExponentialDecay):",
            f"        o.lr.{new}",
        )


def container(s: Session) -> None:
    """The contents of one of the model's containers, which the step reads, change."""
    s.add(
        "container",
        s.rng.choice(
            [
                "m.table['scale'] = 2.0",
                "m.table['list'][0] = 3.0",
                "m.table['list'].append(0.5)",
                "m.table.pop('more', None)",
            ]
        ),
    )


def result(s: Session) -> None:
    """The caller writes into a result, or gives it to the next step."""
    given = ", ".join([*(f"{name}0" for name in s.names), "y0"])
    s.add(
        "result written",
        f"r = m({given})",
        s.rng.choice(
            [f"{FIRST}.set_value(7.0)", f"{FIRST}[...] = 0.5", f"x0[...] = {FIRST}.mean()"]
        ),
        "see(r)",
    )


def later_loss(s: Session) -> None:
    """A result of a step takes part in a loss outside the step."""
    if s.d.program.update:
        return
    given = ", ".join([*(f"{name}0" for name in s.names), "y0"])
    s.add(
        "later loss",
        *[
            f"r = m({given})",
            f"total = {FIRST}.sum() * 0.5 + sum((p * p).sum() for p in m.get_params().values())",
            "see(*(g for _, g in autograd.backward(total)))",
        ]
        * s.rng.randint(1, 3),
    )


def parameter_given(s: Session) -> None:
    """A parameter, or a view of one, is an argument."""
    shape = s.d.value("x").shape
    fits = [n for n in s.d.pool if n.startswith("self.p") and s.d.value(n).shape == shape]
    if fits:
        name = "m" + s.rng.choice(fits)[4:]
        given = ", ".join([name, *(f"{n}0" for n in s.names[1:]), "y0"])
        s.add("parameter given", *[f"see(m({given}))"] * s.rng.randint(1, 3))


def requires(s: Session) -> None:
    """An argument starts or stops requiring a gradient."""
    s.add("argument's gradient", f"x0.requires_grad = {s.rng.random() < 0.5}")


def marked(s: Session) -> None:
    """An argument gains or loses a name, or an attribute that the step may read."""
    x = f"x{s.rng.randrange(s.batches)}"
    mark = s.rng.choice(["tag = 2.0", "tag = 0.5", "name = 'given'", "__dict__.pop('tag', None)"])
    s.add("argument marked", f"{x}.{mark}")


def graph(s: Session) -> None:
    """The model runs without graphs, or is compiled again."""
    inputs = ", ".join(name + "0" for name in s.names)
    s.add("compiled again", f"m.compile([{inputs}], **how)")


def copied(s: Session) -> None:
    """A copy of the model takes its place."""
    s.add("copied", "import copy", "m = copy.deepcopy(m)", "seen.models.append(m)")


CHANGES = (
    parameter, assign, rate, flag, count, inputs, plan, states, file, tap, freeze, seed, mode, look,
    kept, trim, gradient, block, optimizer, wrong, second, layer_attribute, schedule, container,
    result, later_loss, parameter_given, requires, marked, graph,
    copied,
)  # fmt: skip
