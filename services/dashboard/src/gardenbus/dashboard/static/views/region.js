// One region of a provider: its seeds, and how they filled.

import { empty, h, loading } from "../dom.js";
import { fill, health, many, pathOf } from "../format.js";
import { historyCard } from "../history.js";
import { live } from "../live.js";

export function regionPage(main, { path: [provider, region] }) {
  const history = historyCard("region", `${provider}/${region}`);
  const place = h("section", { class: "card", "aria-label": "Seeds" }, loading());
  main.append(h("div", { class: "head" }, h("div", null, h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/" }, provider)), h("h1", null, region))), place, history.element);
  let shown = "";

  function draw() {
    if (!live.summary) return;
    const seeds = [...live.seeds.values()].filter((each) => each.provider === provider && each.region === region).sort((one, other) => (one.name < other.name ? -1 : 1));
    const rows = seeds.map((each) => [each.name, ...health(each), fill(each).words]);
    const now = JSON.stringify(rows);
    if (now === shown) return;
    shown = now;
    if (!rows.length) return place.replaceChildren(empty("map", "No seeds here", h("p", null, `No seed of ${provider} is in ${region} now.`)));
    place.replaceChildren(h("header", null, h("h2", null, many(rows.length, "seed"))), h("ul", { class: "lines" }, rows.map(([name, tone, words, full]) => h("li", null, h("a", { class: "link", href: pathOf("seed", "", name), "data-walk": true }, name), " ", h("span", { class: `chip ${tone}` }, h("span", { class: `dot ${tone}` }), words), h("span", { class: "when" }, ` ${full} shoots`)))));
  }
  draw();
  return { update: draw, end: history.end };
}
