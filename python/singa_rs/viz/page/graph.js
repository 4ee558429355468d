"use strict";
/* The operations as boxes in rows, and what they hand to each other as lines. */

class GraphPane extends Pane {
  constructor(section, app) {
    super(section, app, "xy");
    const { model } = app;
    this.layout = layered(model);
    const { x, y } = this.layout;
    this.edges = model.flow.map(({ from, to }) => {
      const span = (y[to] - y[from]) / ROW;
      // What skips rows swings out, the farther the more, so that it passes beside the others.
      const swing = span > 1 ? Math.min(420, 30 + 14 * span) : 0;
      return { from, to, top: y[from] + BOX.height, bottom: y[to], swing };
    });
    const boxes = Array.from(x, (left, n) => [left, y[n]]);
    this.bounds = {
      left: boxes.reduce((least, [left]) => Math.min(least, left), 0) - 40,
      right: boxes.reduce((most, [left]) => Math.max(most, left), 0) + BOX.width + 40,
      bottom: this.layout.rows.length * ROW,
    };
  }

  limits() { return [0.01, 3]; }

  frameAll() {
    const { left, right, bottom } = this.bounds;
    const whole = Math.min(this.width / (right - left), this.height / (bottom + 40));
    // What is too long to be read as a whole begins at its top.
    this.kx = this.ky = Math.min(1.1, Math.max(whole, 0.6));
    const middle = whole < 0.6 ? BOX.width / 2 : (left + right) / 2;
    this.x = this.width / 2 - middle * this.kx;
    this.y = 20;
  }

  /* Shows an operation in the middle. */
  reveal(n) {
    this.kx = this.ky = Math.max(this.kx, 0.7);
    this.x = this.width / 2 - (this.layout.x[n] + BOX.width / 2) * this.kx;
    this.y = this.height / 2 - this.layout.y[n] * this.ky;
    this.redraw();
  }

  draw(context) {
    const near = this.kx > 0.28;
    context.translate(this.x, this.y);
    context.scale(this.kx, this.ky);
    this.top = -this.y / this.ky - ROW;
    this.bottom = (this.height - this.y) / this.ky;
    this.#edges(context, near);
    const shown = this.#shown();
    if (near) shown.forEach((n) => this.#box(context, n));
    else this.#dots(context, shown);
    this.#marks(context);
  }

  /* The operations in the rows that are in sight. */
  #shown() {
    const { rows } = this.layout;
    const first = Math.max(0, Math.floor(this.top / ROW));
    const last = Math.min(rows.length - 1, Math.ceil(this.bottom / ROW));
    const shown = [];
    for (let row = first; row <= last; row++) shown.push(...rows[row]);
    return shown;
  }

  #edges(context, near) {
    const { chosen, colours } = this.app;
    context.lineWidth = near ? 1.2 : 0.7 / this.kx;
    context.strokeStyle = colours.edge;
    context.beginPath();
    for (const edge of this.edges) {
      if (edge.bottom < this.top || edge.top > this.bottom) continue;
      if (edge.from !== chosen && edge.to !== chosen) this.#edge(context, edge, near);
    }
    context.stroke();
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.8 / Math.min(1, this.kx);
    context.beginPath();
    for (const edge of this.edges) {
      if (edge.from === chosen || edge.to === chosen) this.#edge(context, edge, true);
    }
    context.stroke();
  }

  #edge(context, { from, to, top, bottom, swing }, near) {
    const { x } = this.layout, half = BOX.width / 2;
    const a = x[from] + half, b = x[to] + half;
    context.moveTo(a, top);
    if (!near && !swing) return context.lineTo(b, bottom);
    const bend = Math.min(ROW, (bottom - top) / 2);
    context.bezierCurveTo(a + swing, top + bend, b + swing, bottom - bend, b, bottom);
  }

  #box(context, n) {
    const { model, colours } = this.app, { x, y } = this.layout;
    context.fillStyle = colours[model.kinds[n]];
    context.beginPath();
    context.roundRect(x[n], y[n], BOX.width, BOX.height, 7);
    context.fill();
    if (this.kx < 0.4) return;
    context.fillStyle = colours.label;
    context.font = "500 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(model.nodes[n].name, x[n] + BOX.width / 2, y[n] + BOX.height / 2 + 1, BOX.width - 12);
  }

  /* Far away: one path a colour. */
  #dots(context, shown) {
    const { model, colours } = this.app, { x, y } = this.layout;
    for (const [kind] of KINDS) {
      context.fillStyle = colours[kind];
      context.beginPath();
      for (const n of shown) {
        if (model.kinds[n] === kind) context.rect(x[n], y[n], BOX.width, BOX.height);
      }
      context.fill();
    }
  }

  #marks(context) {
    const { chosen, found, colours } = this.app, { x, y } = this.layout;
    context.strokeStyle = colours.accent;
    const mark = (n, width, away) => {
      context.lineWidth = width / Math.min(1, this.kx);
      context.beginPath();
      context.roundRect(x[n] - away, y[n] - away, BOX.width + 2 * away, BOX.height + 2 * away, 7 + away);
      context.stroke();
    };
    for (const n of found) {
      if (y[n] > this.top && y[n] < this.bottom) mark(n, 1.5, 2);
    }
    if (chosen !== null) mark(chosen, 3, 3);
  }

  hit(left, top) {
    const px = (left - this.x) / this.kx, py = (top - this.y) / this.ky;
    const row = this.layout.rows[Math.floor(py / ROW)];
    if (!row || py % ROW > BOX.height) return null;
    const { x } = this.layout;
    return row.find((n) => px >= x[n] && px <= x[n] + BOX.width) ?? null;
  }

  describe(n) {
    const { model } = this.app, node = model.nodes[n];
    return [`${n}  ${node.name}`, node.outputs.map(tensor).join(", "), model.short(node.line)];
  }

  click(x, y) { this.app.choose(this.hit(x, y)); }
}
