"""Pictures of graphs: the page, the trace, Graphviz's text, the profile."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from recorded import CPU, B, Net, copy, pair, same_states, step, tensor
from singa_rs import autograd, viz
from singa_rs.tensor import from_numpy
from singa_rs.viz.pictures import SCRIPTS, embedded

HOSTILE = "</script><script>alert(1)</script><!-- {{DATA}} & \"'\\ \u2028 é"


@pytest.fixture(scope="module")
def trained():
    """A model whose step is replayed, and one that runs eagerly."""
    models = pair(Net)
    for _ in range(3):
        step(*models, *B)
    return models


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data


def page_of(graph, tmp_path):
    path = tmp_path / "graph.html"
    graph.to_html(path)
    return path.read_text("utf-8")


def test_graphs_are_listed_with_figures_and_pictures(trained):
    (graph,) = trained[0].graphs
    assert graph is trained[0].graphs[0], "so that it keeps its profile"
    assert graph.nodes > 10 and graph.arena_bytes >= graph.lower_bound_bytes
    assert graph.title == "Net.train_one_batch, graph 0"
    assert "operations:" in graph.summary()
    assert not hasattr(graph, "nothing")


def test_json_names_tensors_and_lines(trained):
    made = json.loads(trained[0].graphs[0].to_json())
    assert len(made["nodes"]) == len(made["curve"]) == made["totals"]["nodes"]
    assert max(made["curve"]) == made["totals"]["peak_bytes"]
    names = [block["name"] for block in made["blocks"]]
    assert {"fc1.W", "fc1.b", "norm.scale", "argument 0", "argument 1"} <= set(names)
    for node in made["nodes"]:
        assert re.search(r"recorded\.py:\d+$", node["line"])
        assert node["bytes"] > 0 and node["flops"] >= 0
    for block in made["blocks"]:
        if block["role"] in ("temporary", "slot") and block["first"] is not None:
            assert "recorded.py:" in block["line"]
            assert re.search(r" (float|int)\d\d (scalar|[\dx]+)$", block["name"])


# ---- the page ------------------------------------------------------------------------------------


def test_the_page_loads_nothing(trained, tmp_path):
    page = page_of(trained[0].graphs[0], tmp_path)
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bfetch\(|XMLHttp|import\(", page)
    for tag, attributes in Page(page).elements:
        assert "src" not in attributes and tag not in ("iframe", "img", "object", "embed")
        assert attributes.get("href", "data:,") == "data:,"
    assert "default-src 'none'" in page, "and the browser would refuse it"


def test_the_page_holds_the_graph_as_json(trained, tmp_path):
    graph = trained[0].graphs[0]
    data, script = Page(page_of(graph, tmp_path)).scripts
    made = json.loads(data)
    assert {k: made[k] for k in graph.data()} == json.loads(graph.to_json())
    assert made["title"] == graph.title
    sources = made["sources"].values()
    assert any(text.startswith("return self.fc2") for text in sources)
    assert script.count('"use strict";') == len(SCRIPTS)


def test_hostile_names_stay_text(trained, tmp_path):
    core = trained[0].graphs[0]._graph
    names = {id_: f"{HOSTILE}{i}" for i, id_ in enumerate(core.captured())}
    graph = viz.Graph(core, HOSTILE, names)
    text = page_of(graph, tmp_path)
    page = Page(text)
    assert len(page.scripts) == 2 and "alert" not in page.scripts[1]
    made = json.loads(page.scripts[0])
    assert made["title"] == HOSTILE
    assert set(names.values()) <= {block["name"] for block in made["blocks"]}
    assert "<script>alert" not in text and "<!-- " not in text
    assert "\\" not in graph.to_dot().replace('\\"', "").replace("\\\\", "").replace("\\n", "")


def test_what_is_embedded_is_the_same_json():
    value = {"a": HOSTILE, "b": [1.5, None, True]}
    assert json.loads(embedded(value)) == value
    assert not set("<>&") & set(embedded(value))


# ---- the profile ---------------------------------------------------------------------------------


def test_a_profile_says_what_each_operation_takes(trained, tmp_path):
    graph = trained[0].graphs[0]
    profile = graph.profile(3)
    assert len(profile) == graph.nodes and profile.runs == 3
    data = graph.data()
    for one, node in zip(profile, data["nodes"], strict=True):
        assert one.name == node["name"] and one.line == node["line"] and one.seconds >= 0
        assert (one.flops, one.bytes) == (node["flops"], node["bytes"])
        assert 0 <= one.waiting <= one.seconds
    text = profile.summary(most=4)
    assert "matmul" in text and "recorded.py" in text and "more" in text.splitlines()[-1]
    made = json.loads(Page(page_of(graph, tmp_path)).scripts[0])
    assert made["profile"]["seconds"] == [one.seconds for one in profile]
    assert sum(made["profile"]["waiting"]) == profile.waiting


def test_a_profile_leaves_no_trace(trained):
    recorded, eager = trained
    out, loss = step(recorded, eager, *B)
    before = copy(out), copy(loss)
    graph = recorded.graphs[0]
    runs = graph.runs
    graph.profile(2)
    graph.profile(2, [tensor(*B[0].shape), from_numpy(B[1])])
    assert graph.runs == runs
    same_states(recorded, eager)
    assert all(
        np.array_equal(a.to_numpy(), b.to_numpy()) for a, b in zip((out, loss), before, strict=True)
    )
    step(recorded, eager, *B)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_a_profile_wants_a_number_of_runs(trained, n):
    with pytest.raises(ValueError, match="profile: got n="):
        trained[0].graphs[0].profile(n)


def test_arguments_of_another_shape_are_refused(trained):
    with pytest.raises(ValueError, match="as recorded"):
        trained[0].graphs[0].profile(1, [tensor(2, 2), from_numpy(B[1])])


def test_kept_tensors_keep_showing_the_previous_run():
    x, w = tensor(3), tensor(3)
    with CPU.record() as graph:
        y = x + w
        w += x
    graph.run()
    want, weights = copy(y), copy(w)
    graph.profile(4)
    assert np.array_equal(y.to_numpy(), want.to_numpy())
    assert np.array_equal(w.to_numpy(), weights.to_numpy())
    graph.run()
    assert np.array_equal(y.to_numpy(), (x + weights).to_numpy())


# ---- other formats -------------------------------------------------------------------------------


def test_a_trace_lays_operations_end_to_end(trained, tmp_path):
    graph = trained[0].graphs[0]
    graph.last_profile = None
    graph.to_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    operations = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in operations] == [one.name for one in graph.last_profile]
    now = 0.0
    for event in operations:
        assert event["ts"] == pytest.approx(now) and "recorded.py" in event["args"]["line"]
        now += event["dur"]
    counters = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert max(counters) == graph.peak_bytes


def test_dot_has_every_operation_and_edge(trained):
    graph = trained[0].graphs[0]
    text = graph.to_dot()
    assert text.startswith('digraph "Net.train_one_batch, graph 0" {') and text.endswith("}\n")
    assert len(re.findall(r"^  n\d+ \[", text, re.M)) == graph.nodes
    known = set(re.findall(r"^  ([nb]\d+) \[", text, re.M))
    arrows = re.findall(r"^  (\w+) -> (\w+) \[label=\"\w+ \(", text, re.M)
    assert arrows and {end for arrow in arrows for end in arrow} <= known
    assert re.search(r'b\d+ \[label="fc1\.W", shape=box', text)


def test_a_step_recorded_by_hand_has_pictures_too(tmp_path):
    x = tensor(4, 4)
    with CPU.record() as graph:
        y = autograd.relu(x @ x)
    graph.run()
    graph.profile(1)
    assert "matmul" in page_of(graph, tmp_path) and "matmul" in graph.to_dot()
    assert y.shape == (4, 4)
