// What lies over the page: search, keys, questions, and short messages.

import { get } from "./api.js";
import { h } from "./dom.js";
import { kindName, pathOf } from "./format.js";

function opened(dialog, ready) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.showModal();
  ready?.();
  return dialog;
}

export function toast(words, tone = "") {
  const message = h("div", { class: `toast ${tone}` }, words);
  document.getElementById("toasts").append(message);
  setTimeout(() => message.remove(), 6000);
}

export function openKeys() {
  const keys = [["/", "search"], ["?", "these keys"], ["g l", "landscape"], ["g d", "seeds"], ["g s", "shoots"], ["g w", "waiting"], ["g g", "growth"], ["g t", "tree"], ["g p", "placements"], ["g c", "member clusters"], ["g e", "events"], ["g o", "operations"],
    ["j k", "down and up in a list"], ["Enter", "open"], ["f", "filter"], ["Esc", "back, or close"], ["t", "theme"]];
  const rows = keys.map(([key, words]) => [h("span", null, key.split(" ").map((each) => [h("kbd", null, each), " "])), h("span", null, words)]);
  opened(h("dialog", { "aria-label": "Keys" }, h("div", { class: "inside" }, h("h2", null, "Keys"), h("div", { class: "keys" }, rows),
    h("form", { method: "dialog", class: "row" }, h("button", { class: "button" }, "Close")))));
}

export function openSearch() {
  if (document.querySelector("dialog.palette")) return;
  let items = [];
  let at = 0;
  let turn = 0;
  const list = h("ul", { role: "listbox", id: "found", "aria-label": "Results" });
  const input = h("input", {
    type: "search", placeholder: "Shoots, seeds, sets, profiles…", "aria-label": "Search", role: "combobox", "aria-expanded": "true",
    "aria-controls": "found", autocomplete: "off", spellcheck: "false", oninput: search, onkeydown: walk,
  });
  const dialog = h("dialog", { class: "palette", "aria-label": "Search" }, input, list);

  function draw() {
    const words = input.value.trim() ? "Nothing has this name." : "Type a part of a name; several words narrow it down.";
    const rows = items.map((each, index) => h("li", { role: "option", id: `found-${index}`, "aria-selected": String(index === at), onclick: () => go(each) },
      h("span", null, each.name), each.namespace && h("small", null, each.namespace), h("small", null, kindName(each.kind))));
    list.replaceChildren(...(rows.length ? rows : [h("li", { class: "none" }, words)]));
    input.setAttribute("aria-activedescendant", rows.length ? `found-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  }
  function go(each) {
    dialog.close();
    location.hash = pathOf(each.kind, each.namespace, each.name);
  }
  async function search() {
    const mine = ++turn;
    await new Promise((done) => setTimeout(done, 90));
    if (mine !== turn) return;
    const found = await get(`search?q=${encodeURIComponent(input.value)}`).catch(() => ({ items: [] }));
    if (mine !== turn) return;
    items = found.items;
    at = 0;
    draw();
  }
  function walk(event) {
    if (event.key === "Escape") {
      event.preventDefault(); // the browser would only empty the field
      dialog.close();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) {
      at = (at + step + items.length) % items.length;
      draw();
      event.preventDefault();
    } else if (event.key === "Enter" && items[at]) {
      event.preventDefault();
      go(items[at]);
    }
  }
  draw();
  opened(dialog, () => input.focus());
}

// Ask for the name of what is to be deleted; answers whether it was typed.
export function confirmDeletion(kind, name) {
  return new Promise((done) => {
    const sure = h("button", { class: "button risky sure", type: "submit", value: "yes", disabled: true }, "Delete");
    const input = h("input", { class: "field", "aria-label": `Type ${name}`, autocomplete: "off", oninput: () => (sure.disabled = input.value !== name) });
    const dialog = h("dialog", { "aria-label": "Delete" }, h("form", { method: "dialog", class: "inside" }, h("h2", null, `Delete ${kindName(kind)} ${name}?`),
      h("p", null, kind === "shoot" ? "Its control plane is torn down. This cannot be undone. " : "This cannot be undone. ", "Type ", h("code", null, name), " to go on."),
      input, h("div", { class: "row" }, h("button", { class: "button", value: "no", formnovalidate: true }, "Keep it"), sure)));
    opened(dialog, () => input.focus());
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes" && input.value === name));
  });
}

// Show what an action will do; answers whether it shall be done.
export function confirmAction(title, does) {
  return new Promise((done) => {
    const sure = h("button", { class: "button main", type: "submit", value: "yes" }, "Do it");
    const dialog = h("dialog", { "aria-label": title }, h("form", { method: "dialog", class: "inside" }, h("h2", null, title), h("ul", { class: "wakes", "aria-label": "What it does" }, does.map((each) => h("li", null, each))),
      h("div", { class: "row" }, h("button", { class: "button", value: "no" }, "Leave it"), sure)));
    opened(dialog, () => sure.focus());
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"));
  });
}

export function requestAnnotation(kind, name) {
  return new Promise((done) => {
    const key = h("input", { class: "field", "aria-label": "Annotation", placeholder: "example.org/owner", autocomplete: "off", required: true });
    const value = h("input", { class: "field", "aria-label": "Value", placeholder: "its value; empty removes it", autocomplete: "off" });
    const dialog = h("dialog", { "aria-label": "Annotate" }, h("form", { method: "dialog", class: "inside" }, h("h2", null, `Annotate ${kindName(kind)} ${name}`), key, value,
      h("div", { class: "row" }, h("button", { class: "button", value: "no", formnovalidate: true }, "Leave it"), h("button", { class: "button main", type: "submit", value: "yes" }, "Go on"))));
    opened(dialog, () => key.focus());
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes" ? { annotation: key.value.trim(), value: value.value || null } : null));
  });
}
