"use strict";
/* Figures and elements. Text only ever becomes text, never markup. */

function bytes(n) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit ? n.toFixed(2) : n} ${units[unit]}`;
}

function seconds(s) {
  if (s >= 1) return `${s.toFixed(3)} s`;
  return s >= 1e-3 ? `${(s * 1e3).toFixed(3)} ms` : `${(s * 1e6).toFixed(2)} µs`;
}

function count(n) {
  return n.toLocaleString("en");
}

function rate(n, s, unit) {
  return s > 0 ? `${(n / s / 1e9).toFixed(1)} G${unit}/s` : "–";
}

function tensor(place) {
  return `${place.dtype} ${place.shape.length ? place.shape.join(" × ") : "scalar"}`;
}

/* An element with attributes, of which functions are listeners, and children. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function pairs(list) {
  return element("dl", {}, ...list.flatMap(([name, value]) => [
    element("dt", {}, name), element("dd", {}, value),
  ]));
}

/* What kind of work an operation is, which its colour tells. */
const KINDS = [
  ["product", "products and convolutions", /matmul|gemm|conv|attention/],
  ["step", "updates of parameters and states", /sgd|adam|adagrad|rmsprop|running|advance/],
  ["normal", "normalisation, softmax, loss", /norm|softmax|entropy|statistics/],
  ["reduce", "reductions, pooling, indexing", /reduce|sum|mean|max$|min$|arg|pool|gather/],
  ["move", "copies, constants, random numbers", /copy|fill|cast|concat|arange|random|dropout|host/],
  ["element", "element by element", /./],
];

function kindOf(name) {
  return KINDS.find(([, , pattern]) => pattern.test(name))[0];
}
