// A table of any length: only the rows that are seen exist, and only the parts that are looked at are asked for.

import { get } from "./api.js";
import { as, h, setText } from "./dom.js";
import { TONES, ago, count, pathOf } from "./format.js";

const PAGE = 200;
const AROUND = 6; // rows beyond the edges
const REFRESH_MS = 900;
const narrow = matchMedia("(max-width: 760px)");
const COLUMNS = [["name", "Shoot"], ["seed", "Seed"], ["region", "Region"], ["state", "Operation"], [null, "Health"], ["created", "Age"]];

const keyOf = (row) => `${row.namespace}/${row.name}`;

export class ShootTable {
  total = null;
  #query;
  #pages = new Map(); // number → rows
  #stale = new Set();
  #requested = new Map();
  #places = new Map(); // key → row object, to patch in place
  #pool = [];
  #active = -1;
  #frame = 0;
  #timer = 0;
  #generation = 0;

  constructor(query, { counted } = {}) {
    this.#query = { sort: "namespace", ...query };
    this.counted = counted ?? (() => {});
    this.space = h("div", { class: "grid-space", role: "presentation" });
    this.scroll = h("div", { class: "grid-scroll", tabindex: "0", role: "rowgroup", "aria-label": "Shoots",
      onscroll: () => this.#soon(), onkeydown: (event) => this.#key(event) }, this.space);
    this.headers = COLUMNS.map(([sort, words]) => h("span", { role: "columnheader" },
      h("button", { type: "button", disabled: !sort, onclick: () => this.#sort(sort) }, words)));
    this.element = h("div", { class: "grid card", role: "table", "aria-label": "Shoots" }, h("div", { class: "grid-head", role: "row" }, this.headers), this.scroll);
    this.observer = new ResizeObserver(() => this.#soon());
    this.observer.observe(this.scroll);
    this.#markSort();
    this.#request(0);
  }

  get rowHeight() {
    return narrow.matches ? 60 : 40;
  }

  end() {
    this.observer.disconnect();
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#generation = -1;
  }

  filter(query) {
    this.#query = { sort: this.#query.sort, ...query };
    this.#begin();
  }

  // Take batches of changes: rows that are known are changed at once, the order is asked for a moment later.
  update(batches) {
    let isDirty = false;
    for (const batch of batches) {
      if (batch.reload || batch.manyShoots) isDirty = true;
      for (const row of batch.shoot ?? []) {
        isDirty = true;
        const existing = this.#places.get(keyOf(row));
        if (existing) Object.assign(existing, row);
      }
      isDirty ||= batch.gone?.some(([kind]) => kind === "shoot") ?? false;
    }
    if (!isDirty) return;
    this.#soon();
    if (!this.#timer) this.#timer = setTimeout(() => this.#refresh(), REFRESH_MS);
  }

  tick() {
    this.#soon();
  }

  #begin() {
    this.#generation += 1;
    this.#pages.clear();
    this.#places.clear();
    this.#requested.clear();
    this.#stale.clear();
    this.#active = -1;
    this.scroll.scrollTop = 0;
    this.#request(0);
    this.#soon();
  }

  #refresh() {
    this.#timer = 0;
    const [first, last] = this.#seen();
    const from = Math.floor(first / PAGE);
    const to = Math.floor(Math.max(first, last - 1) / PAGE);
    for (const number of this.#pages.keys()) {
      if (number < from || number > to) this.#stale.add(number);
    }
    for (let number = from; number <= to; number++) this.#request(number, true);
  }

  async #request(number, isAgain = false) {
    if (this.#generation < 0 || this.#requested.has(number) || (!isAgain && this.#pages.has(number) && !this.#stale.has(number))) return;
    const generation = this.#generation;
    this.#requested.set(number, true);
    try {
      const query = new URLSearchParams(Object.entries({ ...this.#query, offset: number * PAGE, limit: PAGE }).filter(([, value]) => value !== "" && value != null));
      const page = await get(`shoots?${query}`);
      if (generation !== this.#generation) return;
      for (const row of this.#pages.get(number) ?? []) this.#places.delete(keyOf(row));
      this.#pages.set(number, page.items);
      this.#stale.delete(number);
      for (const row of page.items) this.#places.set(keyOf(row), row);
      if (page.total !== this.total) {
        this.total = page.total;
        this.counted(page.total);
      }
    } catch {
      // the connection's state is shown elsewhere; the next change or scroll asks again
    } finally {
      if (generation === this.#generation) this.#requested.delete(number);
      this.#soon();
    }
  }

  #row(index) {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  #seen() {
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / height) - AROUND);
    const last = Math.min(this.total ?? 0, Math.ceil((this.scroll.scrollTop + this.scroll.clientHeight) / height) + AROUND);
    return [first, last];
  }

  #soon() {
    if (!this.#frame && this.#generation >= 0) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#draw();
      });
    }
  }

  #draw() {
    const height = this.rowHeight;
    this.space.style.height = `${(this.total ?? 0) * height}px`;
    this.element.setAttribute("aria-rowcount", this.total ?? 0);
    const [first, last] = this.#seen();
    while (this.#pool.length < last - first) this.#pool.push(this.#newRow());
    for (const [place, cells] of this.#pool.entries()) {
      // A row node keeps its place modulo the pool, so that scrolling by one changes one node.
      const size = this.#pool.length;
      let index = first + ((((place - first) % size) + size) % size);
      if (index >= last) index = -1;
      this.#fill(cells, index, height);
    }
    for (let number = Math.floor(first / PAGE); number <= Math.floor(Math.max(first, last - 1) / PAGE); number++) this.#request(number);
  }

  #newRow() {
    const cells = { dot: h("span", { class: "dot" }), name: h("b"), space: h("small"), where: h("a", { class: "where", tabindex: "-1" }), place: h("span", { class: "place soft" }),
      words: h("span"), percent: h("span"), bar: h("i"), ticks: h("span", { class: "ticks" }), age: h("span", { class: "age soft" }) };
    cells.meter = h("span", { class: "meter" }, cells.bar);
    cells.going = h("span", { class: "going", role: "cell" }, cells.words, cells.percent, cells.meter);
    cells.root = h("div", { class: "grid-row", role: "row" }, h("span", { class: "who", role: "cell" }, cells.dot, cells.name, cells.space), cells.where, cells.place,
      cells.going, h("span", { class: "health", role: "cell" }, cells.ticks), cells.age);
    for (const cell of [cells.where, cells.place, cells.age]) cell.setAttribute("role", "cell");
    cells.root.addEventListener("click", () => this.#open(cells.index));
    this.space.append(cells.root);
    return cells;
  }

  #fill(cells, index, height) {
    const { root } = cells;
    cells.index = index;
    const isHidden = index < 0;
    if (root.hidden !== isHidden) root.hidden = isHidden;
    root.style.display = isHidden ? "none" : "";
    if (isHidden) return;
    const top = `translateY(${index * height}px)`;
    if (root.style.transform !== top) root.style.transform = top;
    const row = this.#row(index);
    as(root, `grid-row${index === this.#active ? " active" : ""}${row ? "" : " ghost"}`);
    if (!row) {
      cells.shown = null;
      return;
    }
    setText(cells.age, ago(row.created));
    const mark = `${row.version}/${keyOf(row)}/${row.state}/${row.progress}/${row.seed}`;
    if (cells.shown === mark) return;
    cells.shown = mark;
    root.id = `row-${index}`;
    root.setAttribute("aria-rowindex", index + 1);
    const tone = row.refused ? "wait" : TONES[row.state];
    as(cells.dot, `dot ${tone}`);
    cells.dot.title = row.refused ? "waiting" : row.state;
    setText(cells.name, row.name);
    setText(cells.space, row.namespace);
    setText(cells.where, row.seed ? (row.moving ? `${row.actualSeed} → ${row.seed}` : row.seed) : row.refused ? "waits for a seed" : "–");
    setText(cells.place, `${row.provider} ${row.region}`);
    const isGoing = row.state === "processing" || row.state === "error" || row.state === "deleting";
    as(cells.going, `going${isGoing ? "" : " still"}`);
    setText(cells.words, row.refused ? row.description.replace(/^Failed to schedule Shoot: /, "") : `${row.operation} ${row.state}`.trim());
    cells.words.title = row.description;
    setText(cells.percent, isGoing ? `${row.progress} %` : "");
    as(cells.meter, `meter ${tone}`);
    cells.bar.style.width = `${row.progress}%`;
    if (cells.ticks.dataset.of !== row.conditions) {
      cells.ticks.dataset.of = row.conditions;
      cells.ticks.replaceChildren(...[...row.conditions].map((each) => h("i", { class: each })));
      cells.ticks.title = `${[...row.conditions].filter((each) => each === "t").length} of ${row.conditions.length} conditions are true`;
    }
  }

  #sort(column) {
    this.#query.sort = this.#query.sort === column ? `-${column}` : column;
    this.#markSort();
    this.#begin();
  }

  #markSort() {
    const sort = this.#query.sort;
    COLUMNS.forEach(([column], index) => {
      const order = column === sort ? "ascending" : `-${column}` === sort ? "descending" : "none";
      this.headers[index].setAttribute("aria-sort", order);
    });
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.#active >= 0) this.#open(this.#active);
    else if (event.key in steps && this.total) this.#move(steps[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #move(step) {
    const start = this.#active < 0 ? Math.ceil(this.scroll.scrollTop / this.rowHeight) - Math.sign(step) : this.#active;
    this.#active = Math.max(0, Math.min(this.total - 1, start + step));
    const top = this.#active * this.rowHeight;
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop) this.scroll.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.scroll.scrollTop = top + this.rowHeight - clientHeight;
    this.scroll.setAttribute("aria-activedescendant", `row-${this.#active}`);
    this.#soon();
  }

  #open(index) {
    const row = this.#row(index);
    if (row) location.hash = pathOf("shoot", row.namespace, row.name);
  }
}

export const shootCount = (total) => (total === null ? "" : `${count(total)} shoot${total === 1 ? "" : "s"}`);
