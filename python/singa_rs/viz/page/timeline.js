"use strict";
/* The operations of the last profile, one behind another, as long as they took. */

const BAR = { top: 34, height: 54 };

class TimelinePane extends Pane {
  constructor(section, app) {
    super(section, app, "x");
    const { profile } = app.model;
    this.ends = [];
    (profile?.seconds ?? []).reduce((now, s) => (this.ends[this.ends.length] = now + s), 0);
    this.total = this.ends.at(-1) ?? 0;
    section.classList.toggle("empty", !this.total);
    document.getElementById("hottest").append(this.total ? this.#table() : this.#nothing());
  }

  #nothing() {
    return element("p", { class: "soft" }, "Nothing was measured: call ", element("code", {}, "graph.profile()"),
      " before ", element("code", {}, "graph.to_html(path)"), ".");
  }

  start(n) { return n ? this.ends[n - 1] : 0; }

  limits() {
    const whole = Math.max(50, this.width - 24) / (this.total || 1);
    return [whole, whole * 1e5];
  }

  frameAll() {
    this.kx = this.limits()[0];
    this.x = 12;
  }

  settle() {
    this.x = Math.min(12, Math.max(this.x, this.width - 12 - this.total * this.kx));
  }

  reveal(n) {
    const at = this.x + this.start(n) * this.kx;
    if (at < 12 || at > this.width - 12) this.x += this.width / 2 - at;
    this.settle();
    this.redraw();
  }

  draw(context) {
    const { model, colours, chosen } = this.app;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    context.fillStyle = colours.soft;
    const { runs = 0, waiting = [] } = model.profile ?? {}, waited = seconds(waiting.reduce((a, b) => a + b, 0));
    const title = `${seconds(this.total)} a run (${waited} waiting for other threads), mean of ${runs}`;
    context.fillText(`${title}: each operation as long as it took`, 12, 20);
    const first = Math.max(0, this.#at(0)), last = Math.min(this.ends.length - 1, this.#at(this.width));
    for (let n = first; n <= last; n++) this.#bar(context, n, n === chosen);
    context.fillStyle = colours.soft;
    const from = Math.max(0, -this.x / this.kx), to = Math.min(this.total, (this.width - this.x) / this.kx);
    context.fillText(seconds(from), 12, BAR.top + BAR.height + 20);
    context.textAlign = "right";
    context.fillText(seconds(to), this.width - 12, BAR.top + BAR.height + 20);
    context.textAlign = "left";
  }

  #bar(context, n, isChosen) {
    const { model, colours } = this.app;
    const x = this.x + this.start(n) * this.kx, width = (this.ends[n] - this.start(n)) * this.kx;
    context.fillStyle = colours[model.kinds[n]];
    context.fillRect(x, BAR.top, Math.max(width - (width > 3 ? 0.7 : 0), 0.4), BAR.height);
    if (isChosen) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.strokeRect(x, BAR.top - 1, Math.max(width, 2), BAR.height + 2);
    }
    const { name } = model.nodes[n];
    if (width < name.length * 7 + 10) return;
    context.fillStyle = colours.label;
    context.fillText(name, Math.max(x, 0) + 6, BAR.top + BAR.height / 2 + 4);
  }

  /* The operation at a place, by halving. */
  #at(px) {
    const time = (px - this.x) / this.kx;
    let low = 0, high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  hit(px, py) {
    const n = this.#at(px);
    const isInside = py >= BAR.top && py <= BAR.top + BAR.height && px >= this.x;
    return isInside && n < this.ends.length ? n : null;
  }

  describe(n) {
    const { nodes, profile } = this.app.model;
    const { name, line, flops, bytes: moved } = nodes[n], time = profile.seconds[n];
    return [`${n}  ${name}`, `${seconds(time)}, ${rate(flops, time, "FLOP")}, ${rate(moved, time, "B")}`, this.app.model.short(line)];
  }

  click(x, y) { this.app.choose(this.hit(x, y)); }

  /* Operations of one name and line together, those that take longest first. */
  #table() {
    const { nodes, profile } = this.app.model, rows = new Map();
    nodes.forEach(({ name, line, flops, bytes: moved }, n) => {
      const key = `${name}\n${line}`;
      const row = rows.get(key) ?? { name, line, n, calls: 0, time: 0, flops: 0, moved: 0 };
      row.calls++;
      row.time += profile.seconds[n];
      row.flops += flops;
      row.moved += moved;
      rows.set(key, row);
    });
    const sorted = [...rows.values()].sort((a, b) => b.time - a.time).slice(0, 200);
    const head = ["operation", "share", "time", "calls", "arithmetic", "memory"];
    return element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...sorted.map((row) => this.#row(row))));
  }

  #row({ name, line, n, calls, time, flops, moved }) {
    const open = element("button", { class: "link", type: "button", click: () => this.app.choose(n) }, name);
    const cells = [`${((100 * time) / this.total).toFixed(1)}%`, seconds(time), count(calls),
      rate(flops, time, "FLOP"), rate(moved, time, "B")];
    return element("tr", {}, element("td", {}, open, " ", element("small", {}, this.app.model.short(line))),
      ...cells.map((text) => element("td", {}, text)));
  }
}
