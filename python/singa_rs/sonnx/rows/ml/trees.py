"""Ensembles of decision trees, walked by all rows at once, level by level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .... import autograd
from ....autograd.casting import cast, floating
from ....tensor import Tensor, float32
from ...running import Frame
from ...table import reads
from .features import DOMAIN, table
from .scores import NAMES, labelled, transformed

#: How a node compares, by the numbers that TreeEnsemble has for it.
_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_COMPARISONS = {
    "LEQ": autograd.less_equal, "LT": autograd.less, "GTE": autograd.greater_equal,
    "GT": autograd.greater, "EQ": autograd.equal, "NEQ": autograd.not_equal,
}  # fmt: skip
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class Forest(NamedTuple):
    """Trees as arrays over all of their nodes; a leaf is followed by itself."""

    roots: np.ndarray
    modes: np.ndarray
    features: np.ndarray
    splits: np.ndarray
    #: By node: where a row goes that passes, and one that does not.
    yes: np.ndarray
    no: np.ndarray
    #: Whether NaN passes.
    missing: np.ndarray
    #: By node: the members of its set, filled up with NaN.
    members: np.ndarray | None = None

    def depth(self) -> int:
        """The most steps from a root to a leaf."""
        level, steps = np.unique(self.roots), 0
        while np.any((self.yes[level] != level) | (self.no[level] != level)):
            if steps > len(self.yes):
                raise ValueError("got trees whose nodes go round in circles")
            level, steps = np.unique([self.yes[level], self.no[level]]), steps + 1
        return steps

    def leaves(self, x: Tensor) -> Tensor:
        """The leaf of each row in each tree (N, trees)."""
        at = autograd.expand(table(self.roots, x).unsqueeze(0), (x.shape[0], len(self.roots)))
        for _ in range(self.depth()):
            value = autograd.take_along_axis(x, self._at("features", at), 1)
            passes = autograd.where(
                autograd.isnan(value), self._at("missing", at), self._passes(value, at)
            )
            at = autograd.where(passes, self._at("yes", at), self._at("no", at))
        return at

    def _at(self, name: str, at: Tensor, dtype: Any = None) -> Tensor:
        array = getattr(self, name)
        values = table(array if dtype is None else array.astype(dtype), at)
        return autograd.gather(values, 0, at)

    def _passes(self, value: Tensor, at: Tensor) -> Tensor:
        """Whether values pass the nodes that they are at."""
        split, mode = self._at("splits", at, value.dtype.name), self._at("modes", at)
        found = autograd.equal(value, value)
        for name in sorted({*self.modes} - {-1}):
            kind = _MODES[name]
            made = (
                self._is_member(value, at) if kind == "MEMBER" else _COMPARISONS[kind](value, split)
            )
            found = autograd.where(mode == int(name), made, found)
        return found

    def _is_member(self, value: Tensor, at: Tensor) -> Tensor:
        return autograd.any(value.unsqueeze(-1) == self._at("members", at, value.dtype.name), -1)


def _either(given: dict[str, Any], name: str) -> np.ndarray | None:
    """An attribute of floats, which may be a tensor of doubles."""
    tensor, floats = given.get(f"{name}_as_tensor"), given.get(name)
    return tensor if tensor is not None else None if floats is None else np.float32(floats)


def _forest(given: dict[str, Any]) -> tuple[Forest, dict[tuple[int, int], int]]:
    """The trees of an operator whose nodes are named by trees and numbers; with their places."""
    names = list(zip(given["nodes_treeids"], given["nodes_nodeids"], strict=True))
    place = {name: i for i, name in enumerate(names)}
    first = {tree: i for i, (tree, _) in reversed(list(enumerate(names)))}
    modes = np.array([_mode(one) for one in given["nodes_modes"]], np.int64)

    def followers(key: str) -> np.ndarray:
        to = [place.get((tree, n), -1) for (tree, _), n in zip(names, given[key], strict=True)]
        found = np.where(modes < 0, np.arange(len(names)), np.array(to, np.int64))
        if np.any(found < 0):
            raise ValueError(f"got {key} that names a node that its tree does not have")
        return found

    missing = given.get("nodes_missing_value_tracks_true") or np.zeros(len(names))
    forest = Forest(
        np.array([first[tree] for tree in sorted(first)], np.int64), modes,
        np.array(given["nodes_featureids"], np.int64), _either(given, "nodes_values"),
        followers("nodes_truenodeids"), followers("nodes_falsenodeids"), np.array(missing) > 0,
    )  # fmt: skip
    return forest, place


def _mode(name: str) -> int:
    if name == "LEAF":
        return -1
    kind = name.removeprefix("BRANCH_")
    if kind not in _COMPARISONS:
        raise ValueError(f"got mode {name!r} of a node, want 'LEAF' or 'BRANCH_' and a comparison")
    return _MODES.index(kind)


def _votes(
    given: dict[str, Any], kind: str, place: dict[tuple[int, int], int], count: int, how: str
) -> np.ndarray:
    """What each node gives to each target (nodes, targets)."""
    extreme = {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add)
    weights = _either(given, f"{kind}_weights")
    made = np.full((len(place), count), _start(how, weights.dtype), weights.dtype)
    trees, nodes, ids = (given[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids"))
    rows = [place[name] for name in zip(trees, nodes, strict=True)]
    extreme.at(made, (rows, list(ids)), weights)
    return made


def _start(how: str, dtype: Any) -> float:
    ends = {"MIN": np.finfo(dtype).max, "MAX": np.finfo(dtype).min}
    return ends.get(how, 0.0)


def _aggregated(votes: Tensor, how: str) -> Tensor:
    """What the trees give together: (N, trees, targets) to (N, targets)."""
    if how not in _AGGREGATES:
        raise ValueError(f"got aggregate_function {how!r}, want one of {', '.join(_AGGREGATES)}")
    over = {"MIN": autograd.reduce_min, "MAX": autograd.reduce_max, "AVERAGE": autograd.reduce_mean}
    return over.get(how, autograd.reduce_sum)(votes, 1, 0)


def _predicted(x: Tensor, forest: Forest, votes: np.ndarray, how: str, base: Any) -> Tensor:
    x = floating(x)
    given = autograd.gather(table(votes.astype(x.dtype.name), x), 0, forest.leaves(x))
    made = _aggregated(given, how)
    return made if base is None else made + table(np.asarray(base, x.dtype.name), x)


@reads("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(
    x: Tensor, *, n_targets: int, aggregate_function: str = "SUM", post_transform: str = "NONE",
    **given: Any,
) -> Tensor:  # fmt: skip
    """What the trees give for each target, in float32."""
    forest, place = _forest(given)
    votes = _votes(given, "target", place, n_targets, aggregate_function)
    made = _predicted(x, forest, votes, aggregate_function, _either(given, "base_values"))
    return cast(transformed(made, post_transform), float32)


@reads("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(
    x: Tensor, *, classlabels_int64s: Any = (), classlabels_strings: Any = (),
    post_transform: str = "NONE", frame: Frame, **given: Any,
) -> tuple[Any, Tensor]:  # fmt: skip
    """The label of the highest score of each row, and the scores in float32.

    Of two classes, if all weights are of the first, they are taken for the second: scores `s` mean
    `1 - s` and `s`, or, before a transform or where weights are negative, `-s` and `s`.
    """
    labels = classlabels_strings or classlabels_int64s
    forest, place = _forest(given)
    votes = _votes(given, "class", place, len(labels), "SUM")
    scores = _predicted(x, forest, votes, "SUM", _either(given, "base_values"))
    if len(labels) <= 2 and set(given["class_ids"]) == {0}:
        is_share = post_transform == "NONE" and np.min(_either(given, "class_weights")) >= 0
        second = scores[:, :1]
        scores = autograd.cat([1.0 - second if is_share else -second, second], 1)
        labels = labels if len(labels) == 2 else (0, 1)
    made = cast(transformed(scores, post_transform), float32)
    return labelled(autograd.argmax(scores, 1), labels, frame), made


def _sets(modes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The members for each node, filled up with NaN, from those of all, each set ended by NaN."""
    ends = np.flatnonzero(np.isnan(values))
    parts = iter(np.split(values, ends + 1))
    found = [next(parts) if mode == _MODES.index("MEMBER") else values[:0] for mode in modes]
    made = np.full((len(modes), max(map(len, found))), np.nan, values.dtype)
    for row, part in zip(made, found, strict=True):
        row[: len(part)] = part
    return made


def _with_leaves(given: dict[str, Any], leaves: int) -> Forest:
    """The trees of an operator that keeps leaves apart: they stand after all nodes."""
    count = len(given["nodes_modes"])

    def over_all(nodes: Any, dtype: Any, leaf: float = 0) -> np.ndarray:
        return np.append(np.asarray(nodes), np.full(leaves, leaf)).astype(dtype)

    def followers(way: str) -> np.ndarray:
        to, is_leaf = (np.asarray(given[f"nodes_{way}{end}"]) for end in ("nodeids", "leafs"))
        return np.append(to + count * is_leaf, count + np.arange(leaves))

    modes, members = over_all(given["nodes_modes"], np.int64, -1), given.get("membership_values")
    splits, missing = given["nodes_splits"], given.get("nodes_missing_value_tracks_true")
    return Forest(
        np.array(given["tree_roots"], np.int64), modes,
        over_all(given["nodes_featureids"], np.int64), over_all(splits, splits.dtype),
        followers("true"), followers("false"), over_all(missing or np.zeros(count), bool),
        None if members is None else _sets(modes, members),
    )  # fmt: skip


@reads("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble(
    x: Tensor, *, n_targets: int, leaf_targetids: Any, leaf_weights: np.ndarray,
    aggregate_function: int = 1, post_transform: int = 0, **given: Any,
) -> Tensor:  # fmt: skip
    """What the trees give for each target."""
    how, dtype, leaves = _AGGREGATES[aggregate_function], leaf_weights.dtype, len(leaf_weights)
    forest = _with_leaves(given, leaves)
    votes = np.full((len(forest.modes), n_targets), _start(how, dtype), dtype)
    votes[np.arange(leaves) - leaves, list(leaf_targetids)] = leaf_weights
    return transformed(_predicted(x, forest, votes, how, None), NAMES[post_transform])
