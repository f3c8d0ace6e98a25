// All seeds in a table that is sorted by any column, and their totals by provider and region.

import { empty, fill as fillTable, h, loading, meter, setText, table } from "../dom.js";
import { ago, count, fill, health, many, pathOf } from "../format.js";
import { live } from "../live.js";
import { pager } from "../pager.js";
import { regionPath } from "./landscape.js";

const PAGE = 100;
const REDRAW_MS = 1000;
const ORDER = ["bad", "warn", "hollow", "idle", "good"];

const COLUMNS = [
  { name: "seed", words: "Seed", value: (row) => row.name },
  { name: "provider", words: "Provider", value: (row) => row.provider },
  { name: "region", words: "Region", value: (row) => row.region },
  { name: "state", words: "State", value: (row) => ORDER.indexOf(health(row)[0]) },
  { name: "shoots", words: "Shoots", kind: "num", value: (row) => row.used },
  { name: "places", words: "Places", kind: "num", value: (row) => row.capacity ?? Infinity },
  { name: "full", words: "Full", kind: "wide", value: (row) => fill(row).share },
  { name: "heartbeat", words: "Heartbeat", kind: "num", value: (row) => row.heartbeat ?? 0 },
];
const TOTALS = [["Provider"], ["Region"], ["Seeds", "num"], ["Ready", "num"], ["Open", "num"], ["Shoots", "num"], ["Places", "num"], ["Full", "wide"]];
const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

export function seedsPage(main, { query }) {
  const wanted = { search: query.get("search") ?? "", sort: query.get("sort") ?? "state" };
  const countText = h("span", { class: "count-text", role: "status" });
  const place = h("div", null, loading());
  const head = COLUMNS.map((each) => h("button", { type: "button", class: "plain", onclick: () => sort(each.name) }, each.words));
  const list = table("Seeds", COLUMNS.map((each, index) => [head[index], each.kind]));
  const totals = table("Totals by provider and region", TOTALS);
  const turn = pager(PAGE, "seeds", (offset) => { first = offset; draw(); });
  const search = h("input", { class: "field grow", type: "search", placeholder: "Filter by name, provider, region, state…  (f)", "aria-label": "Filter seeds", value: wanted.search, oninput: (event) => changed("search", event.target.value) });
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Seeds"), h("p", { class: "sub" }, "Each seed, and what they come to by provider and region"))), h("div", { class: "filters", role: "search" }, search, countText), place);
  const body = h("div", null, h("div", { class: "card scrolls seeds-table" }, list), turn.element, h("section", { class: "card scrolls totals" }, h("header", null, h("h2", null, "Totals")), totals));
  let first = 0;
  let timer = 0;

  function sort(name) {
    changed("sort", wanted.sort === name ? `-${name}` : name);
  }
  function changed(name, value) {
    wanted[name] = value;
    first = 0;
    const address = new URLSearchParams(Object.entries(wanted).filter(([, each]) => each));
    history.replaceState(null, "", `#/seeds${address.size ? `?${address}` : ""}`);
    draw();
  }
  function draw() {
    timer = 0;
    if (!live.summary) return;
    const seeds = [...live.seeds.values()];
    if (!seeds.length) return place.replaceChildren(live.summary.synced ? h("div", { class: "card" }, empty("map", "No seeds yet")) : loading());
    if (body.parentNode !== place) place.replaceChildren(body);
    const words = wanted.search.toLowerCase().split(/\s+/).filter(Boolean);
    const found = seeds.filter((row) => words.every((word) => `${row.name} ${row.provider} ${row.region} ${health(row)[1]}`.toLowerCase().includes(word)));
    const column = COLUMNS.find((each) => each.name === wanted.sort.replace(/^-/, "")) ?? COLUMNS[0];
    const way = wanted.sort.startsWith("-") ? -1 : 1;
    found.sort((one, other) => way * compare(column.value(one), column.value(other)) || compare(one.name, other.name));
    head.forEach((button, index) => button.parentNode.setAttribute("aria-sort", COLUMNS[index] === column ? (way > 0 ? "ascending" : "descending") : "none"));
    setText(countText, found.length === seeds.length ? many(seeds.length, "seed") : `${count(found.length)} of ${many(seeds.length, "seed")}`);
    if (first >= found.length) first = 0;
    const shown = found.slice(first, first + PAGE);
    turn.show(first, shown.length, found.length);
    fillTable(list, COLUMNS.map((each) => [each.words]), shown.map(line));
    fillTable(totals, TOTALS, totalsOf(found).map(totalLine));
  }
  draw();
  return {
    update() {
      timer ||= setTimeout(draw, REDRAW_MS);
    },
    end: () => clearTimeout(timer),
  };
}

function line(row) {
  const [tone, words] = health(row);
  const full = fill(row);
  return h("tr", { data: { seed: row.name } }, h("td", null, h("a", { class: "link name", href: pathOf("seed", "", row.name), "data-walk": true }, row.name)), h("td", null, row.provider), h("td", null, h("a", { class: "link", href: regionPath(row.provider, row.region) }, row.region)),
    h("td", null, h("span", { class: `chip ${tone}` }, h("span", { class: `dot ${tone}` }), words)), h("td", { class: "num" }, count(row.used)), h("td", { class: "num" }, row.capacity === null ? "any" : count(row.capacity)), h("td", { class: "wide" }, row.capacity !== null && meter(full.share, "taken", `${Math.round(full.share * 100)} % full`)), h("td", { class: "num" }, row.heartbeat ? `${ago(row.heartbeat)} ago` : "none"));
}

// Sums of each region, of each provider that has several, and of all.
export function totalsOf(seeds) {
  const groups = new Map();
  for (const row of seeds) {
    for (const [provider, region] of [["", ""], [row.provider, ""], [row.provider, row.region]]) {
      const key = `${provider}/${region}`;
      const sum = groups.get(key) ?? groups.set(key, { provider, region, seeds: 0, ready: 0, open: 0, used: 0, usedOfPlaces: 0, places: 0, unlimited: 0 }).get(key);
      sum.seeds += 1;
      sum.ready += row.ready === "True";
      sum.open += health(row)[0] === "good";
      sum.used += row.used;
      if (row.capacity === null) sum.unlimited += 1;
      else {
        sum.usedOfPlaces += row.used;
        sum.places += row.capacity;
      }
    }
  }
  const all = [...groups.values()].sort((one, other) => compare(one.provider, other.provider) || compare(one.region, other.region));
  const regions = (provider) => all.filter((each) => each.region && (!provider || each.provider === provider)).length;
  return all.filter((each) => each.region || regions(each.provider) > 1);
}

function totalLine(sum) {
  const share = sum.places ? sum.usedOfPlaces / sum.places : 0;
  const places = sum.places ? count(sum.places) + (sum.unlimited ? ` and ${many(sum.unlimited, "seed")} without a limit` : "") : "any";
  return h("tr", { class: sum.region ? "" : "sum", data: { total: `${sum.provider}/${sum.region}` } }, h("td", null, sum.provider || "all"), h("td", null, sum.region ? h("a", { class: "link", href: regionPath(sum.provider, sum.region), "data-walk": true }, sum.region) : "all regions"), ...[sum.seeds, sum.ready, sum.open, sum.used].map((number) => h("td", { class: "num" }, count(number))), h("td", { class: "num" }, places), h("td", { class: "wide" }, sum.places > 0 && meter(share, "taken", `${Math.round(share * 100)} % full`)));
}
