// What happened, the newest first.

import { empty, h, loading, setText } from "../dom.js";
import { count } from "../format.js";
import { eventLine } from "../eventlist.js";
import { live } from "../live.js";

const SHOWN = 150;

export function eventsPage(main, { query }) {
  let words = query.get("search") ?? "";
  let type = query.get("type") ?? "";
  const list = h("ul", { class: "lines card" });
  const countText = h("span", { class: "count-text", role: "status" });
  const place = h("div", null, loading());
  const search = h("input", { class: "field grow", type: "search", placeholder: "Filter by object, reason or message…  (f)", "aria-label": "Filter events", value: words, oninput: (event) => change(event.target.value, type) });
  const types = h("select", { class: "field", "aria-label": "Type", onchange: (event) => change(words, event.target.value) }, [["", "Any type"], ["Normal", "Normal"], ["Warning", "Warnings"]].map(([value, name]) => h("option", { value, selected: value === type }, name)));
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Events"), h("p", { class: "sub" }, "Of the last 24 hours, as far as this page goes back"))), h("div", { class: "filters", role: "search" }, search, types, countText), place);

  function change(newWords, newType) {
    words = newWords;
    type = newType;
    const address = new URLSearchParams(Object.entries({ search: words, type }).filter(([, each]) => each));
    history.replaceState(null, "", `#/events${address.size ? `?${address}` : ""}`);
    draw();
  }
  function draw() {
    if (!live.summary) return;
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const found = live.events.filter((event) => (!type || event.type === type) && wanted.every((word) => `${event.kind} ${event.namespace}/${event.name} ${event.reason} ${event.message}`.toLowerCase().includes(word)));
    setText(countText, found.length > SHOWN ? `the newest ${SHOWN} of ${count(found.length)}` : `${count(found.length)} event${found.length === 1 ? "" : "s"}`);
    if (!found.length) {
      place.replaceChildren(h("div", { class: "card" }, words || type ? empty("search", "No matching Events", h("p", null, "Clear the filters to see all.")) : empty("events", "Nothing has happened yet", h("p", null, "Placements, rejections and what gardenlets report appear here as they come."))));
      return;
    }
    list.replaceChildren(...found.slice(0, SHOWN).map((event) => eventLine(event)));
    if (list.parentNode !== place) place.replaceChildren(list);
  }
  draw();
  return { update: (batches) => batches.some((batch) => batch.reload || batch.events?.length) && draw() };
}
