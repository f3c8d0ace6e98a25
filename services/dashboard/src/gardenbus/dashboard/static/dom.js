// Elements without strings of HTML: whatever comes from the landscape is text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "width%") element.style.width = `${value}%`;
    else if (name === "style") Object.entries(value).forEach(([key, each]) => element.style.setProperty(key, each));
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => filled(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => filled(document.createElementNS(SVG, tag), properties, children);

// A table of columns [words, class]. Each cell has its column's words too: on a phone a row is a block, and they stand before what is in it.
export function table(name, columns, rows = []) {
  const element = h("table", { class: "plain-table fleet-table", "aria-label": name }, h("thead", null, h("tr", null, columns.map(([words, kind]) => h("th", { scope: "col", class: kind }, words)))), h("tbody"));
  fill(element, columns, rows);
  return element;
}
export function fill(element, columns, rows) {
  rows.forEach((row) => [...row.cells].forEach((cell, index) => (cell.dataset.label = columns[index][0])));
  element.tBodies[0].replaceChildren(...rows);
}

// Set a text only where it is another: the browser lays out nothing that stays.
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function as(element, names) {
  if (element.getAttribute("class") !== names) element.setAttribute("class", names);
}

const PATHS = {
  map: ["M9 4 3.500 6.500v13L9 17l6 3 5.500-2.500v-13L15 7 9 4Z", "M9 4v13", "M15 7v13"],
  shoots: ["M12 20v-8", "M12 13c0-4 2.800-6.700 7.500-7 .2 4.400-2.700 7-7.500 7Z", "M12 16c0-3.200-2.300-5.400-6-5.600-.2 3.500 2.100 5.600 6 5.600Z"],
  waiting: ["M12 7v5l3 2", "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z"],
  growth: ["M4 19h16", "M5 15l4.500-5 3.500 3 6-7", "M15 6h4v4"],
  fleet: ["M12 4.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z", "M6 15.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z", "M18 15.500a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z", "M12 8.500v3.500M12 12l-5 3.700M12 12l5 3.700"],
  clusters: ["M4 5h7v6H4zM13 5h7v6h-7zM4 13h7v6H4zM13 13h7v6h-7z"],
  operations: ["M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z", "M12 3v3M12 18v3M3 12h3M18 12h3M5.600 5.600l2.100 2.100M16.300 16.300l2.100 2.100M5.600 18.400l2.100-2.100M16.300 7.700l2.100-2.100"],
  events: ["M5 6h14", "M5 12h14", "M5 18h9"],
  search: ["M10.500 17a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13Z", "M15.500 15.500 20 20"],
  sun: ["M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8Z", "M12 3v1.500M12 19.500V21M3 12h1.500M19.500 12H21M5.600 5.600l1.100 1.100M17.300 17.300l1.100 1.100M5.600 18.400l1.100-1.100M17.300 6.700l1.100-1.100"],
  moon: ["M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500Z"],
  auto: ["M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16Z", "M12 4v16", "M12 8.500h6.500M12 12h8M12 15.500h6.500"],
  keyboard: ["M4 7h16v10H4z", "M7.500 10.500h.01M11 10.500h.01M14.500 10.500h.01M17 10.500h.01M8.500 14h7"],
  yes: ["M5 12.500 10 17.500 19 7"],
  no: ["M6 6l12 12M18 6 6 18"],
};
export const icon = (name) => s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, (PATHS[name] ?? []).map((d) => s("path", { d })));

export const empty = (name, title, ...words) => h("div", { class: "empty" }, icon(name), h("strong", null, title), words);
export const failed = (error) => h("div", { class: "card", role: "alert" }, empty("search", "This could not be read", h("p", null, error.message), h("p", null, "It is tried again.")));
export const loading = () => h("p", { class: "loading" }, "Loading…");

export function meter(share, tone, label) {
  const value = Math.max(0, Math.min(100, Math.round(share * 100)));
  return h("span", { class: `meter ${tone}`, role: "img", "aria-label": label ?? `${value} %` }, h("i", { "width%": value }));
}
