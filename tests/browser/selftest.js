"use strict";
/* With #selftest, the page tries itself out by the events that a user makes, and writes what it
   found into the document as JSON. */

class SelfTest {
  constructor() { this.results = { failures: [], figures: {}, times: {} }; }

  check(name, isRight) {
    if (!isRight) this.results.failures.push(name);
  }

  send(target, Kind, name, init) {
    target.dispatchEvent(new Kind(name, { bubbles: true, cancelable: true, ...init }));
  }

  /* Median milliseconds of drawing a pane, until its pixels can be read. */
  redraw(pane, rounds = 21) {
    const times = [];
    for (let i = 0; i < rounds; i++) {
      pane.pan(i % 2 ? 7 : -7, i % 2 ? 5 : -5);
      const start = performance.now();
      pane.now();
      pane.context.getImageData(0, 0, 1, 1);
      times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[rounds >> 1];
  }

  point(pane, x, y) {
    const { left, top } = pane.canvas.getBoundingClientRect();
    return { clientX: left + x, clientY: top + y, pointerId: 1 };
  }

  zoom(pane) {
    pane.fit();
    const before = pane.kx;
    const at = this.point(pane, pane.width / 2, pane.height / 2);
    this.send(pane.canvas, WheelEvent, "wheel", { ...at, deltaY: -400 });
    this.check("the wheel zooms in", pane.kx > before);
    this.send(pane.canvas, KeyboardEvent, "keydown", { key: "0" });
    this.check("0 shows all again", Math.abs(pane.kx - before) < 1e-9 * before);
    const { x } = pane;
    this.send(pane.canvas, KeyboardEvent, "keydown", { key: "+" });
    this.send(pane.canvas, KeyboardEvent, "keydown", { key: "ArrowRight" });
    this.check("keys zoom and move", pane.kx > before && pane.x !== x);
    pane.fit();
  }

  graph(pane) {
    app.choose(null);
    const last = app.model.nodes.length - 1;
    pane.reveal(last);
    const { x, y } = pane.scene;
    const at = [pane.x + (x[last] + 5) * pane.kx, pane.y + (y[last] + 5) * pane.ky];
    this.send(pane.canvas, PointerEvent, "pointermove", this.point(pane, ...at));
    const tip = document.getElementById("tip");
    this.check("pointing at an operation names it", !tip.hidden && tip.textContent.includes(app.model.nodes[last].name));
    this.send(pane.canvas, PointerEvent, "pointerdown", this.point(pane, ...at));
    this.send(pane.canvas, PointerEvent, "pointerup", this.point(pane, ...at));
    const details = document.getElementById("details").textContent;
    this.check("a click chooses it", app.chosen === last);
    this.check("its line is told", details.includes(app.model.nodes[last].line));
    const { layer } = app.model.nodes[last];
    this.check("its layer is told, if it is known", !app.layers.isKnown ? !details.includes("(unknown)") : details.includes(layer));
    this.check("what it writes is told", app.model.nodes[last].outputs.every((out) => details.includes(tensor(out))));
    this.send(document.body, KeyboardEvent, "keydown", { key: "p" });
    this.check("p goes to the one before", app.chosen === Math.max(0, last - 1));
  }

  searchLayers() {
    const { layers, search, panes } = app, layer = layers.all.findLast(({ children }) => !children.length);
    if (!layers.isKnown) return;
    search.query.value = layer.path;
    this.send(search.query, InputEvent, "input", {});
    this.send(search.query, KeyboardEvent, "keydown", { key: "Enter" });
    const box = panes.graph.scene.byLayer.get(app.layer);
    this.check("the search finds a layer by its path", app.layer?.path.includes(layer.path) && box);
    this.check("its totals are told", document.getElementById("details").textContent.includes(totals(app.layer.total, app.model.profile !== null)));
    this.check("it is in sight", box.x * panes.graph.kx + panes.graph.x < panes.graph.width && box.y * panes.graph.ky + panes.graph.y < panes.graph.height);
    this.send(search.query, KeyboardEvent, "keydown", { key: "Escape" });
  }

  search() {
    const { model, search } = app, name = model.nodes.at(-1).name;
    search.query.value = name;
    this.send(search.query, InputEvent, "input", {});
    const want = model.nodes.filter((node) => node.name === name).length;
    this.check("the search finds every operation of a name", app.found.length >= want && !search.list.hidden);
    this.send(search.query, KeyboardEvent, "keydown", { key: "Enter" });
    this.check("Enter chooses the first", app.chosen === app.found[0] && search.list.hidden);
    search.query.value = "no such thing anywhere";
    this.send(search.query, InputEvent, "input", {});
    this.check("the search finds nothing else", app.found.length === 0 && !document.querySelector("#found [role=option]"));
    this.send(search.query, KeyboardEvent, "keydown", { key: "Escape" });
  }

  memory(pane) {
    const largest = app.model.alive(app.model.peak)[0];
    if (!largest) return;
    const [x, y, width, height] = pane.box(largest);
    const at = this.point(pane, Math.min(x + width / 2, pane.width - 20), y + height / 2);
    this.send(pane.canvas, PointerEvent, "pointermove", at);
    const tip = document.getElementById("tip"), box = pane.hovered;
    this.check("pointing at the arena tells the tensor", box && tip.textContent.includes(app.model.nameOf(box)));
    const isTold = box && [bytes(box.bytes), app.model.short(app.model.lineOf(box)), `to ${box.last}`].every((s) => tip.textContent.includes(s));
    this.check("its size, lifetime and line", isTold);
    app.choose(null);
    const sum = app.model.alive(app.model.peak).reduce((total, b) => total + Math.ceil(b.bytes / 64) * 64, 0);
    this.check("what is alive at the peak adds up to it", sum === app.model.curve[app.model.peak]);
  }

  timeline(pane) {
    if (!pane.total) return;
    this.send(pane.canvas, PointerEvent, "pointermove", this.point(pane, pane.width / 2, BAR.top + 10));
    this.check("pointing at the timeline tells a time", /s, /.test(document.getElementById("tip").textContent));
    this.check("the table lists operations", document.querySelectorAll("#hottest tbody tr").length > 0);
  }

  run() {
    app.pane.now();
    app.pane.context.getImageData(0, 0, 1, 1);
    this.results.times["first view, ms"] = performance.now() - started;
    for (const [name, pane] of Object.entries(app.panes)) {
      document.getElementById(`tab-${name}`).click();
      this.check(`the tab shows ${name}`, app.pane === pane && !pane.section.hidden);
      if (name === "timeline" && !pane.total) continue;
      this.zoom(pane);
      this[name](pane);
      if (name === "graph") new LayersTest(this).run(pane);
      pane.fit();
      this.results.figures[`${name} fitted, ms`] = this.redraw(pane);
      pane.zoom(0.01);
      this.results.figures[`${name} whole, ms`] = this.redraw(pane);
      pane.zoom(4);
      this.results.figures[`${name} near, ms`] = this.redraw(pane);
      pane.fit();
    }
    document.getElementById("tab-graph").click();
    this.search();
    this.searchLayers();
    const { accent } = app.colours;
    document.getElementById("theme").click();
    this.check("the other theme has other colours", app.colours.accent !== accent);
    document.getElementById("theme").click();
    return this.results;
  }
}

if (location.hash === "#selftest") {
  let results;
  try {
    results = new SelfTest().run();
  } catch (error) {
    results = { failures: [String(error.stack)] };
  }
  document.body.append(element("pre", { id: "selftest", hidden: "" }, JSON.stringify(results)));
}
