"use strict";
/* Finding operations by their names, attributes, lines and tensors. */

const MOST_FOUND = 50;

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
    const items = found.slice(0, MOST_FOUND).map((n) => this.#item(n));
    const more = found.length - items.length;
    if (!found.length) items.push(element("li", { class: "soft" }, "Nothing found"));
    if (more > 0) items.push(element("li", { class: "soft" }, `and ${count(more)} more`));
    this.list.replaceChildren(...items);
    this.options = [...this.list.querySelectorAll("[role=option]")];
    this.#select(0);
    this.#open(this.query.value.trim() !== "");
  }

  #item(n) {
    const node = this.app.model.nodes[n];
    const choose = (event) => {
      event.preventDefault(); // so that the list stays until the choice is made
      this.#choose(n);
    };
    return element("li", { role: "option", id: `found-${n}`, mousedown: choose }, `${n}  ${node.name}`,
      " ", element("small", {}, this.app.model.short(node.line)));
  }

  #choose(n) {
    this.#open(false);
    this.app.choose(n, true);
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
    else if (event.key === "Enter" && last >= 0) this.#choose(Number(this.options[this.at].id.slice(6)));
    else return;
    event.preventDefault();
  }
}
