// The map: providers, their regions, the seeds in them, with how full and how well they are.

import { as, empty, h, loading, meter, setText } from "../dom.js";
import { ago, count, fill, health, many, now, pathOf } from "../format.js";
import { historyCard } from "../history.js";
import { live } from "../live.js";

const DENSE_FROM = 60;
const LATE_MS = 45000;
const BLOCK = 120; // cells that are made together
const CELL_PX = 41; // height of a cell of a dense map, with the gap below it
const STATES = ["succeeded", "processing", "new", "pending", "error", "failed", "deleting"];

export function landscapePage(main) {
  const tiles = h("section", { class: "tiles", "aria-label": "In numbers" });
  const history = historyCard("landscape");
  const map = h("section", { "aria-label": "Seeds by provider and region" }, loading());
  const legend = h("div", { class: "legend" }, [["good", "ready"], ["warn", "closed"], ["bad", "silent or broken"], ["hollow", "not reported"]].map(([tone, words]) => h("span", null, h("span", { class: `dot ${tone}` }), words)), h("span", null, h("span", { class: "meter taken sample" }, h("i")), "places taken"));
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Landscape"), h("p", { class: "sub" }, "Every seed, where it stands and how full it is")), h("div", { class: "actions" }, legend)), tiles, map, history.element);
  const numbers = numberTiles(tiles);
  const cells = seedCells();
  let isOver = false;

  function draw() {
    if (!live.summary || isOver) return;
    numbers(live.summary);
    const seeds = [...live.seeds.values()];
    if (cells.isShapeOf(seeds)) return cells.fillSeen();
    cells.begin();
    map.replaceChildren(seeds.length ? providers(seeds.sort(byName), cells) : nothing());
    cells.reserve();
  }
  // Seeds come and go rarely: most batches change numbers, and those of cells that are seen.
  function update(batches) {
    const seeds = batches.flatMap((batch) => batch.seed ?? []);
    if (batches.some((batch) => batch.reload || batch.gone?.some(([kind]) => kind === "seed")) || !cells.have(seeds)) return draw();
    numbers(live.summary);
    if (!live.seeds.size) map.replaceChildren(nothing());
    seeds.forEach((seed) => cells.fill(seed.name));
  }
  draw();
  return {
    update,
    tick: () => cells.fillSeen(),
    end() {
      isOver = true;
      cells.end();
      history.end();
    },
  };
}

const byName = (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0);
export const regionPath = (provider, region) => `#/region/${encodeURIComponent(provider)}/${encodeURIComponent(region)}`;
const placeOf = (seed) => `${seed.provider}/${seed.region}`;

// The cells of the map: blocks of them are made when they come near the window, and what is in (or near) it is kept current.
function seedCells() {
  const places = new Map(); // name → provider and region
  const unmade = new Map(); // element of a block → its seeds' names
  const roots = new Map(); // name → element, of cells that were made
  const fillers = new Map(); // name → function, of cells that were seen once
  const seen = new Set();
  const fill = (name) => {
    const seed = live.seeds.get(name);
    if (!seed || !seen.has(name)) return;
    if (!fillers.has(name)) fillers.set(name, filler(roots.get(name)));
    fillers.get(name)(seed);
  };
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (target.isConnected && isIntersecting && unmade.has(target)) make(target);
      const name = target.dataset.seed;
      if (!name || roots.get(name) !== target) continue;
      if (isIntersecting) {
        seen.add(name);
        fill(name);
      } else seen.delete(name);
    }
  }, { rootMargin: "400px 0px" });
  function make(block) {
    const names = unmade.get(block);
    unmade.delete(block);
    observer.unobserve(block);
    block.style.minHeight = "";
    block.replaceChildren(...names.map((name) => {
      const root = h("a", { class: "seed", href: pathOf("seed", "", name), "aria-label": name, "data-walk": true, data: { seed: name } });
      roots.set(name, root);
      observer.observe(root);
      return root;
    }));
  }
  return {
    fill,
    fillSeen: () => seen.forEach(fill),
    have: (seeds) => seeds.every((seed) => places.get(seed.name) === placeOf(seed)),
    isShapeOf(seeds) {
      return seeds.length > 0 && seeds.length === places.size && this.have(seeds);
    },
    begin() {
      observer.disconnect();
      for (const each of [places, unmade, roots, fillers, seen]) each.clear();
    },
    blocks(seeds) {
      for (const seed of seeds) places.set(seed.name, placeOf(seed));
      return Array.from({ length: Math.ceil(seeds.length / BLOCK) }, (_, number) => {
        const block = h("div", { class: "seeds" });
        unmade.set(block, seeds.slice(number * BLOCK, (number + 1) * BLOCK).map((seed) => seed.name));
        return block;
      });
    },
    // Keeps the place of all blocks, once they stand in the page; those of a small map are made at once.
    reserve() {
      const blocks = [...unmade.keys()];
      if (places.size <= BLOCK) return blocks.forEach(make);
      const rows = blocks.map((block) => Math.ceil(unmade.get(block).length / getComputedStyle(block).gridTemplateColumns.split(" ").length));
      blocks.forEach((block, number) => {
        block.style.minHeight = `${rows[number] * CELL_PX}px`;
        observer.observe(block);
      });
    },
    end: () => observer.disconnect(),
  };
}

function nothing() {
  if (!live.summary.synced) return loading();
  return empty("map", "No seeds yet", h("p", null, "A seed appears here as soon as its gardenlet has registered it. An example landscape with ten of them comes with the project."),
    h("code", null, "gardenbus up -f examples/landscape"));
}

function numberTiles(section) {
  const value = () => h("div", { class: "value" });
  const note = () => h("div", { class: "note" });
  const stack = h("div", { class: "stack", role: "img" }, STATES.map((state) => h("i", { class: state })));
  const full = h("i");
  const gauge = h("span", { class: "meter taken" }, full);
  const parts = [["Shoots", "#/shoots", stack], ["Seeds ready", "#/", null], ["Places taken", "#/", gauge], ["Waiting for a seed", "#/waiting", null]].map(([label, href, more]) => {
    const tile = { value: value(), note: note() };
    section.append(h("a", { class: "tile card", href }, h("span", { class: "label" }, label), tile.value, more, tile.note));
    return tile;
  });
  return (sum) => {
    const states = sum.states;
    const [shoots, seeds, places, waiting] = parts;
    setText(shoots.value, count(sum.shoots));
    STATES.forEach((state, index) => {
      stack.children[index].style.flexGrow = states[state] ?? 0;
      stack.children[index].hidden = !states[state];
      stack.children[index].style.display = states[state] ? "" : "none";
    });
    const statesLabel = STATES.filter((state) => states[state]).map((state) => `${count(states[state])} ${state}`).join(", ");
    stack.setAttribute("aria-label", statesLabel || "none");
    setText(shoots.note, !sum.synced ? "what each is doing is being read" : [states.processing && `${count(states.processing)} in progress`, sum.moving && `${count(sum.moving)} moving`, (states.error ?? 0) + (states.failed ?? 0) && `${count((states.error ?? 0) + (states.failed ?? 0))} in trouble`, sum.onUnreadySeeds && `${count(sum.onUnreadySeeds)} on seeds that are not ready`].filter(Boolean).join(" · ") || (sum.waiting ? "all others settled" : sum.shoots ? "all settled" : "none ordered"));
    seeds.value.replaceChildren(count(sum.seedsReady), h("small", null, ` of ${count(sum.seeds)}`));
    setText(seeds.note, [sum.seedsReady < sum.seeds && `${count(sum.seeds - sum.seedsReady)} not ready`, sum.seedsOpen < sum.seedsReady && `${count(sum.seedsReady - sum.seedsOpen)} closed to new shoots`].filter(Boolean).join(" · ") || (sum.seeds ? "all open to new shoots" : ""));
    places.value.replaceChildren(count(sum.places === null ? sum.used : sum.usedOfPlaces), h("small", null, sum.places === null ? " without a limit" : ` of ${count(sum.places)}`));
    const share = sum.places ? sum.usedOfPlaces / sum.places : 0;
    full.style.width = `${Math.min(100, share * 100)}%`;
    const unlimited = sum.places === null ? 0 : sum.seedsWithoutLimit;
    setText(places.note, [sum.places && `${Math.round(share * 100)} % full`, unlimited && `${count(sum.used - sum.usedOfPlaces)} more on ${count(unlimited)} without a limit`].filter(Boolean).join(" · "));
    setText(waiting.value, count(sum.waiting));
    setText(waiting.note, sum.waiting ? "see why, and since when" : "everybody has a seed");
  };
}

function providers(seeds, cells) {
  const groups = new Map();
  for (const seed of seeds) {
    const regions = groups.get(seed.provider) ?? groups.set(seed.provider, new Map()).get(seed.provider);
    (regions.get(seed.region) ?? regions.set(seed.region, []).get(seed.region)).push(seed);
  }
  const sorted = (map) => [...map].sort(([a], [b]) => a.localeCompare(b));
  return h("div", { class: `providers${seeds.length > DENSE_FROM ? " dense" : ""}` }, sorted(groups).map(([provider, regions]) => {
    const number = [...regions.values()].reduce((sum, each) => sum + each.length, 0);
    return h("section", { class: "provider" }, h("h2", null, provider || "no provider", h("small", null, `${many(regions.size, "region")} · ${many(number, "seed")}`)),
      h("div", { class: "regions" }, sorted(regions).map(([region, members]) => h("section", { class: "region card", style: { "flex-grow": Math.min(4, members.length) } },
        h("h3", null, h("a", { href: regionPath(provider, region) }, region || "no region"), h("small", null, many(members.length, "seed"))),
        cells.blocks(members)))));
  }));
}

// What fills a cell, and changes in it what has changed.
function filler(root) {
  const dot = h("span", { class: "dot" });
  const name = h("span", { class: "name" }, root.dataset.seed);
  const words = h("span");
  const filled = h("span", { class: "fill" });
  const beat = h("span");
  const bar = h("i");
  const gauge = h("span", { class: "meter" }, bar);
  root.append(dot, name, filled, gauge, h("span", { class: "foot" }, words, beat));
  return (row) => {
    const [tone, status] = health(row);
    const full = fill(row);
    as(root, `seed ${tone}`);
    as(dot, `dot ${tone}`);
    as(gauge, `meter ${tone === "good" ? "taken" : "idle"}`);
    const width = `${Math.min(100, full.share * 100)}%`;
    if (bar.style.width !== width) bar.style.width = width;
    setText(filled, full.words);
    setText(words, row.taints.length && tone === "good" ? `ready · ${row.taints[0].split("/").pop()} only` : status);
    const isLate = row.heartbeat && now() - row.heartbeat > LATE_MS;
    setText(beat, row.heartbeat ? `${isLate ? "silent for" : "beat"} ${ago(row.heartbeat)}${isLate ? "" : " ago"}` : "");
    const label = `${row.name}: ${status}, ${full.words} shoots`;
    if (root.title !== label) {
      root.title = label;
      root.setAttribute("aria-label", label);
    }
  };
}
