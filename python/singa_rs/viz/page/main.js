"use strict";
/* The page: three views of one graph, in which one operation may be chosen. */

class App {
  constructor(data) {
    this.model = new Model(data);
    this.layers = new Layers(this.model);
    /* The chosen operation, or the chosen layer. */
    this.chosen = this.layer = null;
    this.found = [];
    this.tip = new Tip();
    this.#theme(matchMedia("(prefers-color-scheme: dark)").matches);
    this.#head();
    this.#legend(); // takes room from the panes
    const pane = (Kind, id) => new Kind(document.getElementById(id), this);
    this.panes = {
      graph: pane(GraphPane, "graph"),
      memory: pane(ArenaPane, "memory"),
      timeline: pane(TimelinePane, "timeline"),
    };
    this.details = new Details(this);
    this.search = new Search(this);
    this.#listen();
    this.open(location.hash.slice(1) in this.panes ? location.hash.slice(1) : "graph");
    this.details.show();
  }

  /* Chooses an operation, or none; `isMoved`: and shows where it is. */
  choose(n, isMoved = false) {
    [this.chosen, this.layer] = [n, null];
    if (n !== null && isMoved) this.pane.reveal(n);
    this.details.show();
    this.pane.redraw();
  }

  /* Chooses a layer; `isMoved`: and shows where it is, in the graph. */
  chooseLayer(layer, isMoved = false) {
    [this.chosen, this.layer] = [null, layer];
    if (isMoved) {
      if (this.pane !== this.panes.graph) this.open("graph");
      this.pane.revealLayer(layer);
    }
    this.details.show();
    this.pane.redraw();
  }

  /* Marks operations that were searched for. */
  mark(found) {
    this.found = found;
    this.pane.redraw();
  }

  open(name) {
    this.pane = this.panes[name];
    for (const tab of document.querySelectorAll("[role=tab]")) {
      const isOpen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.tabIndex = isOpen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isOpen;
    }
    this.tip.hide();
    this.pane.resize();
    if (this.chosen !== null) this.pane.reveal(this.chosen);
  }

  #theme(isDark) {
    document.documentElement.classList.toggle("dark", isDark);
    const style = getComputedStyle(document.documentElement);
    const phases = PHASES.flatMap(([phase]) => [phase, `${phase}-soft`]);
    const names = [...KINDS.map(([kind]) => kind), ...phases, "edge", "edge-soft", "accent", "accent-soft",
      "label", "soft", "ink", "line", "raised", "frame", "ground"];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.panes?.graph.minimap.refresh();
    this.pane?.redraw();
  }

  #head() {
    const { totals, title, blocks } = this.model;
    document.getElementById("title").textContent = title;
    const held = blocks.filter((block) => block.role === "captured").reduce((sum, b) => sum + b.bytes, 0);
    const facts = [
      ["operations", count(totals.nodes)],
      ["arena", bytes(totals.arena_bytes)],
      ["parameters and states", bytes(held)],
    ];
    const fact = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
    document.getElementById("facts").append(...facts.map(fact));
  }

  #legend() {
    const item = ([kind, text]) => element("li", {}, element("i", { style: `background: var(--${kind})` }), text);
    const present = KINDS.filter(([kind]) => this.model.kinds.includes(kind));
    const phases = this.layers.isKnown ? this.layers.present : [];
    document.getElementById("legend").append(...[...phases, ...present].map(item));
  }

  #listen() {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => this.open(tab.id.slice(4)));
      tab.addEventListener("keydown", ({ key }) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (!step) return;
        const next = tabs[(i + step + tabs.length) % tabs.length];
        next.focus();
        next.click();
      });
    });
    document.getElementById("theme").addEventListener("click", () => {
      this.#theme(!document.documentElement.classList.contains("dark"));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ({ matches }) => this.#theme(matches));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const { length } = this.model.nodes;
    if (event.key === "/") this.search.focus();
    else if (event.key === "n" && length) this.choose(Math.min(length - 1, (this.chosen ?? -1) + 1), true);
    else if (event.key === "p" && length) this.choose(Math.max(0, (this.chosen ?? length) - 1), true);
    else if (event.key === "Escape") this.choose(null);
    else return;
    event.preventDefault();
  }
}

const started = performance.now();
const app = new App(JSON.parse(document.getElementById("data").textContent));
