// The home page of a landscape of member clusters alone: how they are, and how far its placements are.

import { get } from "../api.js";
import { empty, failed, h, loading, meter } from "../dom.js";
import { count, pathOf } from "../format.js";
import { live } from "../live.js";

const REFRESH_MS = 1200;
const RETRY_MS = 3000;

export function fleetHome(main) {
  const place = h("div", null, loading());
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Fleet"), h("p", { class: "sub" }, "Member clusters, and what is placed on them"))), place);
  let timer = 0;
  let isOver = false;

  async function read() {
    timer = 0;
    const fleet = await get("fleet").catch((error) => error);
    if (isOver) return;
    if (fleet instanceof Error) {
      if (live.state !== "lost") place.replaceChildren(failed(fleet));
      timer ||= setTimeout(read, RETRY_MS);
      return;
    }
    place.replaceChildren(tiles(fleet), h("div", { class: "fleet-home" },
      trouble("Clusters that take nothing new", "#/clusters?state=unwell", fleet.clusters - fleet.clustersWell, fleet.unwell.map((name) => h("a", { class: "link", href: pathOf("membercluster", "", name), "data-walk": true }, name)), "All clusters are well."),
      trouble("Placements that are not fulfilled", "#/placements?state=unfulfilled", fleet.placements - fleet.fulfilled, fleet.unfulfilled.map((each) => [h("a", { class: "link", href: pathOf(each.kind, each.namespace, each.name), "data-walk": true }, each.name), each.reason && h("span", { class: "when" }, ` ${each.reason}`)]), "All placements are fulfilled.")));
  }
  read();
  return {
    update(batches) {
      if (!timer && batches.some((batch) => batch.reload || batch.fleet)) timer = setTimeout(read, REFRESH_MS);
    },
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

function tiles(fleet) {
  const tile = (label, href, value, of) => h("a", { class: "tile card", href }, h("span", { class: "label" }, label), h("div", { class: "value" }, count(value), h("small", null, ` of ${count(of)}`)), meter(of ? value / of : 0, "good", `${value} of ${of}`));
  return h("section", { class: "tiles three", "aria-label": "In numbers" }, tile("Clusters well", "#/clusters", fleet.clustersWell, fleet.clusters), tile("Placements fulfilled", "#/placements", fleet.fulfilled, fleet.placements),
    tile("Bindings available", "#/placements", fleet.available, fleet.selected));
}

const trouble = (title, href, total, lines, none) => h("section", { class: "card" }, h("header", null, h("h2", null, title), h("span", { class: "hint" }, total > lines.length ? h("a", { class: "link", href }, `all ${count(total)}`) : count(total))),
  total ? h("ul", { class: "lines" }, lines.map((line) => h("li", null, line))) : empty("yes", none));
