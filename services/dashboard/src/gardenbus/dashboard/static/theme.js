// Light, dark, or what the system says.

import { h, icon } from "./dom.js";

const ORDER = ["auto", "light", "dark"];
const ICONS = { auto: "auto", light: "sun", dark: "moon" };
const root = document.documentElement;
const button = h("button", { class: "icon-button", type: "button", onclick: switchTheme });

const current = () => root.dataset.theme ?? "auto";

function draw() {
  const words = `Theme: ${current()} (t)`;
  button.replaceChildren(icon(ICONS[current()]));
  button.title = words;
  button.setAttribute("aria-label", words);
}

export function switchTheme() {
  const next = ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    localStorage.setItem("gardenbus-theme", next);
  } catch {
    // kept for this visit only
  }
  draw();
}

export function themeButton() {
  draw();
  return button;
}
