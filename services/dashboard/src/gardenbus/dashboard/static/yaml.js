// A manifest in colours: keys, numbers and what is hidden. Line by line, as text.

import { h } from "./dom.js";

const MOST_LINES = 3000;
const LINE = /^(\s*(?:- )*)("[^"]*"|'[^']*'|[^\s:'"][^:]*?)(:)(?: (.*))?$/;
const NUMBER = /^(-?\d[\d.]*|true|false|null)$/;

export function yamlView(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.length > MOST_LINES ? [text] : lines.map((line) => {
    const found = LINE.exec(line);
    if (!found) return `${line}\n`;
    const [, indent, key, colon, value = ""] = found;
    const tone = value === "(hidden)" ? "h" : NUMBER.test(value) ? "n" : "s";
    return [indent, h("span", { class: "k" }, key), colon, value && [" ", h("span", { class: tone }, value)], "\n"];
  });
  return h("pre", { class: "yaml", tabindex: "0", "aria-label": "Manifest as YAML" }, shown.flat(2));
}
