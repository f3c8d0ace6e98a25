// What belongs to what: sets, managed seeds, shoots, seeds and their shoots; placements, bindings and Works. It opens at what is not well.

import { get } from "../api.js";
import { empty, failed, h, loading, setText } from "../dom.js";
import { count, kindName, many, pathOf } from "../format.js";
import { live } from "../live.js";
import { pager } from "../pager.js";

const REFRESH_MS = 2000;
const idOf = (node) => `${node.kind}.${node.namespace || "_"}.${node.name}`;
const BINDINGS = new Set(["clusterresourcebinding", "resourcebinding"]);

export function treePage(main) {
  const opened = new Set();
  const closed = new Set();
  const works = new Map(); // id of a binding → nodes, or why there are none
  const place = h("div", { class: "card tree" }, loading());
  const hint = h("p", { class: "sub", role: "status" }, "What belongs to what");
  let first = 0;
  let size = 50;
  let timer = 0;
  let isOver = false;
  let generation = 0;
  const turn = pager(size, "objects", (offset) => { first = offset; read(); });
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Tree"), hint)), place, turn.element);

  async function read() {
    timer = 0;
    const mine = ++generation;
    const parameters = new URLSearchParams([...[...opened].map((id) => ["open", id]), ...[...closed].map((id) => ["closed", id]), ["offset", first]]);
    const found = await get(`tree?${parameters}`).catch((error) => error);
    if (isOver || mine !== generation) return;
    if (found instanceof Error) {
      if (live.state !== "lost") place.replaceChildren(failed(found));
      timer = setTimeout(read, REFRESH_MS);
      return;
    }
    const { root, page } = found;
    size = page;
    const nodes = root.children ?? [];
    if (!nodes.length && first) {
      first = 0;
      return read();
    }
    turn.show(first, nodes.length, root.below);
    setText(hint, root.troubles ? `${many(root.troubles, "object is", "objects are")} not well, or above what is not: first, and opened` : "What belongs to what: all is well");
    if (!nodes.length) return place.replaceChildren(live.summary?.synced ? empty("map", "Nothing here yet") : loading());
    const focus = document.activeElement?.dataset?.node;
    place.replaceChildren(h("ul", { role: "tree", "aria-label": "Objects" }, nodes.map((node) => branch(node, 1))));
    if (focus) place.querySelector(`[data-node="${CSS.escape(focus)}"]`)?.focus();
  }
  function turned(node, isOpen) {
    const id = idOf(node);
    opened.delete(id);
    closed.delete(id);
    (isOpen ? opened : closed).add(id);
    if (isOpen && BINDINGS.has(node.kind)) readWorks(node);
    read();
  }
  async function readWorks(node) {
    const id = idOf(node);
    works.set(id, await get(`works/${node.kind}/${encodeURIComponent(node.namespace || "_")}/${encodeURIComponent(node.name)}`).then((found) => found.items).catch((error) => error.message));
    if (!isOver) read();
  }
  function branch(node, level) {
    const id = idOf(node);
    const isBinding = BINDINGS.has(node.kind);
    const below = isBinding ? opened.has(id) && works.get(id) : node.children;
    const isOpen = isBinding ? opened.has(id) : Boolean(node.children);
    const can = isBinding || node.below > 0;
    const sign = can ? h("button", { class: "turn", type: "button", tabindex: -1, "aria-hidden": "true", onclick: () => turned(node, !isOpen) }, isOpen ? "▾" : "▸") : h("span", { class: "turn" });
    const name = h("a", { class: "link", href: pathOf(node.kind, node.namespace, node.name), "data-walk": true, data: { node: id }, onkeydown: (event) => key(event, node, can, isOpen) }, `${kindName(node.kind)} ${node.name}`);
    const row = h("div", { class: "node" }, sign, h("span", { class: `dot ${node.tone}` }), name, h("span", { class: "about" }, node.words), node.troubles > 0 && h("span", { class: "chip bad" }, `${count(node.troubles)} not well`));
    const list = Array.isArray(below) ? below : [];
    const rest = isOpen && !isBinding && node.below > list.length ? node.below - list.length : 0;
    const note = typeof below === "string" ? below : rest ? h("a", { class: "link", href: node.kind === "seed" ? `#/shoots?seed=${encodeURIComponent(node.name)}` : pathOf(node.kind, node.namespace, node.name) }, `${count(rest)} more`) : isBinding && Array.isArray(below) && !list.length ? "no Works" : null;
    return h("li", { role: "treeitem", "aria-level": level, "aria-expanded": can ? String(isOpen) : null, "aria-label": `${kindName(node.kind)} ${node.name}: ${node.words}${node.troubles ? `, ${node.troubles} below are not well` : ""}` }, row, isOpen && h("ul", { role: "group" }, list.map((each) => branch(each, level + 1)), note && h("li", { role: "none", class: "sub" }, note)));
  }
  function key(event, node, can, isOpen) {
    const isTurn = (event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen);
    if (!can || !isTurn) return;
    event.preventDefault();
    turned(node, !isOpen);
  }
  read();
  return {
    update() {
      timer ||= setTimeout(read, REFRESH_MS);
    },
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
