"""Recurrent networks and their cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import RECIPES, Text, recipe_for

if TYPE_CHECKING:
    from ..draw import Draw

_GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def _maybe(d: Draw, text: str) -> str:
    return d.rng.choice(["", text])


def _lengths(d: Draw, rows: int, steps: int) -> str:
    return f", lengths={[d.rng.randint(0, steps) for _ in range(rows)]}"


def _function(d: Draw, name: str) -> Text:
    steps, rows, inputs, units = (d.rng.randint(1, 4) for _ in range(4))
    columns = _GATES[name] * units
    x = d.parameter((steps, rows, inputs))
    if d.rng.random() < 0.2:
        x = f"from_numpy(whole({d.seed()}, {(steps, rows)}, {inputs}))"
    state, more = units, ""
    if name == "lstm" and d.rng.random() < 0.3:
        state = d.rng.randint(1, 3)
        more += f", projection={d.parameter((units, state))}"
    weights = [d.parameter(shape) for shape in ((inputs, columns), (state, columns))]
    if d.rng.random() < 0.7:
        weights.append(d.parameter((d.rng.choice([1, 2]) * columns,)))
    if d.rng.random() < 0.5:
        more += f", h0={d.parameter((rows, state))}"
    if name == "lstm":
        more += _maybe(d, f", c0={d.parameter((rows, units))}")
        more += _maybe(d, f", peepholes={d.parameter((3 * units,))}")
        more += _maybe(d, ", gate_order='ifgo'")
    elif name == "gru":
        more += _maybe(d, ", linear_before_reset=True") + _maybe(d, ", gate_order='rzn'")
    else:
        more += _maybe(d, ", activation='relu'")
    more += _maybe(d, ", reverse=True") + _maybe(d, _lengths(d, rows, steps))
    return f"autograd.{name}({x}, {', '.join(weights)}{more})[0]"


for _name in _GATES:
    RECIPES[f"autograd.{_name}"] = lambda d, n=_name: _function(d, n)


def _made(d: Draw, text: str, *given: str) -> str:
    name = f"self.l{len(d.program.init)}"
    d.define(f"{name} = {text}")
    return f"{name}({', '.join(given)})"


_MORE = ["", ", 2", ", 2, dropout=0.3", ", batch_first=True", ", 2, bidirectional=True"]


@recipe_for("layer.RNN", "layer.LSTM", "layer.GRU")
def _layers(d: Draw) -> Text:
    kind = d.rng.choice(["RNN", "LSTM", "GRU"])
    steps, rows, inputs, units = (d.rng.randint(1, 4) for _ in range(4))
    if kind != "GRU" and d.rng.random() < 0.2:
        xs = ", ".join(d.parameter((rows, inputs)) for _ in range(steps))
        return f"{_made(d, f'layer.{kind}({inputs}, {units})', f'[{xs}]')}[0][-1]"
    more = d.rng.choice(_MORE) + ("" if kind == "RNN" else _maybe(d, ", bias=False"))
    given = [d.parameter((steps, rows, inputs))]
    if "batch_first" not in more and d.rng.random() < 0.3:
        given.append(_lengths(d, rows, steps)[2:])
    return f"{_made(d, f'layer.{kind}({inputs}, {units}{more})', *given)}[0]"


@recipe_for("layer.CudnnRNN")
def _flat(d: Draw) -> Text:
    how = [f", rnn_mode='{d.rng.choice(['lstm', 'gru', 'vanilla', 'relu'])}'"]
    how.append(d.rng.choice(["", ", num_layers=2", ", bidirectional=True", ", bias=False"]))
    how.append(_maybe(d, ", return_sequences=False"))
    x = d.parameter((d.rng.randint(1, 3), d.rng.randint(1, 4), 3))
    return _made(d, f"layer.CudnnRNN(2{''.join(how)})", x)


@recipe_for("layer.RNNCell", "layer.LSTMCell", "layer.GRUCell")
def _cells(d: Draw) -> Text:
    kind = d.rng.choice(["RNN", "LSTM", "GRU"])
    rows, inputs, units = (d.rng.randint(1, 4) for _ in range(3))
    given = [d.parameter((rows, inputs))]
    if d.rng.random() < 0.5:
        states = [d.parameter((rows, units)) for _ in range(2)]
        given.append(f"({', '.join(states)})" if kind == "LSTM" else states[0])
    call = _made(d, f"layer.{kind}Cell({inputs}, {units})", *given)
    return f"{call}[0]" if kind == "LSTM" else call
