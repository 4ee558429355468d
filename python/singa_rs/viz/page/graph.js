"use strict";
/* The graph: layers as boxes that open and close, operations, and what they hand to each other. */

/* What is farther away than this cannot be read. */
const READABLE = 0.62, BAND = 30;

class GraphPane extends Pane {
  constructor(section, app) {
    super(section, app, "xy");
    this.layers = app.layers;
    this.scene = new Scene(app.model, this.layers);
    this.edges = new Edges(this.scene);
    this.boxes = new Boxes(this);
    this.minimap = new Minimap(section, this);
    this.#controls(section);
  }

  #controls(section) {
    const button = (name, action) => section.querySelector(`.${name}`).addEventListener("click", action);
    button("open-all", () => this.setAll(true));
    button("close-all", () => this.setAll(false));
    button("fit", () => this.fit());
    for (const name of ["open-all", "close-all"]) section.querySelector(`.${name}`).hidden = !this.layers.isKnown;
  }

  setAll(isOpen) {
    this.layers.setAll(isOpen);
    this.rearrange();
    this.begin();
  }

  /* Opens or closes a layer, whose top stays where it is. */
  toggle(layer) {
    const before = this.scene.byLayer.get(layer).y;
    layer.isOpen = !layer.isOpen;
    this.rearrange();
    this.y -= (this.scene.byLayer.get(layer).y - before) * this.ky;
    this.redraw();
  }

  rearrange() {
    this.scene.arrange();
    this.edges = new Edges(this.scene);
    this.minimap.refresh();
    this.redraw();
  }

  resize() {
    super.resize();
    this.minimap.refresh();
  }

  limits() { return [0.0005, 3]; }

  /* What the titles of the columns take. */
  get band() { return this.scene.columns.length > 1 ? BAND : 0; }

  frameAll() {
    const { left, right, top, bottom } = this.scene.bounds, room = this.height - this.band;
    const free = this.width - this.minimap.room;
    const k = Math.min(1.1, (free - 32) / (right - left || 1), (room - 32) / (bottom - top || 1));
    this.kx = this.ky = Math.max(this.limits()[0], k);
    this.x = (free - (right + left) * this.kx) / 2;
    this.y = this.band + (room - (bottom + top) * this.ky) / 2;
  }

  /* The view to begin with: everything, or if that could not be read, the top. */
  begin() {
    this.frameAll();
    if (this.kx < READABLE) {
      const { left, right } = this.scene.bounds, free = this.width - this.minimap.room;
      const isWide = (right - left) * READABLE > free;
      this.kx = this.ky = READABLE;
      const middle = isWide && !this.layers.isKnown ? BOX.width / 2 : (left + right) / 2;
      this.x = free / 2 - middle * this.kx;
      if (isWide && this.layers.isKnown) this.x = 16 - left * this.kx;
      this.y = this.band + 16;
    }
    this.keep(() => this.begin());
  }

  /* Shows an operation in the middle, and opens what is around it. */
  reveal(n) {
    const closed = this.layers.isKnown ? this.layers.closedOver(n) : null;
    if (closed) {
      this.layers.openTo(this.layers.of[n]);
      this.layers.of[n].isOpen = true;
      this.rearrange();
    }
    this.#centre({ x: this.scene.x[n], y: this.scene.y[n], ...BOX });
  }

  revealLayer(layer) {
    this.layers.openTo(layer);
    this.rearrange();
    const box = this.scene.byLayer.get(layer);
    this.#centre({ ...box, height: Math.min(box.height, this.height / 2) });
  }

  #centre({ x, y, width, height }) {
    this.kx = this.ky = Math.max(this.kx, 0.7);
    // If all columns fit beside the map, they stay where they are when all is in sight.
    const { left, right } = this.scene.bounds, free = this.width - this.minimap.room;
    const fits = this.layers.isKnown && (right - left) * this.kx <= free;
    this.x = fits ? (free - (right + left) * this.kx) / 2 : this.width / 2 - (x + width / 2) * this.kx;
    this.y = this.height / 2 - (y + height / 2) * this.ky;
    this.redraw();
  }

  /* A layer's share of the time, as text; nothing without a profile. */
  share(layer) {
    const all = this.layers.root.total.seconds;
    return all ? `${((100 * layer.total.seconds) / all).toFixed(1)}%` : "";
  }

  draw(context) {
    context.save();
    context.translate(this.x, this.y);
    context.scale(this.kx, this.ky);
    const top = -this.y / this.ky, bottom = (this.height - this.y) / this.ky;
    const isInSight = (box) => box.y <= bottom && box.y + box.height >= top;
    this.scene.boxes.filter(isInSight).forEach((box) => this.boxes.frame(context, box));
    const { chosen, layer, colours } = this.app;
    const isIn = (n) => n === chosen || (layer !== null && this.#isWithin(n, layer));
    const isChosen = ([from, to]) => isIn(from) !== isIn(to);
    this.edges.draw(context, { top, bottom, scale: this.kx, colours, isChosen });
    if (this.kx >= 0.22) this.scene.boxes.filter(isInSight).forEach((box) => this.boxes.caption(context, box));
    const shown = this.scene.between(top, bottom);
    if (this.kx > 0.28) shown.forEach((n) => this.boxes.operation(context, n, this.scene.x[n], this.scene.y[n]));
    else this.#dots(context, shown);
    this.#marks(context, top, bottom);
    context.restore();
    this.#columns(context);
    this.minimap.draw();
  }

  #isWithin(n, layer) {
    for (let at = this.layers.of[n]; at; at = at.parent) if (at === layer) return true;
    return false;
  }

  /* Far away: one path a colour. */
  #dots(context, shown) {
    const { model, colours } = this.app, { x, y } = this.scene;
    for (const [kind] of KINDS) {
      context.fillStyle = colours[kind];
      context.beginPath();
      for (const n of shown) {
        if (model.kinds[n] === kind) context.rect(x[n], y[n], BOX.width, BOX.height);
      }
      context.fill();
    }
  }

  /* Around what was found, and what is chosen, or the closed layers that it is in. */
  #marks(context, top, bottom) {
    const { chosen, layer, found, colours } = this.app, marked = new Map();
    for (const n of found) {
      const rect = this.scene.standIn(n);
      if (rect.y < bottom && rect.y + rect.height > top) marked.set(rect.key, rect);
    }
    context.strokeStyle = colours.accent;
    const mark = ({ x, y, width, height }, line, away) => {
      context.lineWidth = line / Math.min(1, this.kx);
      context.beginPath();
      context.roundRect(x - away, y - away, width + 2 * away, height + 2 * away, 7 + away);
      context.stroke();
    };
    for (const rect of marked.values()) mark(rect, 1.5, 2);
    if (chosen !== null) mark(this.scene.standIn(chosen), 3, 3);
    const box = layer && this.scene.byLayer.get(layer);
    if (box) mark(box, 2.5, 1);
  }

  /* The titles of the columns, which stay in sight. */
  #columns(context) {
    if (!this.band) return;
    const { colours } = this.app;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, this.width, BAND);
    context.font = `600 13px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const { phase, x, width } of this.scene.columns) {
      const [, title] = PHASES.find(([name]) => name === phase);
      const middle = this.x + (x + width / 2) * this.kx;
      context.fillStyle = colours[phase];
      context.fillText(title, middle, BAND / 2 - 1);
      context.fillRect(middle - (width * this.kx) / 2, BAND - 4, width * this.kx, 2.5);
    }
  }

  hit(left, top) {
    return top < this.band ? null : this.scene.at((left - this.x) / this.kx, (top - this.y) / this.ky);
  }

  describe({ operation: n, layer }) {
    const { model } = this.app;
    if (layer) return [layer.path, totals(layer.total, model.profile !== null), `click to ${layer.isOpen ? "close" : "open"} it`];
    const node = model.nodes[n];
    const place = [node.layer, node.phase].filter(Boolean).join(", ");
    return [`${n}  ${node.name}`, place, node.outputs.map(tensor).join(", "), model.figures[n], model.short(node.line)];
  }

  /* On a layer it is two clicks. */
  doubleClick(event) {
    if (this.hit(...this.at(event)) === null) this.fit();
  }

  click(x, y) {
    const found = this.hit(x, y);
    if (found?.layer) {
      this.app.chooseLayer(found.layer);
      this.toggle(found.layer);
    } else this.app.choose(found ? found.operation : null);
  }
}
