"use strict";
/* The operations, the tensors in the arena, and who hands what to whom. */

class Model {
  constructor(data) {
    Object.assign(this, data);
    this.kinds = this.nodes.map((node) => kindOf(node.name));
    this.residents = this.#residents();
    this.#connect();
    this.peak = this.curve.indexOf(this.curve.reduce((a, b) => Math.max(a, b), 0));
    this.folder = this.#folder();
    this.texts = this.nodes.map((node, n) => this.#text(node, n));
    this.shapes = this.nodes.map(({ outputs }) => this.#shape(outputs));
    this.figures = this.nodes.map(({ bytes: moved }, n) => {
      const time = this.profile?.seconds[n];
      return time === undefined ? bytes(moved) : `${bytes(moved)}, ${seconds(time)}`;
    });
  }

  /* What lies in the arena: tensors, and work space. */
  #residents() {
    const boxes = [];
    this.makers = new Map();
    this.nodes.forEach((node, n) => {
      for (const place of node.outputs) {
        if (!this.makers.has(place.block)) this.makers.set(place.block, n);
      }
      if (node.scratch) {
        const { bytes, offset } = node.scratch;
        boxes.push({ block: null, maker: n, offset, bytes, first: n, last: n });
      }
    });
    this.blocks.forEach((block, number) => {
      if (block.offset === null || block.first === null) return;
      const maker = this.makers.get(number) ?? block.first;
      const { offset, bytes, first, last } = block;
      boxes.push({ block: number, maker, offset, bytes, first, last });
    });
    return boxes;
  }

  /* From the last writer of a block to each reader, and to who writes on in it. */
  #connect() {
    const writers = new Map(), seen = new Set();
    this.flow = [];
    this.before = this.nodes.map(() => []);
    this.after = this.nodes.map(() => []);
    this.nodes.forEach((node, n) => {
      for (const { block } of [...node.inputs, ...node.outputs]) {
        const from = writers.get(block), key = `${from}-${n}`;
        if (from === undefined || seen.has(key)) continue;
        seen.add(key);
        this.flow.push({ from, to: n });
        this.before[n].push(from);
        this.after[from].push(n);
      }
      for (const { block } of node.outputs) writers.set(block, n);
    });
  }

  #text(node, n) {
    const attributes = Object.values(node.attributes ?? {}).join(" ");
    const names = [...node.inputs, ...node.outputs].map(({ block }) => this.blocks[block].name ?? "");
    const place = [node.layer, node.phase].filter(Boolean).join(" ");
    return `${n} ${node.name} ${place} ${attributes} ${node.line} ${names.join(" ")}`.toLowerCase();
  }

  /* What an operation writes, in short. */
  #shape(outputs) {
    if (!outputs.length) return "";
    const [{ dtype, shape }] = outputs, more = outputs.length > 1 ? ` +${outputs.length - 1}` : "";
    return `${dtype} ${shape.length ? shape.join("×") : "scalar"}${more}`;
  }

  /* What the files of all lines have in common. */
  #folder() {
    const files = [...new Set(this.nodes.map(({ line }) => line))].filter((line) => line.includes("/"));
    let folder = files[0]?.slice(0, files[0].lastIndexOf("/") + 1) ?? "";
    while (!files.every((line) => line.startsWith(folder))) {
      folder = folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
    }
    return folder;
  }

  /* A line of the program without that. */
  short(line) {
    return this.folder && line.startsWith(this.folder) ? line.slice(this.folder.length) : line;
  }

  /* Operations in which every word is found. */
  search(query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const isFound = (text) => words.every((word) => text.includes(word));
    return this.texts.flatMap((text, n) => (isFound(text) ? [n] : []));
  }

  nameOf(box) {
    const node = this.nodes[box.maker].name;
    return box.block === null ? `work space of ${node}` : this.blocks[box.block].name ?? node;
  }

  lineOf(box) {
    return this.nodes[box.maker].line;
  }

  /* The boxes at an operation, the largest first; what shares memory in place once. */
  alive(n) {
    const byOffset = new Map();
    for (const box of this.residents) {
      if (box.first > n || box.last < n || !box.bytes) continue;
      const other = byOffset.get(box.offset);
      if (!other || other.first < box.first) byOffset.set(box.offset, box);
    }
    return [...byOffset.values()].sort((a, b) => b.bytes - a.bytes);
  }
}
