// The history of the landscape or a part of it: charts that share their time, and what happened marked on each curve.

import { get } from "./api.js";
import { linesChart } from "./chart.js";
import { h, loading } from "./dom.js";
import { count, kindName, moment, pathOf, zone } from "./format.js";

const READ_MS = 30000; // a point comes once a minute at the most
const TIMES = [["6h", "6 hours"], ["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];
const SHOWN = 8;
let chosen = "24h"; // for all pages of this visit

export function historyCard(of, name = "") {
  const note = h("p", { class: "sub history-note", role: "status", hidden: true });
  const body = h("div", { class: "body" }, loading());
  const hint = h("span", { class: "hint" });
  const choices = h("div", { class: "choices", role: "group", "aria-label": "Time shown" }, TIMES.map(([value, words]) => h("button", { class: "button small", type: "button", "aria-pressed": String(value === chosen), onclick: () => choose(value), data: { time: value } }, words)));
  const element = h("section", { class: "card history", "aria-label": "History", data: { history: of } }, h("header", null, h("h2", null, "History"), choices, hint), note, body);
  let isOver = false;
  let shown = "";

  function choose(value) {
    chosen = value;
    for (const each of choices.children) each.setAttribute("aria-pressed", String(each.dataset.time === value));
    read();
  }
  async function read() {
    const wanted = chosen;
    try {
      const view = await get(`history?of=${of}${name ? `&name=${encodeURIComponent(name)}` : ""}&for=${wanted}`);
      if (isOver || wanted !== chosen) return;
      note.hidden = !view.note;
      note.textContent = view.note;
      const now = JSON.stringify([view.at.at(-1) - (view.at.at(-1) % 60000), view.charts, view.changes]);
      if (now === shown) return;
      shown = now;
      hint.textContent = view.begins ? `${zone()} · since ${moment(Math.max(view.begins, view.at[0]))}` : zone();
      body.replaceChildren(...drawn(view));
    } catch (error) {
      if (isOver) return;
      note.hidden = false;
      note.textContent = error.message;
      if (!shown) body.replaceChildren();
    }
  }
  read();
  const timer = setInterval(() => document.hidden || read(), READ_MS);
  return {
    element,
    end() {
      isOver = true;
      clearInterval(timer);
    },
  };
}

function drawn(view) {
  if (!view.charts.length) return [h("p", { class: "sub" }, view.note ? "" : "Nothing is recorded of it in this time.")];
  const charts = h("div", { class: "charts" }, view.charts.map((chart) => h("figure", { data: { chart: chart.name } }, h("figcaption", null, h("b", null, chart.title)), linesChart(chart, view.at, view.changes))));
  return [charts, changes(view.changes)];
}

function changes(all) {
  if (!all.length) return h("p", { class: "sub" }, "Nothing happened to seeds, sets or profiles in this time.");
  const rows = [...all].reverse().map((each) => h("li", null, h("span", { class: "when" }, moment(each.at)), " ", subject(each), " ", each.text));
  const list = (some) => h("ul", { class: "lines happened", "aria-label": "What happened" }, some);
  if (rows.length <= SHOWN) return list(rows);
  return h("div", null, list(rows.slice(0, SHOWN)), h("details", null, h("summary", { class: "sub" }, `${count(rows.length - SHOWN)} more`), list(rows.slice(SHOWN))));
}

function subject({ kind, name }) {
  if (!name) return h("b", null, "Landscape");
  const parts = name.split("/");
  return h("a", { class: "link", href: pathOf(kind, parts.length > 1 ? parts[0] : "", parts.at(-1)) }, `${kindName(kind)} ${parts.at(-1)}`);
}
