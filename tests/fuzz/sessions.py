"""A session with a model: steps, evaluation, changes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import changes

if TYPE_CHECKING:
    from .draw import Draw


class Session:
    """The lines of a session under construction."""

    def __init__(self, d: Draw, batches: int) -> None:
        self.d, self.rng, self.batches = d, d.rng, batches
        self.lines: list[str] = []
        self.names = d.program.inputs.split(", ")
        self.models = ["m"]
        self.is_frozen = False

    def arguments(self, i: int, evaluates: bool = False) -> str:
        """The texts of a call's arguments."""
        d, made = self.d, [f"{name}{i}" for name in self.names]
        what = self.rng.random()
        if what < 0.05:
            made[0] = f"from_numpy({made[0]}.to_numpy())"
        elif what < 0.08:
            made[0] = f"{made[0]}.to_numpy()"
        elif what < 0.11:
            made[0] = f"({made[0]} * 0.5).detach()"
        elif what < 0.13 and d.value("x").rank > 1:
            made[0] = (
                f"from_numpy(np.ascontiguousarray({made[0]}.to_numpy().T)).transpose().detach()"
            )
        elif what < 0.15:
            made[0] = f"from_numpy(np.concatenate([{made[0]}.to_numpy()] * 2))[::2].detach()"
        elif what < 0.16:
            made[0] = f"autograd.tanh({made[0]})"  # recorded on the tape in training mode
            d.program.tags["arguments with a history"] += 1
        if len(made) > 1 and self.rng.random() < 0.2:
            made[1] = f"x{i}"
            d.program.tags["arguments that alias"] += 1
        if evaluates:
            return ", ".join(made)
        by_name = self.rng.random() < 0.08
        d.program.tags["arguments by name"] += by_name
        return ", ".join([*made, f"y=y{i}" if by_name else f"y{i}"])

    def add(self, tag: str, *lines: str) -> None:
        """Appends lines, counted."""
        self.d.program.tags["session " + tag] += 1
        self.lines += lines

    def step(self, i: int | None = None) -> None:
        """A step of training."""
        place = self.rng.randrange(self.batches) if i is None else i
        keep = "" if self.rng.random() < 0.7 else ", keep=False"
        model = self.rng.choice(self.models)
        call = self.rng.choice([model] * 5 + [f"{model}.train_one_batch"])
        self.add("step", f"see({call}({self.arguments(place)}){keep})")

    def evaluate(self) -> None:
        """Evaluation between steps."""
        i = self.rng.randrange(self.batches)
        if self.rng.random() < 0.15:
            within = self.rng.choice(["", "with autograd.no_grad(): "])
            self.add("forward in training", f"{within}see(m.forward({self.arguments(i, True)}))")
            return
        call = self.rng.choice(["m", "m", "m.forward"])
        arguments = self.arguments(i, True)
        lines = [f"see({call}({arguments}))"] * self.rng.randint(1, 4)
        self.add("evaluation", "m.eval()", *lines, "m.train()")

    def change(self) -> None:
        """Something between two steps."""
        self.rng.choice(changes.CHANGES)(self)


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
