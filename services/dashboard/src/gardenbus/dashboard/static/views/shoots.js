// All shoots: filtered by the server, shown by a table of which only the visible rows exist.

import { get } from "../api.js";
import { empty, h, loading, setText } from "../dom.js";
import { live } from "../live.js";
import { ShootTable, shootCount } from "../table.js";

const STATES = [["", "Any state"], ["waiting", "Waiting"], ["processing", "In progress"], ["trouble", "In trouble"], ["moving", "Moving"], ["succeeded", "Succeeded"], ["pending", "Pending"], ["error", "Error"], ["failed", "Failed"], ["deleting", "Being deleted"], ["new", "New"]];
const FIELDS = ["search", "namespace", "provider", "region", "seed", "state"];

export function shootsPage(main, { query }) {
  const wanted = Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""]));
  const count = h("span", { class: "count-text", role: "status" });
  const page = h("div", { class: "shoots-page" });
  const none = h("div", { hidden: true });
  const table = new ShootTable(wanted, { counted: (total) => {
    setText(count, shootCount(total));
    none.hidden = total > 0;
    table.element.hidden = total === 0;
    table.element.style.display = total === 0 ? "none" : "";
    if (total === 0) showNone();
  } });

  let isUnread = false;
  function showNone() {
    isUnread = !live.summary?.synced;
    if (isUnread) return none.replaceChildren(loading());
    const isFiltered = FIELDS.some((name) => wanted[name]);
    none.replaceChildren(isFiltered ? empty("search", "No matching shoots", h("p", null, "Clear the filters to see all.")) : empty("shoots", "No shoots yet", h("p", null, "Order one with a manifest; it gets its seed within milliseconds."), h("code", null, "gardenbus apply -f shoot.yaml")));
  }

  let timer = 0;
  function changed(name, value) {
    wanted[name] = value;
    if (name === "provider") wanted.region = "";
    const address = new URLSearchParams(Object.entries(wanted).filter(([, each]) => each));
    history.replaceState(null, "", `#/shoots${address.size ? `?${address}` : ""}`);
    clearTimeout(timer);
    timer = setTimeout(() => table.filter(wanted), name === "search" ? 150 : 0);
    if (name === "provider") fillIn();
  }
  const select = (name, label) => h("select", { class: "field", "aria-label": label, onchange: (event) => changed(name, event.target.value) });
  const search = h("input", { class: "field grow", type: "search", placeholder: "Filter by name, seed, region, purpose…  (f)", "aria-label": "Filter shoots", value: wanted.search, oninput: (event) => changed("search", event.target.value) });
  const boxes = { state: select("state", "State"), namespace: select("namespace", "Namespace"), provider: select("provider", "Provider"), region: select("region", "Region"), seed: select("seed", "Seed") };
  const options = (box, name, any, values) => box.replaceChildren(...[["", any], ...values].map(([value, words]) => h("option", { value, selected: value === wanted[name] }, words)));
  options(boxes.state, "state", "Any state", STATES.slice(1));

  let places = { namespaces: [], providers: {}, seeds: [] };
  function fillIn() {
    const same = (value) => [value, value];
    const regions = wanted.provider ? places.providers[wanted.provider] ?? [] : [...new Set(Object.values(places.providers).flat())].sort();
    options(boxes.namespace, "namespace", "Any namespace", places.namespaces.map(same));
    options(boxes.provider, "provider", "Any provider", Object.keys(places.providers).map(same));
    options(boxes.region, "region", "Any region", regions.map(same));
    options(boxes.seed, "seed", "Any seed", places.seeds.map(same));
  }
  async function readPlaces() {
    places = await get("places").catch(() => places);
    fillIn();
  }
  fillIn();
  readPlaces();
  page.append(h("div", { class: "head" }, h("h1", null, "Shoots")), h("div", { class: "filters", role: "search" }, search, h("div", { class: "choices" }, Object.values(boxes)), count), table.element, none);
  main.append(page);
  return {
    update(batches) {
      table.update(batches);
      if (batches.some((batch) => batch.reload || batch.manyShoots)) readPlaces();
    },
    tick() {
      table.tick();
      if (isUnread) showNone();
    },
    end: () => table.end(),
  };
}
