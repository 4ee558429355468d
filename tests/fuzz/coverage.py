"""How often each entry was drawn, and each rewriting rule fired."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from . import catalogue, motifs, training, values, ways
from .program import Program
from .run import Seen

#: Roles of a graph's blocks.
ROLES = ("argument", "captured", "slot", "temporary")
#: All but `reduction`, which is for larger tensors; random programs in Rust fuse them at any size.
RULES = (
    "functionalize cse dce batch_norm update links producer pack hoist fold_batch_norm "
    "log_softmax sum"
).split()
#: Rows for which a few hundred seeds do not suffice.
RARE = {"rule update", "rule pack", "rule fold_batch_norm", "rule sum", "rule log_softmax"}
_SESSIONS = (
    "step,evaluation,parameter written,hyperparameter,attribute,argument written,plan,states,file,"
    "tap,frozen,seed,mode,look,kept,trim,memory exchanged,gradients dropped,second model,"
    "module's mode,optimizer exchanged,wrong call,layer's attribute,"
    "schedule's attribute,container,result written,parameter given,argument's gradient,"
    "later loss,compiled again,copied,forward in training,argument marked"
).split(",")
_KINDS = (
    "small,large,batch sizes,several losses,control flow by step,without gradients,writes,kept,"
    "arguments that alias,arguments with a history,arguments by name"
).split(",")


def rows() -> list[str]:
    """All rows that must be hit."""
    made = list(catalogue.entries())
    made += [f"opt.{name}" for name in (*catalogue.optimizers(), *catalogue.schedules())]
    made += [f"motif {name}" for name in motifs.MOTIFS]
    made += [f"update {name}" for name in training.UPDATES]
    made += [f"dtype {name}" for name in values.DTYPES]
    made += [f"way {way.name}" for way in ways.ALL if way.name != "eager, without a session"]
    made += [f"session {name}" for name in _SESSIONS] + list(_KINDS)
    return made + [f"rule {name}" for name in RULES] + [f"role {name}" for name in ROLES]


def count(program: Program, seen: dict[str, Seen], into: Counter) -> None:
    """Adds what a program drew, and how it ran."""
    into.update(program.tags)
    into["programs"] += 1
    for name, one in seen.items():
        into[f"way {name}"] += 1
        into["replays"] += one.replays
        into["programs replayed"] += name == ways.REPLAYED.name and one.replays > 0
        if one.error is not None:
            into[f"error {type(one.error).__name__}"] += name == ways.EAGER.name
    if ways.REPLAYED.name in seen:
        _operations(map(_data, _graphs(seen[ways.REPLAYED.name])), into)


def _operations(graphs: Iterable[dict[str, Any]], into: Counter) -> None:
    into.update(f"operation {node['name']}" for graph in graphs for node in graph["nodes"])


def _data(graph: Any) -> dict[str, Any]:
    return json.loads(graph.to_json())


# ---- rules ---------------------------------------------------------------------------------------


#: The ways whose graphs tell which rules fired: as recorded, rewritten, rewritten within rounding.
RULE_WAYS = tuple(map(ways.named, ("as recorded", "within rounding")))


def rules(seen: dict[str, Seen], into: Counter) -> None:
    """Adds the operations in the graphs of a program, and the rules that fired on them."""
    recorded, rounded = (_graphs(seen[way.name]) for way in RULE_WAYS)
    for rewritten in (_graphs(seen[ways.REPLAYED.name]), rounded):
        for before, after in zip(recorded, rewritten, strict=False):
            old, new = _data(before), _data(after)
            _operations((old, new), into)
            into.update(f"role {block['role']}" for block in new["blocks"])
            for rule in _fired(old, new, after.constants[0]):
                into[f"rule {rule}"] += 1


def _graphs(seen: Seen) -> list[Any]:
    return [graph for model in seen.models for graph in model.graphs]


def _fired(old: dict[str, Any], new: dict[str, Any], constants: int) -> set[str]:
    names = Counter(node["name"] for node in new["nodes"])
    were = Counter(node["name"] for node in old["nodes"])
    text = json.dumps([node["attributes"] for node in new["nodes"]])
    fired = set()
    if names["chain"]:
        fired.add("links")
    if any(name.endswith("_chain") for name in names):
        fired.add("producer")
    if names["normalize"] or '"normalize"' in text:
        fired.add("batch_norm")
    if names["matmul_update"]:
        fired.add("update")
    if names["matmul_add"]:
        fired.add("sum")
    if constants:
        fired.add("hoist")
    if names["packed"]:
        fired.add("pack")
    if were["batch_norm_inference"] and not names["normalize"] and constants:
        fired.add("fold_batch_norm")
    if were["log"] and "log_softmax" in text + "".join(names) and not were["log_softmax"]:
        fired.add("log_softmax")
    return fired | _gone(old, new)


def _gone(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """The rules that only remove operations, detected by what is missing afterwards."""
    fired, seen, read = set(), set(), set()
    written: set[int] = set()
    for node in old["nodes"]:
        inputs = json.dumps([node["name"], node["attributes"], node["inputs"]])
        outputs = {place["block"] for place in node["outputs"]}
        if outputs & {place["block"] for place in node["inputs"]}:
            if all(old["blocks"][b]["role"] == "temporary" for b in outputs):
                fired.add("functionalize")
        elif inputs in seen and not {p["block"] for p in node["inputs"]} & written:
            fired.add("cse")
        seen.add(inputs)
        written |= outputs & {place["block"] for place in node["inputs"]}
        read |= {place["block"] for place in node["inputs"]}
    for node in old["nodes"]:
        blocks = [place["block"] for place in node["outputs"]]
        if all(b not in read and old["blocks"][b]["role"] == "temporary" for b in blocks):
            fired.add("dce")
    return fired


# ---- the table -----------------------------------------------------------------------------------


def table(counts: Counter) -> str:
    """Markdown: each row with its count, rare ones first."""
    lines = ["| drawn | times |", "|---|---|"]
    known = rows()
    lines += [f"| {name} | {counts[name]} |" for name in sorted(known, key=lambda n: counts[n])]
    rest = sorted(name for name in counts if name not in set(known))
    return "\n".join([*lines, *(f"| ({name}) | {counts[name]} |" for name in rest)])


def missing(counts: Counter) -> list[str]:
    """Rows that nothing hit."""
    return [name for name in rows() if not counts[name]]
