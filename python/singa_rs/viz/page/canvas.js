"use strict";
/* A canvas that is moved, zoomed, pointed at and steered with keys. */

class Pane {
  /* `axes`: along which it zooms, "xy" both alike, or "x". */
  constructor(section, app, axes) {
    this.canvas = section.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    Object.assign(this, { section, app, axes, x: 0, y: 0, kx: 1, ky: 1, width: 0, height: 0 });
    this.pointers = new Map();
    this.#listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  #listen() {
    const on = (name, listener) => this.canvas.addEventListener(name, listener.bind(this));
    on("wheel", this.wheel);
    on("pointerdown", this.down);
    on("pointermove", this.move);
    on("pointerup", this.up);
    on("pointercancel", this.up);
    on("pointerleave", () => this.app.tip.hide());
    on("keydown", this.key);
    on("dblclick", this.doubleClick);
  }

  resize() {
    // Asked once, since each question may lay the page out anew.
    const { clientWidth, clientHeight } = this.canvas;
    [this.width, this.height] = [clientWidth, clientHeight];
    if (!this.width || !this.height) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    // The view to begin with, or all, stays that until something else is looked at.
    const { x, y, kx, kept } = this;
    if (!kept) this.begin();
    else if (kept.x === x && kept.y === y && kept.kx === kx) kept.again();
    this.redraw();
  }

  /* Draws before the next frame, once, however often it is asked to. */
  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.now());
  }

  now() {
    this.frame = 0;
    const ratio = window.devicePixelRatio || 1;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.draw(this.context);
  }

  fit() {
    this.frameAll();
    this.keep(() => this.fit());
  }

  /* Notes how the view that is set now was made. */
  keep(again) {
    const { x, y, kx } = this;
    this.kept = { x, y, kx, again };
    this.redraw();
  }

  /* The view to begin with. */
  begin() { this.fit(); }

  doubleClick() { this.fit(); }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const [least, most] = this.limits();
    const k = Math.min(most, Math.max(least, this.kx * factor)), by = k / this.kx;
    this.x = x - (x - this.x) * by;
    this.kx = k;
    if (this.axes === "xy") {
      this.y = y - (y - this.y) * by;
      this.ky = k;
    }
    this.settle();
    this.redraw();
  }

  pan(dx, dy) {
    this.x += dx;
    if (this.axes === "xy") this.y += dy;
    this.settle();
    this.redraw();
  }

  /* Keeps what is shown within reach. */
  settle() {}

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey) this.pan(-event.deltaY - event.deltaX, 0);
    else this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...this.at(event));
  }

  down(event) {
    if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.at(event));
    this.travelled = 0;
  }

  move(event) {
    const [x, y] = this.at(event), before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(x, y, event);
    const spread = this.#spread();
    this.pointers.set(event.pointerId, [x, y]);
    this.travelled += Math.hypot(x - before[0], y - before[1]);
    if (this.pointers.size > 1) this.zoom(this.#spread() / spread, x, y);
    else this.pan(x - before[0], y - before[1]);
    this.app.tip.hide();
  }

  up(event) {
    const isClick = this.pointers.delete(event.pointerId) && this.travelled < 4;
    if (isClick && event.type === "pointerup") this.click(...this.at(event));
  }

  #spread() {
    const [a, b] = [...this.pointers.values()];
    return b ? Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1])) : 1;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(x, y, event) {
    const found = this.hit(x, y);
    if (found === null) this.app.tip.hide();
    else this.app.tip.show(this.describe(found), event.clientX, event.clientY);
  }

  key(event) {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
