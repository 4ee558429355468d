"""What is done with a model: steps, evaluation, changes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .draw import Draw


class Session:
    """The lines of a session in the making."""

    def __init__(self, d: Draw, batches: int) -> None:
        self.d, self.rng, self.batches = d, d.rng, batches
        self.lines: list[str] = []
        self.names = d.program.inputs.split(", ")
        self.models = ["m"]
        self.is_frozen = False
        #: What depends on the number of the step is noticed between steps that are called alike.
        lines = d.program.forward + d.program.update
        self.is_by_step = any("self.n %" in line for line in lines)

    def arguments(self, i: int, evaluates: bool = False) -> str:
        """The texts of a call's arguments."""
        d, made = self.d, [f"{name}{i}" for name in self.names]
        what = self.rng.random() + self.is_by_step
        if what < 0.05:
            made[0] = f"from_numpy({made[0]}.to_numpy())"
        elif what < 0.08:
            made[0] = f"{made[0]}.to_numpy()"
        elif what < 0.11:
            made[0] = f"{made[0]} * 0.5"
        elif what < 0.13 and d.value("x").rank > 1:
            made[0] = f"from_numpy(np.ascontiguousarray({made[0]}.to_numpy().T)).transpose()"
        elif what < 0.15:
            made[0] = f"from_numpy(np.concatenate([{made[0]}.to_numpy()] * 2))[::2]"
        if len(made) > 1 and self.rng.random() < 0.2 and not self.is_by_step:
            made[1] = f"x{i}"
            d.program.tags["arguments that alias"] += 1
        return ", ".join(made if evaluates else [*made, f"y{i}"])

    def add(self, tag: str, *lines: str) -> None:
        """Appends lines, counted."""
        self.d.program.tags["session " + tag] += 1
        self.lines += lines

    def step(self, i: int | None = None) -> None:
        """A step of training."""
        place = self.rng.randrange(self.batches) if i is None else i
        if self.is_by_step:
            place = 0
        keep = "" if self.rng.random() < 0.7 else ", keep=False"
        model = self.rng.choice(self.models)
        call = self.rng.choice([model] * 5 + [f"{model}.train_one_batch"])
        self.add("step", f"see({call}({self.arguments(place)}){keep})")

    def evaluate(self) -> None:
        """Evaluation between steps."""
        i = self.rng.randrange(self.batches)
        call = self.rng.choice(["m", "m", "m.forward"])
        arguments = self.arguments(i, True)
        lines = [f"see({call}({arguments}))"] * self.rng.randint(1, 4)
        self.add("evaluation", "m.eval()", *lines, "m.train()")

    def change(self) -> None:
        """Something between two steps."""
        changes = [
            self._parameter, self._rate, self._flag, self._inputs, self._plan, self._states,
            self._tap, self._freeze, self._seed, self._mode, self._look, self._count, self._file,
            self._kept, self._trim, self._assign, self._gradient, self._second,
        ]  # fmt: skip
        self.rng.choice(changes)()

    def _some(self) -> str | None:
        names = [n for n in self.d.pool if n.startswith("self.p")]
        return "m" + self.rng.choice(names)[4:] if names else None

    def _parameter(self) -> None:
        p = self._some()
        if p is not None:
            seed = self.d.seed()
            self.add(
                "parameter written",
                self.rng.choice(
                    [
                        f"{p}.copy_from(draw({seed}, {p}.shape))",
                        f"{p}.set_value(0.25)",
                        f"{p} *= 0.5",
                        f"{p}[...] = 0.5",
                        "m.set_params({k: v.to_numpy() * 0.5 for k, v in m.get_params().items()})",
                    ]
                ),
            )

    def _assign(self) -> None:
        p = self._some()
        if p is not None:
            self.add("memory exchanged", f"{p}.data = held(draw({self.d.seed()}, {p}.shape))")

    def _rate(self) -> None:
        if "self.opt0" in "\n".join(self.d.program.init):
            name, value = self.rng.choice(
                [("lr", "0.02"), ("lr", "0.2"), ("weight_decay", "0.05"), ("weight_decay", "0")]
            )
            if hasattr(self.d.value("self.opt0"), name):
                self.add("hyperparameter", f"m.opt0.{name} = {value}")

    def _flag(self) -> None:
        self.add("attribute", "m.flag = not m.flag")

    def _count(self) -> None:
        if not self.is_by_step:
            self.add("attribute", f"m.n = {self.rng.randint(0, 9)}")

    def _inputs(self) -> None:
        i = self.rng.randrange(self.batches)
        self.add(
            "argument written",
            self.rng.choice(
                [
                    f"x{i}.copy_from(draw({self.d.seed()}, x{i}.shape))",
                    f"x{i}[...] = x{i} * 0.5",
                    f"x{i}[0] = 0.5",
                ]
            ),
        )

    def _plan(self) -> None:
        i = self.rng.randrange(self.batches)
        plain = ", ".join([*(f"{name}{i}" for name in self.names), f"y{i}"])
        self.add("plan", f"m.plan({plain})")

    def _states(self) -> None:
        self.add("states", "states = {k: v.to_numpy() for k, v in m.get_states().items()}")
        self.step()
        self.lines.append("m.set_states(states)")

    def _file(self) -> None:
        if self.rng.random() < 0.3:
            self.add("file", 'm.save_states("states.zip")')
            self.step()
            self.lines.append('m.load_states("states.zip")')

    def _tap(self) -> None:
        layers = [
            line.split(" = ")[0][5:]
            for line in self.d.program.init
            if line.startswith("self.l") and " = layer." in line
        ]
        used = "\n".join(self.d.program.forward)
        layers = [one for one in layers if f"self.{one}(" in used]
        p = None if self.is_frozen else self._some()
        if layers and self.rng.random() < 0.7:
            what = repr(self.rng.choice(layers))
        elif p is not None:
            what = repr(p[2:])
        else:
            return
        grad = self.rng.choice(["", ", grad=True"])
        self.add("tap", f"tap = m.tap({what}{grad})")
        for _ in range(self.rng.randint(1, 3)):
            self.step()
            self.lines.append("see(tap.value, tap.grad)")
        self.lines.append("tap.remove()")

    def _freeze(self) -> None:
        p = self._some()
        if p is not None:
            name = self.rng.choice(["requires_grad", "stores_grad"])
            self.is_frozen = True
            self.add("frozen", f"{p}.{name} = {self.rng.random() < 0.4}")

    def _seed(self) -> None:
        self.add("seed", f"dev.set_seed({self.rng.randint(0, 9)})")

    def _mode(self) -> None:
        self.add(
            "mode", self.rng.choice(["m.train()", "autograd.training = True", "m.train(True)"])
        )

    def _look(self) -> None:
        self.add("look", "seen.look(m)")

    def _kept(self) -> None:
        self.add("kept", self.rng.choice(["see(m.kept)", "m.kept = None", "m.log.clear()"]))

    def _trim(self) -> None:
        self.add("trim", "dev.trim()")

    def _gradient(self) -> None:
        self.add(
            "gradients dropped",
            "for p in m.get_params().values():",
            f"    p.grad = {self.rng.choice(['None', 'p.grad'])}",
        )

    def _second(self) -> None:
        if len(self.models) == 1 and self.rng.random() < 0.5:
            self.models.append("o")
            inputs = ", ".join(name + "0" for name in self.names)
            self.add("second model", "o = Net()", f"o.compile([{inputs}], **how)")


def session(d: Draw, batches: int) -> list[str]:
    """The lines of a session: enough equal steps in a row that some are replayed."""
    made = Session(d, batches)
    main = d.rng.randrange(batches)
    changes = d.rng.random() < 0.6
    for _ in range(d.rng.randint(3, 5)):
        made.step(main)
        if changes and d.rng.random() < 0.35:
            made.change()
    if d.rng.random() < 0.3:
        made.evaluate()
    for _ in range(d.rng.randint(0, 2)):
        made.step()
        if changes and d.rng.random() < 0.3:
            made.evaluate() if d.rng.random() < 0.3 else made.change()
    return made.lines
