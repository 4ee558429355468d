"use strict";
/* The layers of a graph as a tree, by their paths; which of them are open; what each adds up to. */

const PHASES = [["forward", "Forward"], ["backward", "Backward"], ["update", "Update"]];

class Layer {
  constructor(path, name, parent) {
    Object.assign(this, { path, name, parent, children: [], own: [], isOpen: false });
    this.depth = parent ? parent.depth + 1 : 0;
    /* By phase: how many operations, the bytes that they move, their time. */
    this.sums = new Map();
    /* By phase: the turn of the first operation. */
    this.first = new Map();
  }

  add(turn, phase, moved, time) {
    const sum = this.sums.get(phase) ?? { operations: 0, bytes: 0, seconds: 0 };
    sum.operations++;
    sum.bytes += moved;
    sum.seconds += time;
    this.sums.set(phase, sum);
    this.first.set(phase, Math.min(turn, this.first.get(phase) ?? Infinity));
  }

  get total() {
    const total = { operations: 0, bytes: 0, seconds: 0 };
    for (const sum of this.sums.values()) {
      for (const name of Object.keys(total)) total[name] += sum[name];
    }
    return total;
  }

  /* The layers around it, the outermost first, without the model. */
  get around() {
    const found = [];
    for (let at = this.parent; at?.parent; at = at.parent) found.unshift(at);
    return found;
  }

  /* A name for people. */
  get title() { return this.path || "the model"; }
}

class Layers {
  constructor(model) {
    this.root = new Layer("", "", null);
    this.root.isOpen = true;
    this.byPath = new Map([["", this.root]]);
    /* The layer of each operation. */
    this.isKnown = model.nodes.some((node) => node.layer);
    const pathOf = ({ layer }) => (this.isKnown ? layer ?? "(unknown)" : "");
    this.of = model.nodes.map((node) => this.#at(pathOf(node)));
    this.phases = model.nodes.map((node) => node.phase ?? null);
    this.turns = this.#turns(model);
    this.of.forEach((layer, n) => {
      const { bytes: moved } = model.nodes[n], time = model.profile?.seconds[n] ?? 0;
      layer.own.push(n);
      for (let at = layer; at; at = at.parent) at.add(this.turns[n], this.phases[n], moved, time);
    });
    this.present = PHASES.filter(([phase]) => this.root.sums.has(phase));
    for (const layer of this.byPath.values()) this.#sort(layer);
    this.all = [...this.byPath.values()].filter((layer) => layer.parent);
    // What is the only one may as well be open.
    for (let at = this.root; at.children.length === 1; [at] = at.children) at.children[0].isOpen = true;
  }

  /* In which order operations are shown. Where backward and update make something of nothing, such
     as constants, it stands before what uses it first, however early it runs. */
  #turns({ nodes, before, after }) {
    const isFree = [], turns = Float64Array.from(nodes, (_, n) => n);
    nodes.forEach((_, n) => {
      isFree[n] = (this.phases[n] ?? "forward") !== "forward" && before[n].every((from) => isFree[from]);
    });
    for (let n = nodes.length - 1; n >= 0; n--) {
      if (isFree[n] && after[n].length) turns[n] = after[n].reduce((least, to) => Math.min(least, turns[to]), Infinity) - 0.001;
    }
    return turns;
  }

  #at(path) {
    const known = this.byPath.get(path);
    if (known) return known;
    const cut = path.lastIndexOf(".");
    const parent = this.#at(path.slice(0, Math.max(0, cut)));
    const made = new Layer(path, path.slice(cut + 1), parent);
    parent.children.push(made);
    this.byPath.set(path, made);
    return made;
  }

  /* By the first call; those that are not called going forward at the end. */
  #sort(layer) {
    const start = (one) => one.first.get("forward") ?? one.first.get(null) ?? 1e9 + Math.min(...one.first.values());
    layer.children.sort((a, b) => start(a) - start(b));
  }

  /* Opens what is around an operation, or around a layer. */
  openTo(layer) {
    for (const one of layer.around) one.isOpen = true;
  }

  setAll(isOpen) {
    for (const one of this.all) one.isOpen = isOpen;
  }

  /* The outermost closed layer around an operation, or null. */
  closedOver(n) {
    let found = null;
    for (let at = this.of[n]; at.parent; at = at.parent) {
      if (!at.isOpen) found = at;
    }
    return found;
  }

  /* Layers with every word in their paths. */
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? this.all.filter(({ path }) => words.every((word) => path.toLowerCase().includes(word))) : [];
  }
}

/* What a layer adds up to, in words. */
function totals({ operations, bytes: moved, seconds: time }, hasTimes) {
  const text = `${count(operations)} operation${operations === 1 ? "" : "s"}, ${bytes(moved)}`;
  return hasTimes ? `${text}, ${seconds(time)}` : text;
}
