"""Recurrent networks: all steps of a layer in one direction."""

import numpy as np
from numeric import vjp
from singa_rs import _core, autograd

from .base import Arg, Bad, Table

SHAPE, DTYPE = _core.ShapeError, _core.DTypeError
table = Table()

GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3, "linear_gru": 3}
STEPS, ROWS, UNITS, STATE = 3, 3, 3, 2
LENGTHS = (2, 3, 0)


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return 0.5 * (1 + np.tanh(0.5 * x))


class Form:
    """A form of the operation, its inputs by name, and what NumPy computes for it."""

    def __init__(self, cell, reverse=False, peepholes=False, projection=False, lengths=False):
        self.attrs = {
            "cell": cell,
            "reverse": reverse,
            "peepholes": peepholes,
            "projection": projection,
            "lengths": lengths,
        }
        self.cell, self.reverse = cell, reverse
        self.is_lstm, self.is_gru = cell == "lstm", cell.endswith("gru")
        flags = {
            "given": True,
            "weight": True,
            "state": True,
            "start": self.is_lstm,
            "bias": cell == "linear_gru",
            "peepholes": peepholes,
            "projection": projection,
            "lengths": lengths,
        }
        self.names = tuple(name for name, is_there in flags.items() if is_there)

    def shapes(self, steps=STEPS, rows=ROWS, units=UNITS, state=STATE):
        """The shape of each input, by name."""
        state = state if self.attrs["projection"] else units
        columns = GATES[self.cell] * units
        every = {
            "given": (steps, rows, columns),
            "weight": (state, columns),
            "state": (rows, state),
            "start": (rows, units),
            "bias": (units,),
            "peepholes": (3 * units,),
            "projection": (units, state),
            "lengths": (rows,),
        }
        return {name: every[name] for name in self.names}

    def args(self, **extents):
        """The inputs of a case; the weights are small, as those of any use are."""
        made = []
        for name, shape in self.shapes(**extents).items():
            if name == "lengths":
                made.append(Arg(shape, dtype="int64", fixed=LENGTHS))
            elif name in ("weight", "projection", "peepholes"):
                made.append(Arg(shape, -0.2, 0.2))
            elif self.cell == "relu":  # no sum is close to its kink
                made.append(Arg(shape, -2, 2.06))
            else:
                made.append(Arg(shape))
        return tuple(made)

    def run(self, *inputs, nudge=None):
        """Results by name; `nudge` is added to the states before they are used, (T, N, P), or to
        the product of a GRU's candidate."""
        x = dict(zip(self.names, inputs, strict=True))
        given, h = x["given"], np.array(x["state"])
        steps, rows, columns = given.shape
        units, dtype = columns // GATES[self.cell], given.dtype
        c = np.array(x.get("start", np.zeros((rows, units))))
        lengths = np.asarray(x.get("lengths", np.full(rows, steps))).astype(int)
        found = {
            "states": np.zeros((steps, *h.shape), dtype),
            "gates": np.zeros(given.shape, dtype),
            "cells": np.zeros((steps, rows, units), dtype),
            "made": np.zeros((steps, rows, units), dtype),
        }
        for n in range(rows):
            for step in range(lengths[n]):
                t = lengths[n] - 1 - step if self.reverse else step
                add = 0 if nudge is None else nudge[t, n]
                state, gates, cell, made = self.step(x, given[t, n], h[n], c[n], add)
                h[n] = found["states"][t, n] = state
                found["gates"][t, n], found["cells"][t, n], found["made"][t, n] = gates, cell, made
                if self.is_lstm:
                    c[n] = cell
        return {**found, "state": h, "cell": c}

    def step(self, x, a, h, c, add):
        """The new state, the gates, what is kept, and the units before a projection."""
        weight = x["weight"]
        if not (self.is_lstm or self.is_gru):
            s = a + h @ weight
            state = np.tanh(s) if self.cell == "tanh" else np.where(s < 0, 0.0, s)
            return state, state, 0.0, 0.0
        if self.is_gru:
            return self.gru_step(x, a, h, add)
        i, o, f, g = np.split(a + h @ weight, 4)
        pi, po, pf = np.split(x["peepholes"], 3) if "peepholes" in x else (None,) * 3
        seen = lambda weight, c: 0 if weight is None else weight * c  # noqa: E731
        i, f, g = sigmoid(i + seen(pi, c)), sigmoid(f + seen(pf, c)), np.tanh(g)
        c = f * c + i * g
        o = sigmoid(o + seen(po, c))
        made = o * np.tanh(c)
        state = made @ x["projection"] if "projection" in x else made
        return state + add, np.concatenate([i, o, f, g]), c, made

    def gru_step(self, x, a, h, add):
        """The same for both kinds of gated recurrent unit."""
        weight, units = x["weight"], len(h)
        z, r = np.split(sigmoid(a[: 2 * units] + h @ weight[:, : 2 * units]), 2)
        if self.cell == "gru":
            product = None
            n = np.tanh(a[2 * units :] + (r * h) @ weight[:, 2 * units :])
        else:
            product = h @ weight[:, 2 * units :] + x["bias"] + add
            n = np.tanh(a[2 * units :] + r * product)
        return (1 - z) * n + z * h, np.concatenate([z, r, n]), product, 0.0

    def forward(self, *inputs):
        """The operation's outputs."""
        found = self.run(*inputs)
        names = ["states", "state", *(["cell"] if self.is_lstm else [])]
        names += ["gates"] if self.is_lstm or self.is_gru else []
        names += ["cells"] if self.is_lstm or self.cell == "linear_gru" else []
        return tuple(found[name] for name in names)

    def results(self, *inputs, nudge=None):
        """The outputs that have gradients."""
        found = self.run(*inputs, nudge=nudge)
        return tuple(found[n] for n in ("states", "state", "cell")[: 3 if self.is_lstm else 2])

    def gradient_inputs(self, *samples):
        """The inputs of the gradient's operation, from the gradients and forward's inputs."""
        count = 3 if self.is_lstm else 2
        x = dict(zip(self.names, samples[count:], strict=True))
        found = self.run(*samples[count:])
        own = [found["gates"]] if self.is_lstm or self.is_gru else []
        own += [] if self.is_lstm else [found["states"]]
        own += [x["state"]] if self.is_gru else []
        own += [found["cells"]] if self.is_lstm or self.cell == "linear_gru" else []
        own += [x["start"]] if self.is_lstm else []
        rest = [x[n] for n in ("weight", "peepholes", "projection", "lengths") if n in x]
        return (*samples[:count], *own, *rest)

    def gradients(self, *samples):
        """The outputs of the gradient's operation, by differences."""
        count = 3 if self.is_lstm else 2
        dys, inputs = samples[:count], samples[count:]
        which = [self.names.index(n) for n in ("given", "state", "start") if n in self.names]
        made = [vjp(self.results, inputs, i, dys) for i in which]
        if self.cell == "linear_gru" or self.attrs["projection"]:
            steps, rows, columns = inputs[0].shape
            width = columns // 3 if self.is_gru else inputs[2].shape[-1]

            def nudged(nudge):
                return self.results(*inputs, nudge=nudge)

            of_nudge = vjp(nudged, [np.zeros((steps, rows, width))], 0, dys)
            found = self.run(*inputs)
            made += [of_nudge] if self.is_gru else [found["made"], of_nudge]
        return tuple(made)

    def function(self, *tensors):
        """The states, by the rule."""
        x = dict(zip(self.names, tensors, strict=True))
        lengths = x.pop("lengths", None)
        names = {"start": "cell"}
        more = tuple(names.get(n, n) for n in x if n not in ("given", "weight"))
        form = autograd.recurrence.Form(**self.attrs)
        return autograd.recurrence.Recurrence(form, more, lengths)(*x.values())[0]


FORMS = {
    "": Form("lstm"),
    "reverse": Form("lstm", reverse=True),
    "lengths": Form("lstm", lengths=True),
    "all": Form("lstm", reverse=True, peepholes=True, projection=True, lengths=True),
    "peepholes": Form("lstm", peepholes=True),
    "projection": Form("lstm", projection=True),
}
for cell in ("tanh", "relu", "gru", "linear_gru"):
    FORMS[cell] = Form(cell)
    FORMS[f"{cell}-lengths"] = Form(cell, reverse=True, lengths=True)

for label, form in FORMS.items():
    args, shapes = form.args(), list(form.shapes().values())
    none = tuple(form.shapes(rows=0).values())
    no_steps = ((0, *shapes[0][1:]), *shapes[1:])
    large = tuple(form.shapes(steps=6, rows=37, units=96, state=64).values())
    has_lengths = form.attrs["lengths"]
    table.case(
        "recurrent",
        form.forward,
        *args,
        attrs=form.attrs,
        label=label,
        specials=(np.nan,),
        scale=8,
        gradient=form.function,
        wrt=tuple(i for i, name in enumerate(form.names) if name != "lengths"),
        empty=() if has_lengths else (none, no_steps),
        large=None if has_lengths else large,
        bad=(
            Bad(SHAPE, shapes=((4, 3), *shapes[1:])),
            Bad(SHAPE, shapes=(shapes[0], (7, 7), *shapes[2:])),
            Bad(SHAPE, shapes=(*shapes[:2], (9, 9), *shapes[3:])),
            Bad(DTYPE, dtypes=("float32", "float64", *["float32"] * (len(shapes) - 2))),
            Bad(DTYPE, dtypes=("int32",) * len(shapes)),
        ),
    )
    dys = [(STEPS, ROWS, shapes[1][0]), (ROWS, shapes[1][0])]
    dys += [(ROWS, UNITS)] if form.is_lstm else []
    samples = [np.zeros(s) for s in (*dys, *shapes)]
    if has_lengths:
        samples[-1] = np.array(LENGTHS)
    derived = [x.shape for x in form.gradient_inputs(*samples)]
    table.case(
        "recurrent_grad",
        form.gradients,
        *dys,
        *args,
        attrs=form.attrs,
        label=label,
        derive=form.gradient_inputs,
        derived=(None,) * (len(derived) - has_lengths) + (("int64",) if has_lengths else ()),
        specials=(),
        scale=20,
        bad=(Bad(SHAPE, shapes=((4, 3), *derived[1:])),),
    )
