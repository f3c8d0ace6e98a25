// Placements and member clusters: which there are, what was decided, how far it is.

import { get } from "../api.js";
import { empty, failed, fill, h, loading, meter, setText, table } from "../dom.js";
import { ago, count, many, now, pathOf } from "../format.js";
import { live } from "../live.js";
import { pager } from "../pager.js";

const PAGE = 100;
const REFRESH_MS = 1200;
const RETRY_MS = 3000;
const LATE_MS = 300000; // from then on a cluster takes nothing new

// A list that the server filters: a search, a choice, a table; read again when something of a fleet has changed.
function listPage(main, { query }, { path, title, sub, states, columns, line, nothing, label }) {
  const wanted = { search: query.get("search") ?? "", state: query.get("state") ?? "" };
  const countText = h("span", { class: "count-text", role: "status" });
  const place = h("div", null, loading());
  const rows = table(title, columns);
  const card = h("div", { class: "card scrolls" }, rows);
  const turn = pager(PAGE, `${label}s`, (offset) => { first = offset; read(); });
  let first = 0;
  let timer = 0;
  let isOver = false;
  let generation = 0;
  let ticks = [];

  async function read() {
    timer = 0;
    const mine = ++generation;
    const filters = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    const response = await get(`${path}?${new URLSearchParams([...filters, ["offset", first], ["limit", PAGE]])}`).catch((error) => error);
    if (isOver || mine !== generation) return;
    if (response instanceof Error) {
      if (isLive()) place.replaceChildren(failed(response));
      timer ||= setTimeout(read, RETRY_MS);
      return;
    }
    const { items, total } = response;
    if (total && !items.length) {
      first = 0;
      return read();
    }
    setText(countText, many(total, label));
    turn.show(first, items.length, total);
    if (!total) {
      place.replaceChildren(h("div", { class: "card" }, filters.size ? empty("search", `No matching ${label}s`, h("p", null, "Clear the filters to see all.")) : nothing()));
      return;
    }
    ticks = [];
    fill(rows, columns, items.map((item) => line(item, ticks)));
    if (card.parentNode !== place) place.replaceChildren(card);
  }
  function changed(name, value) {
    wanted[name] = value;
    first = 0;
    const address = new URLSearchParams(Object.entries(wanted).filter(([, each]) => each));
    history.replaceState(null, "", `#/${path}${address.size ? `?${address}` : ""}`);
    clearTimeout(timer);
    timer = setTimeout(read, name === "search" ? 150 : 0);
  }
  const search = h("input", { class: "field grow", type: "search", placeholder: "Filter by name…  (f)", "aria-label": `Filter: ${title}`, value: wanted.search, oninput: (event) => changed("search", event.target.value) });
  const choice = h("select", { class: "field", "aria-label": "State", onchange: (event) => changed("state", event.target.value) }, states.map(([value, words]) => h("option", { value, selected: value === wanted.state }, words)));
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, title), h("p", { class: "sub" }, sub))), h("div", { class: "filters", role: "search" }, search, h("div", { class: "choices" }, choice), countText), place, turn.element);
  read();
  return {
    update(batches) {
      if (!timer && batches.some((batch) => batch.reload || batch.fleet)) timer = setTimeout(read, REFRESH_MS);
    },
    tick: () => ticks.forEach((tick) => tick()),
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

export const wantedWords = (row) => (row.wanted === null ? "all that fit" : count(row.wanted));

export function statusOf(row) {
  if (row.deleting) return ["idle", "being deleted"];
  return { True: ["good", "fulfilled"], False: ["warn", "lacks clusters"] }[row.fulfilled] ?? ["hollow", "not decided yet"];
}

export const chip = ([tone, words], title) => h("span", { class: `chip ${tone}`, title }, h("span", { class: `dot ${tone}` }), words);

export function placementsPage(main, at) {
  return listPage(main, at, {
    path: "placements",
    title: "Placements",
    sub: "Which resources go to which clusters, and how far they are",
    label: "placement",
    states: [["", "Any state"], ["unfulfilled", "Not fulfilled"]],
    columns: [["Placement"], ["Type"], ["Wanted", "num"], ["Selected", "num"], ["Bound", "num"], ["Available", "num"], ["", "wide"], ["Fulfilled"]],
    nothing: () => empty("fleet", "No placements yet", h("p", null, "A ClusterResourcePlacement says which resources go to which member clusters."), h("code", null, "gardenbus up -f examples/fleet")),
    line: (row) => h("tr", { data: { placement: row.name } },
      h("td", null, h("a", { class: "link name", href: pathOf(row.kind, row.namespace, row.name), "data-walk": true }, row.name), row.namespace && h("small", null, ` ${row.namespace}`)),
      h("td", null, row.type), h("td", { class: "num" }, wantedWords(row)), h("td", { class: "num" }, count(row.selected)), h("td", { class: "num" }, count(row.bound)), h("td", { class: "num" }, count(row.available)),
      h("td", { class: "wide" }, meter(row.selected ? row.available / row.selected : 0, row.available === row.selected ? "good" : "busy", `${row.available} of ${row.selected} available`)), h("td", null, chip(statusOf(row), row.reason))),
  });
}

export function heart(row) {
  if (row.deleting) return ["idle", "leaving"];
  if (!row.heartbeat) return ["hollow", "not heard yet"];
  if (now() - Date.parse(row.heartbeat) > LATE_MS) return ["bad", "silent"];
  if (row.joined !== "True") return ["warn", "not joined"];
  return row.healthy === "True" ? ["good", "well"] : ["bad", "unhealthy"];
}

const word = (status) => ({ True: "yes", False: "no" })[status] ?? "not known";

export function clustersPage(main, at) {
  return listPage(main, at, {
    path: "clusters",
    title: "Member clusters",
    sub: "Where placements can go, and whether their agents are heard",
    label: "cluster",
    states: [["", "Any state"], ["unwell", "Not well"]],
    columns: [["Cluster"], ["State"], ["Joined"], ["Healthy"], ["Heartbeat"], ["Taints"], ["Placements", "num"]],
    nothing: () => empty("fleet", "No member clusters yet", h("p", null, "A cluster appears here as soon as its agent has registered it."), h("code", null, "gardenbus up -f examples/fleet")),
    line(row, ticks) {
      const beat = h("span");
      const state = h("td");
      const tick = () => {
        setText(beat, row.heartbeat ? `${ago(row.heartbeat)} ago` : "never");
        const [tone, words] = heart(row);
        if (state.textContent !== words) state.replaceChildren(chip([tone, words], row.reason));
      };
      tick();
      ticks.push(tick);
      return h("tr", { data: { cluster: row.name } }, h("td", null, h("a", { class: "link name", href: pathOf("membercluster", "", row.name), "data-walk": true }, row.name)), state,
        h("td", null, word(row.joined)), h("td", null, word(row.healthy)), h("td", null, beat), h("td", null, row.taints.length ? row.taints.map((taint) => h("code", null, taint)) : "none"), h("td", { class: "num" }, count(row.placements)));
    },
  });
}

export const isLive = () => live.state !== "lost";
