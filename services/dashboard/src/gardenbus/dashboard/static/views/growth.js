// Sets of seeds that grow and shrink, and the autoscalers that say how many it takes.

import { get } from "../api.js";
import { historyChart } from "../chart.js";
import { empty, h, loading } from "../dom.js";
import { ago, many, now, pathOf } from "../format.js";
import { live } from "../live.js";

export function growthPage(main) {
  const place = h("div", { class: "growth" }, loading());
  const histories = new Map();
  let isOver = false;
  let shown = "";
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Growth"), h("p", { class: "sub" }, "Sets of seeds made of shoots, and the autoscalers that size them"))), place);

  async function readHistories() {
    await Promise.all([...live.autoscalers.values()].map(async (row) => {
      const response = await get(`autoscalers/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}/history`).catch(() => null);
      if (response) histories.set(`${row.namespace}/${row.name}`, response.samples);
    }));
    draw(true);
  }
  function draw(isForced = false) {
    if (!live.summary || isOver) return;
    const sets = [...live.sets.values()];
    const scalers = [...live.autoscalers.values()];
    const now_ = JSON.stringify([sets, scalers]);
    if (now_ === shown && !isForced) return;
    shown = now_;
    const homeless = scalers.filter((row) => !sets.some((set) => set.name === row.target && set.namespace === row.namespace));
    if (!sets.length && !homeless.length) {
      place.replaceChildren(h("div", { class: "card" }, live.summary.synced ? empty("growth", "No set of seeds", h("p", null, "A ManagedSeedSet makes seeds out of shoots; a SeedAutoscaler says how many. The example landscape has one of each, called grove.")) : loading()));
      return;
    }
    place.replaceChildren(...sets.map((set) => card(set, scalers.find((row) => row.target === set.name && row.namespace === set.namespace))), ...homeless.map((row) => card(null, row)));
  }
  function card(set, scaler) {
    const samples = scaler && (histories.get(`${scaler.namespace}/${scaler.name}`) ?? []);
    const settled = set && !set.pending && set.wanted === set.ready;
    return h("article", { class: "card" }, h("header", null, h("h2", null, set ? h("a", { class: "link", href: pathOf("managedseedset", set.namespace, set.name), "data-walk": true }, set.name) : `${scaler.target} (missing)`),
      set && h("span", { class: `chip ${settled ? "good" : "busy"}` }, settled ? "settled" : set.pending ? "at work" : "looking"),
      scaler && h("a", { class: "hint link", href: pathOf("seedautoscaler", scaler.namespace, scaler.name), "data-walk": true }, `scaled by ${scaler.name}, ${scaler.least} to ${scaler.most}`)),
    h("div", { class: "set-body" }, h("div", null, set && pips(set), h("dl", { class: "facts" },
      set && fact("Seeds", `${set.ready} ready of ${set.wanted} wanted`), set?.pending && fact("In the making", h("a", { class: "link", href: pathOf("shoot", set.namespace, set.pending) }, set.pending)), set?.pending && fact("Waits for", set.reason + (set.since ? `, ${ago(set.since)}` : "")),
      scaler && fact("Wanted", scaler.desired ?? "not decided yet"), scaler && fact("Pending shoots", scaler.pendingShoots ?? "–"), scaler?.reason && fact("Because", scaler.reason), scaler?.lastScale && fact("Last change", [`${ago(scaler.lastScale)} ago`, lastReason(samples) && h("div", { class: "when" }, lastReason(samples))]))),
    scaler && h("figure", null, historyChart(samples, { least: scaler.least, most: scaler.most, end: now() }),
      h("figcaption", { class: "legend" }, h("span", null, h("i", { class: "swatch" }), "wanted"), h("span", null, h("i", { class: "swatch current" }), "there"), h("span", null, "dotted: least and most")))));
  }
  draw();
  readHistories();
  const timer = setInterval(() => draw(true), 5000);
  return {
    update(batches) {
      if (batches.some((batch) => batch.reload || batch.seedautoscaler || batch.managedseedset)) readHistories();
    },
    end() {
      isOver = true;
      clearInterval(timer);
    },
  };
}

// Why the number was changed the last time, from its Event.
const lastReason = (samples) => samples?.findLast((each) => each.reason && each.current === null)?.reason;

const fact = (name, value) => [h("dt", null, name), h("dd", null, value)];

function pips(set) {
  const number = Math.min(60, Math.max(set.wanted, set.replicas));
  const made = set.pending ? 1 : 0;
  return h("div", { class: "pips", role: "img", "aria-label": `${set.ready} of ${many(set.wanted, "seed")} ready` }, Array.from({ length: number }, (_, index) => h("i", { class: index < set.ready ? "ready" : index < set.ready + made ? "made" : "" })));
}
