"use strict";
/* How layers and operations are drawn. */

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";

class Boxes {
  constructor(pane) {
    this.pane = pane;
    this.app = pane.app;
  }

  /* A closed layer with a cell for each phase, or the frame of an open one. */
  frame(context, box) {
    const { colours } = this.app, { layer, x, y, width, height } = box;
    context.fillStyle = layer.isOpen ? colours.frame : colours.raised;
    context.strokeStyle = colours.line;
    context.lineWidth = 1.2;
    context.beginPath();
    context.roundRect(x, y, width, height, 10);
    context.fill();
    context.stroke();
    if (this.pane.kx < 0.22) return this.#cellsFar(context, box);
    for (const [phase, cell] of box.cells) this.#cell(context, phase, cell, layer.sums.get(phase));
  }

  /* The path of a layer and what it adds up to, over lines that pass. */
  caption(context, { layer, x, y, width }) {
    const { colours, model } = this.app;
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = layer.isOpen ? colours.frame : colours.raised;
    const time = model.profile !== null, text = totals(layer.total, time);
    const share = this.pane.share(layer);
    this.#text(context, `${layer.isOpen ? "▾" : "▸"} ${layer.path}`, x + 14, y + 19, width * 0.55, `600 13px ${FONT}`, colours.ink, "left", true);
    this.#text(context, share ? `${text} (${share})` : text, x + width - 14, y + 19, width * 0.42, `12px ${FONT}`, colours.soft, "right", true);
  }

  #cell(context, phase, { x, y, width, height }, sum) {
    const { colours, model } = this.app;
    context.fillStyle = colours[`${phase}-soft`] ?? colours["accent-soft"];
    context.beginPath();
    context.roundRect(x, y, width, height, 7);
    context.fill();
    context.fillStyle = colours[phase] ?? colours.accent;
    context.fillRect(x, y + 6, 3, height - 12);
    const operations = `${count(sum.operations)} operation${sum.operations === 1 ? "" : "s"}`;
    const figures = model.profile ? `${bytes(sum.bytes)}, ${seconds(sum.seconds)}` : bytes(sum.bytes);
    this.#text(context, operations, x + 12, y + 18, width - 20, `500 12px ${FONT}`, colours.ink);
    this.#text(context, figures, x + 12, y + 34, width - 20, `11.5px ${FONT}`, colours.soft);
  }

  #cellsFar(context, box) {
    for (const [phase, { x, y, width, height }] of box.cells) {
      context.fillStyle = this.app.colours[phase] ?? this.app.colours.accent;
      context.fillRect(x, y, width, height);
    }
  }

  /* An operation: its name, what it writes, the bytes that it moves, and its time. */
  operation(context, n, x, y) {
    const { model, colours } = this.app, node = model.nodes[n];
    context.fillStyle = colours[model.kinds[n]];
    context.beginPath();
    context.roundRect(x, y, BOX.width, BOX.height, 7);
    context.fill();
    if (this.pane.kx < 0.4) return;
    const middle = x + BOX.width / 2, room = BOX.width - 12, { label } = colours;
    this.#text(context, node.name, middle, y + 15, room, `600 12px ${FONT}`, label, "center");
    if (this.pane.kx < 0.55) return;
    this.#text(context, model.shapes[n], middle, y + 30, room, `11px ${FONT}`, label, "center");
    this.#text(context, model.figures[n], middle, y + 44, room, `11px ${FONT}`, label, "center");
  }

  /* Text that is made narrower, then shortened, to fit. */
  #text(context, text, x, y, room, font, colour, align = "left", isOver = false) {
    context.font = font;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = "alphabetic";
    if (text.length * 8 > room && context.measureText(text).width > room * 1.25) {
      while (text.length > 4 && context.measureText(`${text}…`).width > room) text = text.slice(0, -1);
      text += "…";
    }
    if (isOver) context.strokeText(text, x, y, room);
    context.fillText(text, x, y, room);
  }
}
