"use strict";
/* The part of the self-test on layers: boxes that open and close, and the map of them. */

class LayersTest {
  constructor(test) { this.test = test; }

  check(name, isRight) { this.test.check(name, isRight); }

  run(pane) {
    const { layers } = app;
    document.querySelector(".close-all").click();
    this.arrangement("closed", pane);
    this.map(pane);
    if (!layers.isKnown) return;
    const isTop = (box) => box.layer.parent === layers.root;
    this.check("closed, only the outermost layers are shown", pane.scene.boxes.every(isTop) && pane.scene.boxes.length === layers.root.children.length);
    this.steps(pane);
    this.timed("open all, ms", () => document.querySelector(".open-all").click(), pane);
    this.check("all open, every operation and layer is shown", pane.scene.shown.length === app.model.nodes.length && pane.scene.boxes.length === layers.all.length);
    this.arrangement("open", pane);
    this.map(pane);
    this.test.results.figures["graph open, ms"] = this.test.redraw(pane);
    pane.begin();
    this.test.results.figures["graph open, near, ms"] = this.test.redraw(pane);
    this.timed("close all, ms", () => document.querySelector(".close-all").click(), pane);
  }

  timed(name, action, pane) {
    const start = performance.now();
    action();
    pane.now();
    pane.context.getImageData(0, 0, 1, 1);
    this.test.results.times[name] = performance.now() - start;
  }

  /* A click opens one layer more, and another one closes it. */
  steps(pane) {
    const { layers } = app, layer = layers.root.children.find((one) => one.children.length) ?? layers.root.children[0];
    const count = pane.scene.boxes.length, closed = pane.edges.all.length;
    pane.fit();
    this.press(pane, layer);
    this.check("a click opens a layer", layer.isOpen && pane.scene.boxes.length === count + layer.children.length);
    this.check("those in it are closed", layer.children.every((one) => !one.isOpen));
    this.check("it has more edges than while it was closed", layer.total.operations < 2 || pane.edges.all.length > closed);
    this.arrangement("partly open", pane);
    this.press(pane, layer);
    this.check("another click closes it", !layer.isOpen && pane.scene.boxes.length === count && pane.edges.all.length === closed);
  }

  press(pane, layer) {
    const box = pane.scene.byLayer.get(layer);
    const at = this.test.point(pane, pane.x + (box.x + 20) * pane.kx, pane.y + (box.y + 12) * pane.ky);
    for (const name of ["pointerdown", "pointerup"]) this.test.send(pane.canvas, PointerEvent, name, at);
  }

  /* Nothing covers anything else, layers lie in those around them, and all fits in sight. */
  arrangement(state, pane) {
    const { scene } = pane, leaves = scene.shown.map((n) => ({ x: scene.x[n], y: scene.y[n], ...BOX }));
    leaves.push(...scene.boxes.filter((box) => !box.layer.isOpen));
    this.check(`${state}: nothing covers anything else`, !anyOverlap(leaves));
    const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width && a.y + a.height <= b.y + b.height;
    const around = (layer) => scene.byLayer.get(layer);
    const nested = scene.boxes.every((box) => !box.layer.parent.parent || inside(box, around(box.layer.parent)));
    const held = scene.shown.every((n, i) => {
      const layer = app.layers.of[n];
      return !app.layers.isKnown || !layer.parent || inside(leaves[i], around(layer));
    });
    this.check(`${state}: everything lies in its layer`, nested && held);
    const cells = scene.boxes.flatMap((box) => [...box.cells.values()].map((cell) => inside(cell, box)));
    this.check(`${state}: what is in a closed layer, too`, cells.every(Boolean));
    document.querySelector(".fit").click();
    const seen = { x: -pane.x / pane.kx, y: (pane.band - pane.y) / pane.ky, width: pane.width / pane.kx, height: (pane.height - pane.band) / pane.ky };
    this.check(`${state}: fitted, all is in sight`, [...leaves, ...scene.boxes].every((box) => inside(box, seen)));
  }

  map(pane) {
    const { minimap } = pane, frame = minimap.frame(), near = (a, b) => Math.abs(a - b) < 2;
    const isInside = frame.x >= 0 && frame.y >= 0 && frame.x + frame.width <= minimap.width && frame.y + frame.height <= minimap.height;
    this.check("the map's frame lies in it", minimap.width > 0 && isInside);
    pane.zoom(6);
    const small = minimap.frame();
    this.check("near, the frame is smaller", small.width < frame.width && small.height < frame.height);
    const { left, top } = minimap.canvas.getBoundingClientRect();
    const at = (x, y) => ({ clientX: left + x, clientY: top + y, pointerId: 1 });
    this.test.send(minimap.canvas, PointerEvent, "pointerdown", at(minimap.width / 2, minimap.height / 2));
    this.test.send(minimap.canvas, PointerEvent, "pointermove", at(minimap.width / 2 + 8, minimap.height / 2 + 6));
    this.test.send(minimap.canvas, PointerEvent, "pointerup", at(0, 0));
    const x = (pane.width / 2 - pane.x) / pane.kx * minimap.scale + minimap.left;
    const y = (pane.height / 2 - pane.y) / pane.ky * minimap.scale + minimap.top;
    this.check("dragging in the map moves the view", near(x, minimap.width / 2 + 8) && near(y, minimap.height / 2 + 6));
    this.test.send(minimap.canvas, PointerEvent, "pointermove", at(0, 0));
    this.check("and ends when it is let go", near(x, (pane.width / 2 - pane.x) / pane.kx * minimap.scale + minimap.left));
    pane.fit();
  }
}

/* Whether any two rectangles overlap, from the top down. */
function anyOverlap(boxes) {
  const sorted = [...boxes].sort((a, b) => a.y - b.y);
  return sorted.some((a, i) => {
    for (let k = i + 1; k < sorted.length && sorted[k].y < a.y + a.height - 1e-6; k++) {
      const b = sorted[k];
      if (b.x < a.x + a.width - 1e-6 && a.x < b.x + b.width - 1e-6) return true;
    }
    return false;
  });
}
