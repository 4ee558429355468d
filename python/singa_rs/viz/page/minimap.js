"use strict";
/* The whole graph in a corner, and which part of it is in sight; dragging moves that. */

class Minimap {
  constructor(section, pane) {
    this.pane = pane;
    this.canvas = section.querySelector(".minimap");
    this.context = this.canvas.getContext("2d");
    const on = (name, listener) => this.canvas.addEventListener(name, listener.bind(this));
    on("pointerdown", this.#grab);
    on("pointermove", this.#drag);
    on("pointerup", () => (this.isHeld = false));
    on("pointercancel", () => (this.isHeld = false));
    on("wheel", (event) => event.preventDefault());
  }

  /* How much of the width is left free for it, where there is enough. */
  get room() { return this.pane.width > 700 ? 204 : 0; }

  /* Draws everything once; the frame is put over it each time. */
  refresh() {
    const { clientWidth: width, clientHeight: height } = this.canvas, ratio = window.devicePixelRatio || 1;
    if (!width) return;
    Object.assign(this, { width, height, ratio });
    const { left, right, top, bottom } = this.pane.scene.bounds;
    this.scale = Math.min((width - 12) / (right - left || 1), (height - 12) / (bottom - top || 1));
    this.left = (width - (right - left) * this.scale) / 2 - left * this.scale;
    this.top = (height - (bottom - top) * this.scale) / 2 - top * this.scale;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.whole = document.createElement("canvas");
    [this.whole.width, this.whole.height] = [this.canvas.width, this.canvas.height];
    this.#everything(this.whole.getContext("2d"));
  }

  #everything(context) {
    const { scene, app } = this.pane, { scale, ratio } = this, { colours, model } = app;
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * this.left, ratio * this.top);
    for (const { x, y, width, height, layer, cells } of scene.boxes) {
      context.fillStyle = layer.isOpen ? colours.frame : colours.line;
      context.fillRect(x, y, width, height);
      for (const [phase, cell] of cells) {
        context.fillStyle = colours[phase] ?? colours.accent;
        context.fillRect(cell.x, cell.y, cell.width, cell.height);
      }
    }
    for (const [kind] of KINDS) {
      context.fillStyle = colours[kind];
      for (const n of scene.shown) {
        if (model.kinds[n] === kind) context.fillRect(scene.x[n], scene.y[n], BOX.width, BOX.height);
      }
    }
  }

  /* The part in sight, in pixels of the map, cut off at its edges. */
  frame() {
    const { pane, scale } = this;
    const at = (v, origin, k, offset) => ((v - origin) / k) * scale + offset;
    const x = Math.max(1, at(0, pane.x, pane.kx, this.left)), y = Math.max(1, at(0, pane.y, pane.ky, this.top));
    const right = Math.min(this.width - 1, at(pane.width, pane.x, pane.kx, this.left));
    const bottom = Math.min(this.height - 1, at(pane.height, pane.y, pane.ky, this.top));
    return { x, y, width: Math.max(2, right - x), height: Math.max(2, bottom - y) };
  }

  draw() {
    if (!this.whole) return;
    const { context, ratio } = this, { x, y, width, height } = this.frame(), { colours } = this.pane.app;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.whole, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
    context.globalAlpha = 0.1;
    context.fillStyle = colours.accent;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
  }

  #grab(event) {
    if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
    this.isHeld = true;
    this.#drag(event);
  }

  /* Moves what is in sight to the pointer. */
  #drag(event) {
    if (!this.isHeld) return;
    const { pane, scale } = this, box = this.canvas.getBoundingClientRect();
    const gx = (event.clientX - box.left - this.left) / scale, gy = (event.clientY - box.top - this.top) / scale;
    pane.x = pane.width / 2 - gx * pane.kx;
    pane.y = pane.height / 2 - gy * pane.ky;
    pane.redraw();
  }
}
