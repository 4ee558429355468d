"use strict";
/* Above, the bytes alive while each operation runs; below, which tensor lies where. */

const CURVE = 96, GAP = 30, MARGIN = { left: 12, right: 12, top: 26, bottom: 26 };

class ArenaPane extends Pane {
  constructor(section, app) {
    super(section, app, "x");
    const { model } = app;
    this.highest = Math.max(1, model.totals.arena_bytes);
    this.boxes = model.residents.filter((box) => box.bytes > 0);
    this.boxes.sort((a, b) => a.first - b.first || b.bytes - a.bytes);
    this.hovered = null;
  }

  limits() {
    const n = Math.max(1, this.app.model.nodes.length);
    const whole = this.#inner() / n;
    return [whole, Math.max(whole, 80)];
  }

  #inner() { return Math.max(50, this.width - MARGIN.left - MARGIN.right); }

  frameAll() {
    this.kx = this.limits()[0];
    this.x = MARGIN.left;
  }

  settle() {
    const length = this.app.model.nodes.length * this.kx;
    this.x = Math.min(MARGIN.left, Math.max(this.x, MARGIN.left + this.#inner() - length));
  }

  reveal(n) {
    const at = this.x + n * this.kx;
    if (at < MARGIN.left || at > this.width - MARGIN.right) this.x += this.width / 2 - at;
    this.settle();
    this.redraw();
  }

  get floor() { return this.height - MARGIN.bottom; }
  get ceiling() { return MARGIN.top + CURVE + GAP; }

  /* Where a byte of the arena is; the first one lies at the bottom. */
  atByte(byte) { return this.floor - (byte / this.highest) * (this.floor - this.ceiling); }

  box({ first, last, offset, bytes: size }) {
    const top = this.atByte(offset + size);
    const height = this.atByte(offset) - top;
    return [this.x + first * this.kx, top, (last - first + 1) * this.kx, height];
  }

  draw(context) {
    const { colours } = this.app;
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, this.#inner(), this.height);
    context.clip();
    this.#curve(context);
    this.#boxes(context);
    this.#cursor(context);
    context.restore();
    context.fillStyle = colours.soft;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    const { model } = this.app, peak = model.curve[model.peak] ?? 0;
    context.fillText(`bytes alive, at most ${bytes(peak)} at operation ${model.peak}`, MARGIN.left, 17);
    context.fillText(this.#title(), MARGIN.left, this.ceiling - 8);
    context.fillText(`operation ${this.#nodeAt(MARGIN.left)}`, MARGIN.left, this.height - 8);
    context.textAlign = "right";
    context.fillText(`${this.#nodeAt(this.width - MARGIN.right)}`, this.width - MARGIN.right, this.height - 8);
  }

  #title() {
    const { arena_bytes: arena, lower_bound_bytes: bound } = this.app.model.totals;
    const over = arena > bound ? `${((100 * (arena - bound)) / bound).toFixed(2)}% above` : "which is";
    return `arena of ${bytes(arena)}, ${over} the least possible, by address`;
  }

  #nodeAt(x) {
    const n = Math.floor((x - this.x) / this.kx);
    return Math.max(0, Math.min(this.app.model.nodes.length - 1, n));
  }

  #curve(context) {
    const { model, colours } = this.app, floor = MARGIN.top + CURVE;
    const most = Math.max(1, model.curve[model.peak] ?? 0);
    const first = this.#nodeAt(MARGIN.left), last = this.#nodeAt(this.width);
    // Where operations are narrower than a pixel, the highest of each pixel stands for them.
    const step = Math.max(1, Math.ceil(1 / this.kx));
    context.beginPath();
    context.moveTo(this.x + first * this.kx, floor);
    for (let n = first - (first % step); n <= last; n += step) {
      let alive = 0;
      for (let k = n; k < n + step && k <= last; k++) alive = Math.max(alive, model.curve[k]);
      const y = floor - (alive / most) * CURVE;
      context.lineTo(this.x + n * this.kx, y);
      context.lineTo(this.x + (n + step) * this.kx, y);
    }
    context.lineTo(this.x + (last + 1) * this.kx, floor);
    context.fillStyle = colours["accent-soft"];
    context.fill();
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.2;
    context.stroke();
  }

  #boxes(context) {
    const { model, colours, chosen } = this.app;
    const shown = this.boxes.filter((box) => {
      const left = this.x + box.first * this.kx;
      return left < this.width && left + (box.last - box.first + 1) * this.kx > 0;
    });
    for (const [kind] of KINDS) {
      // One at a time: a path of thousands of rectangles takes ten times as long to fill.
      context.fillStyle = colours[kind];
      for (const box of shown) {
        if (model.kinds[box.maker] === kind) context.fillRect(...this.#inset(box));
      }
    }
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    for (const box of shown) {
      if (box === this.hovered || box.maker === chosen) context.strokeRect(...this.box(box));
    }
    this.#labels(context, shown);
  }

  /* With a little room around it, where there is some. */
  #inset(box) {
    const [x, y, width, height] = this.box(box);
    const gap = Math.min(width, height) > 4 ? 0.6 : 0;
    return [x + gap, y + gap, width - 2 * gap, Math.max(height - 2 * gap, 0.5)];
  }

  #labels(context, shown) {
    const { model, colours } = this.app;
    context.fillStyle = colours.label;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const box of shown) {
      const [x, y, width, height] = this.box(box);
      const left = Math.max(x, MARGIN.left);
      const room = x + width - left - 8;
      if (height < 13 || room < 40) continue;
      const name = model.nameOf(box);
      if (name.length * 6 < room) context.fillText(name, left + 5, y + height / 2);
    }
  }

  #cursor(context) {
    const { model, chosen, colours } = this.app, n = chosen ?? model.peak;
    const x = this.x + (n + 0.5) * this.kx;
    context.strokeStyle = chosen === null ? colours.soft : colours.accent;
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(x, MARGIN.top);
    context.lineTo(x, this.floor);
    context.stroke();
    context.setLineDash([]);
  }

  hit(px, py) {
    const inside = (box) => {
      const [x, y, width, height] = this.box(box);
      return px >= x && px <= x + width && py >= y && py <= y + Math.max(1, height);
    };
    const found = this.boxes.findLast(inside) ?? null;
    if (found !== this.hovered) {
      this.hovered = found;
      this.redraw();
    }
    return found;
  }

  describe(box) {
    const { model } = this.app;
    const life = `operations ${box.first} to ${box.last}, at byte ${count(box.offset)}`;
    return [model.nameOf(box), `${bytes(box.bytes)}, ${life}`, `made at ${model.short(model.lineOf(box))}`];
  }

  click(x, y) {
    this.app.choose(this.hit(x, y)?.maker ?? this.#nodeAt(x));
  }
}
