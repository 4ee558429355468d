"use strict";
/* Where the operations stand: rows by their distance from the beginning, in time linear in the
   number of operations and edges but for sorting each row. */

const ROW = 80, COLUMN = 176, BOX = { width: 156, height: 50 };

function depths(model) {
  const depth = new Int32Array(model.nodes.length);
  model.nodes.forEach((_, n) => {
    for (const from of model.before[n]) depth[n] = Math.max(depth[n], depth[from] + 1);
  });
  // What waits for nothing stands right before the first that waits for it.
  model.nodes.forEach((_, n) => {
    if (model.before[n].length || !model.after[n].length) return;
    const first = model.after[n].reduce((least, to) => Math.min(least, depth[to]), Infinity);
    depth[n] = Math.max(0, first - 1);
  });
  return depth;
}

/* How many rows follow at least: what has most behind it is the spine of its row. */
function heights(model) {
  const height = new Int32Array(model.nodes.length);
  for (let n = model.nodes.length - 1; n >= 0; n--) {
    for (const to of model.after[n]) height[n] = Math.max(height[n], height[to] + 1);
  }
  return height;
}

function layered(model) {
  const depth = depths(model), height = heights(model), rows = [];
  depth.forEach((row, n) => (rows[row] ??= []).push(n));
  const x = new Float64Array(depth.length), y = new Float64Array(depth.length);
  const wanted = new Float64Array(depth.length);
  for (let row = 0; row < rows.length; row++) {
    const nodes = (rows[row] ??= []);
    for (const n of nodes) {
      const from = model.before[n].filter((other) => depth[other] < row);
      wanted[n] = middle(from, height, x);
      y[n] = row * ROW;
    }
    nodes.sort((a, b) => wanted[a] - wanted[b] || a - b);
    place(nodes, wanted, height, x);
  }
  return { x, y, rows };
}

/* Below that one of the operations before which has most behind it. */
function middle(from, height, x) {
  let best = -1, at = 0;
  for (const n of from) {
    if (height[n] > best) [best, at] = [height[n], x[n]];
  }
  return at;
}

/* The spine of a row where it is wanted; on both sides of it the others, as near as there is room. */
function place(nodes, wanted, height, x) {
  if (!nodes.length) return;
  const spine = nodes.reduce((best, n, i) => (height[n] > height[nodes[best]] ? i : best), 0);
  // What would stand in its place goes to either side in turn.
  const left = [], right = [];
  nodes.forEach((n, i) => {
    if (i === spine) return;
    const isLeft = wanted[n] < wanted[nodes[spine]] || (wanted[n] === wanted[nodes[spine]] && i % 2);
    (isLeft ? left : right).push(n);
  });
  x[nodes[spine]] = wanted[nodes[spine]];
  let edge = x[nodes[spine]];
  for (const n of right) x[n] = edge = Math.max(wanted[n], edge + COLUMN);
  edge = x[nodes[spine]];
  for (const n of left.reverse()) x[n] = edge = Math.min(wanted[n], edge - COLUMN);
}
