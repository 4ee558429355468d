"use strict";
/* What is known of the chosen operation; without one, of what is alive at the peak. */

const MOST_LISTED = 60;

class Details {
  constructor(app) {
    this.app = app;
    this.panel = document.getElementById("details");
  }

  show() {
    const { chosen, layer, model } = this.app;
    const parts = [];
    if (layer !== null) parts.push(...this.#layer(layer));
    if (chosen !== null) parts.push(...this.#operation(chosen));
    if (model.nodes.length) parts.push(...this.#alive(chosen ?? model.peak, chosen === null));
    this.panel.replaceChildren(...parts);
    this.panel.scrollTop = 0;
  }

  #layer(layer) {
    const { layers } = this.app, hasTimes = this.app.model.profile !== null;
    const parts = [element("h2", {}, layer.path), element("small", {}, totals(layer.total, hasTimes))];
    const phases = layers.present.filter(([phase]) => layer.sums.has(phase));
    if (phases.length) {
      const rows = phases.map(([phase, title]) => [title, totals(layer.sums.get(phase), hasTimes)]);
      parts.push(element("h3", {}, "By phase"), pairs(rows));
    }
    const item = (one) => element("li", {}, this.#toLayer(one), element("small", {}, totals(one.total, hasTimes)));
    const { children } = layer;
    if (children.length) parts.push(element("h3", {}, "Layers"), element("ul", {}, ...children.map(item)));
    return [...parts, ...this.#links("Operations of its own", layer.own)];
  }

  #toLayer(layer) {
    const choose = () => this.app.chooseLayer(layer, true);
    return element("button", { class: "link", type: "button", click: choose }, layer.path);
  }

  #operation(n) {
    const { model } = this.app, node = model.nodes[n];
    const parts = [element("h2", {}, node.name), element("small", {}, `operation ${n} of ${model.nodes.length}`)];
    const source = model.sources[node.line];
    const layer = this.app.layers.of[n];
    if (layer.path) parts.push(element("h3", {}, `Layer${node.phase ? `, ${node.phase}` : ""}`), this.#toLayer(layer));
    parts.push(element("h3", {}, "Asked for at"), element("code", {}, node.line));
    if (source) parts.push(element("pre", {}, element("code", {}, source)));
    parts.push(...this.#attributes(node), ...this.#work(node, n));
    parts.push(...this.#tensors("Reads", node.inputs), ...this.#tensors("Writes", node.outputs));
    parts.push(...this.#links("Gets from", model.before[n]), ...this.#links("Hands to", model.after[n]));
    return parts;
  }

  #attributes(node) {
    const given = Object.entries(node.attributes ?? {});
    const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    return given.length
      ? [element("h3", {}, "Attributes"), pairs(given.map(([name, value]) => [name, text(value)]))]
      : [];
  }

  #work(node, n) {
    const rows = [["arithmetic", `${count(node.flops)} operations`], ["memory", `${bytes(node.bytes)} moved`]];
    if (node.scratch) rows.push(["work space", bytes(node.scratch.bytes)]);
    const { profile } = this.app.model, time = profile?.seconds[n];
    if (time !== undefined) {
      rows.push(["time", `${seconds(time)}, ${seconds(profile.waiting[n])} waiting for other threads`]);
      rows.push(["speed", `${rate(node.flops, time, "FLOP")}, ${rate(node.bytes, time, "B")}`]);
    }
    return [element("h3", {}, "Work"), pairs(rows)];
  }

  #tensors(title, places) {
    const { blocks } = this.app.model;
    const item = (place) => {
      const block = blocks[place.block];
      const life = block.first === null ? "" : `, operations ${block.first} to ${block.last}`;
      return element("li", {}, block.name ?? block.role,
        element("small", {}, `${tensor(place)}, ${block.role}, ${bytes(block.bytes)}${life}`));
    };
    return places.length ? [element("h3", {}, title), element("ul", {}, ...places.map(item))] : [];
  }

  #links(title, nodes) {
    const listed = nodes.slice(0, MOST_LISTED).map((n) => element("li", {}, this.#link(n)));
    const more = nodes.length - listed.length;
    if (more > 0) listed.push(element("li", { class: "soft" }, `and ${more} more`));
    return nodes.length ? [element("h3", {}, title), element("ul", {}, ...listed)] : [];
  }

  #link(n, text = `${n}  ${this.app.model.nodes[n].name}`) {
    const choose = () => this.app.choose(n, true);
    return element("button", { class: "link", type: "button", click: choose }, text);
  }

  #alive(n, isPeak) {
    const { model } = this.app, alive = model.alive(n);
    const title = isPeak ? `Alive at the peak, operation ${n}` : "Alive in the arena meanwhile";
    const item = (box) => element("li", {}, this.#link(box.maker, model.nameOf(box)),
      element("small", {}, `${bytes(box.bytes)}, operations ${box.first} to ${box.last}`),
      element("small", {}, model.short(model.lineOf(box))));
    const listed = alive.slice(0, MOST_LISTED).map(item);
    const more = alive.length - listed.length;
    if (more > 0) listed.push(element("li", { class: "soft" }, `and ${more} smaller ones`));
    const sum = element("p", { class: "soft" }, `${bytes(model.curve[n])} in ${alive.length} pieces`);
    return [element("h3", {}, title), sum, element("ul", {}, ...listed)];
  }
}

/* A few lines that follow the pointer. */
class Tip {
  constructor() { this.box = document.getElementById("tip"); }

  show(lines, x, y) {
    this.box.replaceChildren(...lines.filter(Boolean).map((line) => element("div", {}, line)));
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    this.box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    this.box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  }

  hide() { this.box.hidden = true; }
}
