"use strict";
/* Where everything stands: a column for each phase, in which layers stand below each other in the
   order of their calls, and operations in rows between them; backward runs from the bottom up. */

const CELL = { width: 186, height: 44 }, HEAD = 30, PAD = 10, INSET = 12, GUTTER = 46, ACROSS = 3;

/* A closed or an open layer: its rectangle, and one for each phase if it is closed. */
class LayerBox {
  constructor(layer, x, y, width) {
    Object.assign(this, { layer, x, y, width, height: 0, cells: new Map() });
  }
}

class Scene {
  constructor(model, layers) {
    Object.assign(this, { model, layers });
    this.lanes = layers.present.length ? layers.present.map(([phase]) => phase) : [null];
    const { length } = model.nodes;
    this.x = new Float64Array(length);
    this.y = new Float64Array(length);
    this.lane = layers.phases.map((phase) => Math.max(0, this.lanes.indexOf(phase)));
    this.slots = new Map();
    this.arrange();
  }

  /* Lays everything out anew, after layers were opened or closed. */
  arrange() {
    this.boxes = [];
    this.byLayer = new Map();
    this.shown = [];
    if (this.layers.isKnown) this.#inLanes();
    else this.#asWhole();
    this.shown.sort((a, b) => this.y[a] - this.y[b]);
    this.#bound();
  }

  /* A graph of which no layers are known: rows by dependency alone. */
  #asWhole() {
    const { x, y } = layered(this.model);
    [this.x, this.y] = [x, y];
    this.shown = Array.from(x, (_, n) => n);
    this.columns = [];
  }

  #inLanes() {
    const { root } = this.layers;
    this.deepest = 0;
    this.widths = this.lanes.map(() => CELL.width);
    this.#measure(root);
    let left = 0;
    this.columns = this.lanes.map((phase, k) => {
      const column = { phase, x: left, width: this.widths[k] };
      left += this.widths[k] + GUTTER;
      return column;
    });
    this.across = left - GUTTER;
    this.#contents(root, 0);
  }

  /* How wide the columns are, and how deep open layers are in each other. */
  #measure(layer) {
    for (const slot of this.#slotsOf(layer)) {
      slot.forEach(({ width }, k) => (this.widths[k] = Math.max(this.widths[k], width)));
    }
    for (const child of layer.children) {
      this.deepest = Math.max(this.deepest, child.depth);
      if (child.isOpen) this.#measure(child);
    }
  }

  #contents(layer, y) {
    const slots = this.#slotsOf(layer);
    layer.children.forEach((child, i) => {
      y = this.#operations(slots[i], y);
      y = this.#layer(child, y);
    });
    return this.#operations(slots.at(-1), y);
  }

  #layer(layer, y) {
    const out = GUTTER + (this.deepest - layer.depth) * INSET;
    const box = new LayerBox(layer, -out, y, this.across + 2 * out);
    this.boxes.push(box);
    this.byLayer.set(layer, box);
    y += HEAD;
    if (layer.isOpen) y = this.#contents(layer, y + 4) - PAD;
    else {
      this.columns.forEach((column) => {
        if (!layer.sums.has(column.phase)) return;
        const x = column.x + (column.width - CELL.width) / 2;
        box.cells.set(column.phase, { x, y, width: CELL.width, height: CELL.height });
      });
      y += CELL.height;
    }
    box.height = y + PAD - box.y;
    return box.y + box.height + 14;
  }

  #operations(slot, y) {
    const height = Math.max(...slot.map((part) => part.height));
    slot.forEach(({ ops, at, height: own }, k) => {
      const { x, width } = this.columns[k], isUp = this.lanes[k] === "backward";
      ops.forEach((n, i) => {
        this.x[n] = x + width / 2 + at[i][0] - BOX.width / 2;
        this.y[n] = isUp ? y + own - ROW - at[i][1] : y + at[i][1];
        this.shown.push(n);
      });
    });
    return y + height;
  }

  /* The operations that a layer itself asks for, before, between and after its layers, by column. */
  #slotsOf(layer) {
    let slots = this.slots.get(layer);
    if (slots) return slots;
    slots = Array.from({ length: layer.children.length + 1 }, () => this.lanes.map(() => []));
    for (const n of layer.own) slots[this.#slot(layer, n)][this.lane[n]].push(n);
    slots = slots.map((slot) => slot.map((ops) => this.#rows(ops)));
    this.slots.set(layer, slots);
    return slots;
  }

  #slot({ children }, n) {
    const phase = this.layers.phases[n], turn = this.layers.turns[n];
    const above = (child) => {
      const first = child.first.get(phase);
      if (first === undefined) return phase === "update" || child.first.get("forward") < turn;
      return phase === "backward" ? first > turn : first < turn;
    };
    return children.filter(above).length;
  }

  /* Rows by dependency among these operations. */
  #rows(ops) {
    const number = new Map(ops.map((n, i) => [n, i])), depth = [], rows = [];
    ops.forEach((n, i) => {
      depth[i] = 0;
      for (const from of this.model.before[n]) {
        if (number.has(from)) depth[i] = Math.max(depth[i], depth[number.get(from)] + 1);
      }
      (rows[depth[i]] ??= []).push(i);
    });
    const lines = rows.flatMap((row) => chunks(row, ACROSS)), at = [];
    lines.forEach((line, r) => line.forEach((i, k) => (at[i] = [(k - (line.length - 1) / 2) * COLUMN, r * ROW])));
    const width = Math.max(0, ...lines.map((line) => line.length)) * COLUMN;
    return { ops, at, width, height: lines.length * ROW };
  }

  #bound() {
    let [left, right, top, bottom] = [Infinity, -Infinity, 0, 0];
    for (const n of this.shown) {
      left = Math.min(left, this.x[n]);
      right = Math.max(right, this.x[n] + BOX.width);
      bottom = Math.max(bottom, this.y[n] + BOX.height);
    }
    for (const box of this.boxes) {
      left = Math.min(left, box.x);
      right = Math.max(right, box.x + box.width);
      bottom = Math.max(bottom, box.y + box.height);
    }
    if (left > right) [left, right] = [0, 0];
    this.bounds = { left, right, top, bottom };
  }

  /* The rectangle that stands for an operation: its own, or that of the closed layer around it. */
  standIn(n) {
    const closed = this.layers.isKnown ? this.layers.closedOver(n) : null;
    if (closed === null) return { key: n, x: this.x[n], y: this.y[n], ...BOX };
    const cell = this.byLayer.get(closed).cells.get(this.layers.phases[n]);
    return { key: `${closed.path} ${this.layers.phases[n]}`, ...(cell ?? this.byLayer.get(closed)) };
  }

  /* The shown operations whose boxes may reach into a range of heights. */
  between(top, bottom) {
    const { shown, y } = this;
    const start = (limit) => {
      let low = 0, high = shown.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (y[shown[middle]] < limit) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return shown.slice(start(top - BOX.height), start(bottom));
  }

  /* What is at a point: an operation, or the innermost layer. */
  at(px, py) {
    const op = this.between(py, py + 1e-9).find((n) => px >= this.x[n] && px <= this.x[n] + BOX.width);
    if (op !== undefined) return { operation: op };
    const inside = (box) => px >= box.x && px <= box.x + box.width && py >= box.y && py <= box.y + box.height;
    const box = this.boxes.findLast(inside);
    return box ? { layer: box.layer } : null;
  }
}

function chunks(list, most) {
  const found = [];
  for (let i = 0; i < list.length; i += most) found.push(list.slice(i, i + most));
  return found;
}
