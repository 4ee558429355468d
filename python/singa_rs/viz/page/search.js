"use strict";
/* Finding layers by their paths, and operations by their names, layers, attributes, lines and
   tensors. */

const MOST_FOUND = 50, MOST_LAYERS = 8;

class Search {
  constructor(app) {
    this.app = app;
    this.query = document.getElementById("query");
    this.list = document.getElementById("found");
    this.query.addEventListener("input", () => this.find());
    this.query.addEventListener("focus", () => this.find());
    this.query.addEventListener("keydown", (event) => this.#key(event));
    this.query.addEventListener("blur", () => setTimeout(() => this.#open(false), 150));
  }

  focus() {
    this.query.focus();
    this.query.select();
  }

  find() {
    const found = this.app.model.search(this.query.value);
    this.app.mark(found);
    this.at = 0;
    const layers = this.app.layers.isKnown ? this.app.layers.search(this.query.value) : [];
    this.results = [...layers.slice(0, MOST_LAYERS), ...found.slice(0, MOST_FOUND)];
    const items = this.results.map((one, i) => (one instanceof Layer ? this.#layer(one, i) : this.#item(one, i)));
    const more = found.length - Math.min(found.length, MOST_FOUND);
    if (!items.length) items.push(element("li", { class: "soft" }, "Nothing found"));
    if (more > 0) items.push(element("li", { class: "soft" }, `and ${count(more)} more`));
    this.list.replaceChildren(...items);
    this.options = [...this.list.querySelectorAll("[role=option]")];
    this.#select(0);
    this.#open(this.query.value.trim() !== "");
  }

  #item(n, i) {
    const node = this.app.model.nodes[n];
    return this.#option(i, `${n}  ${node.name}`, node.layer ? `${node.layer}, ${node.phase}` : this.app.model.short(node.line));
  }

  #layer(layer, i) {
    return this.#option(i, `▣ ${layer.path}`, `${count(layer.total.operations)} operations`);
  }

  #option(i, name, more) {
    const choose = (event) => {
      event.preventDefault(); // so that the list stays until the choice is made
      this.#choose(this.results[i]);
    };
    return element("li", { role: "option", id: `found-${i}`, mousedown: choose }, name, " ", element("small", {}, more));
  }

  #choose(one) {
    this.#open(false);
    if (one instanceof Layer) this.app.chooseLayer(one, true);
    else this.app.choose(one, true);
  }

  #open(isOpen) {
    this.list.hidden = !isOpen;
    this.query.setAttribute("aria-expanded", String(isOpen));
  }

  #select(at) {
    this.options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    const option = this.options[(this.at = at)];
    this.query.setAttribute("aria-activedescendant", option?.id ?? "");
    option?.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const last = this.options?.length - 1;
    if (event.key === "Escape") {
      this.query.value = "";
      this.find();
      this.app.pane.canvas.focus();
    } else if (event.key === "ArrowDown" && last >= 0) this.#select(Math.min(last, this.at + 1));
    else if (event.key === "ArrowUp" && last >= 0) this.#select(Math.max(0, this.at - 1));
    else if (event.key === "Enter" && last >= 0) this.#choose(this.results[this.at]);
    else return;
    event.preventDefault();
  }
}
