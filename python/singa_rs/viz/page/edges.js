"use strict";
/* What operations hand to each other, as curves; between closed layers one for all. */

const MOST_ARROWS = 600;

class Edges {
  constructor(scene) {
    const merged = new Map(), stands = new Map();
    const standIn = (n) => {
      if (!stands.has(n)) stands.set(n, scene.standIn(n));
      return stands.get(n);
    };
    for (const { from, to } of scene.model.flow) {
      const a = standIn(from), b = standIn(to);
      if (a.key === b.key) continue;
      const key = `${a.key}\n${b.key}`, known = merged.get(key);
      if (known) known.pairs.push([from, to]);
      else merged.set(key, this.#edge(scene, a, b, from, to));
    }
    this.all = [...merged.values()];
  }

  #edge(scene, a, b, from, to) {
    const across = scene.lane[to] - scene.lane[from];
    const curve = across && scene.columns.length ? crossing(a, b, across) : along(a, b, scene);
    const top = Math.min(curve[1], curve[3], curve[5], curve[7]), bottom = Math.max(curve[1], curve[3], curve[5], curve[7]);
    return { pairs: [[from, to]], curve, top, bottom, isAcross: Boolean(across) };
  }

  /* Draws those in sight; those of the chosen operation, or in or out of the chosen layer, last. */
  draw(context, view) {
    const { top, bottom, scale, colours, isChosen } = view;
    const shown = this.all.filter((edge) => edge.bottom >= top && edge.top <= bottom);
    const [chosen, plain] = [[], []];
    for (const edge of shown) (edge.pairs.some(isChosen) ? chosen : plain).push(edge);
    const thin = Math.max(1, 0.7 / scale);
    this.#stroke(context, plain.filter((edge) => edge.isAcross), colours["edge-soft"], thin);
    for (const [least, most, width] of [[1, 1, 1.3], [2, 7, 2], [8, Infinity, 3]]) {
      const some = plain.filter(({ pairs, isAcross }) => !isAcross && pairs.length >= least && pairs.length <= most);
      this.#stroke(context, some, colours.edge, Math.max(width, 0.7 / scale));
    }
    this.#stroke(context, chosen, colours.accent, 1.8 / Math.min(1, scale));
    if (scale < 0.35 || shown.length > MOST_ARROWS) return;
    arrows(context, plain.filter((edge) => !edge.isAcross), colours.edge);
    arrows(context, chosen, colours.accent);
  }

  #stroke(context, edges, colour, width) {
    if (!edges.length) return;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (const { curve: [ax, ay, bx, by, cx, cy, dx, dy] } of edges) {
      context.moveTo(ax, ay);
      context.bezierCurveTo(bx, by, cx, cy, dx, dy);
    }
    context.stroke();
  }
}

/* From one column to another: from side to side. */
function crossing(a, b, across) {
  const ax = across > 0 ? a.x + a.width : a.x, bx = across > 0 ? b.x : b.x + b.width;
  const ay = a.y + a.height / 2, by = b.y + b.height / 2, bend = (bx - ax) / 2;
  return [ax, ay, ax + bend, ay, bx - bend, by, bx, by];
}

/* Within a column: down or up; what skips rows swings out, and passes beside the others. */
function along(a, b, scene) {
  const isDown = b.y >= a.y, ax = a.x + a.width / 2, bx = b.x + b.width / 2;
  const ay = isDown ? a.y + a.height : a.y, by = isDown ? b.y : b.y + b.height;
  const away = Math.abs(by - ay), span = away / ROW;
  if (scene.columns.length && span > 1.4) {
    const [from, to] = [a.x + a.width, b.x + b.width], turn = isDown ? 20 : -20;
    const side = Math.max(from, to) + Math.min(GUTTER - 8, 14 + 3 * span);
    const [start, end] = [a.y + a.height / 2, b.y + b.height / 2];
    return [from, start, side, start + turn, side, end - turn, to, end];
  }
  const swing = span > 1 && !scene.columns.length ? Math.min(420, 30 + 14 * span) : 0;
  const bend = (isDown ? 1 : -1) * Math.min(ROW, away / 2);
  return [ax, ay, ax + swing, ay + bend, bx + swing, by - bend, bx, by];
}

/* Their heads, pointing along the ends of the curves. */
function arrows(context, edges, colour) {
  context.fillStyle = colour;
  context.beginPath();
  for (const { curve: [, , , , cx, cy, dx, dy] } of edges) {
    const length = Math.hypot(dx - cx, dy - cy) || 1, ux = (dx - cx) / length, uy = (dy - cy) / length;
    context.moveTo(dx, dy);
    context.lineTo(dx - 8 * ux + 3.5 * uy, dy - 8 * uy - 3.5 * ux);
    context.lineTo(dx - 8 * ux - 3.5 * uy, dy - 8 * uy + 3.5 * ux);
    context.closePath();
  }
  context.fill();
}
