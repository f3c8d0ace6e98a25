// One placement: which clusters were taken with which scores, how far each is, and why the others were not taken.

import { get } from "../api.js";
import { empty, h, loading, table } from "../dom.js";
import { ago, count, kindName, many, objectPathOf, pathOf } from "../format.js";
import { chip, isLive, statusOf, wantedWords } from "./fleet.js";

const REFRESH_MS = 1200;
const SHOWN = 300;
const STATES = { Scheduled: "busy", Bound: "good", Unscheduled: "warn" };
const STEP_WORDS = { t: "done", f: "failed", u: "under way", "-": "not begun" };
const card = (title, hint, ...body) => h("section", { class: "card" }, h("header", null, h("h2", null, title), hint && h("span", { class: "hint" }, hint)), body);
const cluster = (name) => h("a", { class: "link", href: pathOf("membercluster", "", name), "data-walk": true }, name);
const score = (value) => h("td", { class: "num" }, value === null ? "–" : value);
const scrolled = (name, columns, rows) => h("div", { class: "scrolls" }, table(name, columns, rows));
const more = (all) => all.length > SHOWN && h("p", { class: "body sub" }, `${count(all.length - SHOWN)} more are in the manifest.`);
const nothing = (words) => h("div", { class: "body sub" }, words);

export function placementPage(main, { path: [kind, space, ...rest] }) {
  const name = rest.join("/");
  const namespace = space === "_" ? "" : space;
  const place = h("div", null, loading());
  main.append(place);
  let timer = 0;
  let isOver = false;

  async function read() {
    timer = 0;
    try {
      const found = await get(`placement/${kind}/${encodeURIComponent(space)}/${encodeURIComponent(name)}`);
      if (!isOver) place.replaceChildren(head(kind, namespace, name, found), body(found));
    } catch (error) {
      if (isOver || !isLive()) return;
      place.replaceChildren(h("div", { class: "card" }, empty("search", `${kindName(kind)} ${name} not found`, h("p", null, error.message), h("a", { class: "button", href: "#/placements" }, "To the placements"))));
    }
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

function head(kind, namespace, name, { placement }) {
  return h("div", { class: "head" }, h("div", null, h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/placements" }, kindName(kind)), namespace && ["/", namespace]),
    h("div", { class: "titled" }, h("h1", null, name), placement && chip(statusOf(placement), placement.reason))), h("div", { class: "actions" }, h("a", { class: "button", href: objectPathOf(kind, namespace, name) }, "Manifest and events")));
}

function body({ placement, policy, strategy, selectors, conditions, snapshot, decisions, steps, bindings }) {
  const taken = decisions.filter((each) => each.selected);
  const others = decisions.filter((each) => !each.selected);
  const left = h("div", { class: "column" },
    card("On clusters", bindings.length ? many(bindings.length, "binding") : "", bindings.length ? scrolled("Bindings", [["Cluster"], ["State"], ["Rollout"], ["What is wrong"]], bindings.slice(0, SHOWN).map((each) => binding(each, steps))) : nothing("It is on no cluster."), more(bindings)),
    card("Decisions", snapshot && `by ${snapshot}`, taken.length ? scrolled("Decisions", [["Cluster"], ["Affinity", "num"], ["Spread", "num"], ["Why"]], taken.slice(0, SHOWN).map(decision)) : nothing(snapshot ? "No cluster was taken." : "Nothing was decided yet."), more(taken)),
    others.length > 0 && card("Not taken", `${count(others.length)}, the best first`, scrolled("Not taken", [["Cluster"], ["Affinity", "num"], ["Spread", "num"], ["Why not"]], others.map(decision))));
  const rolling = strategy.rollingUpdate ?? {};
  const fact = (key, value) => (value === undefined || value === null || value.length === 0 ? null : [h("dt", null, key), h("dd", null, value)]);
  const right = h("div", { class: "column" },
    card("Facts", null, h("div", { class: "body" }, h("dl", { class: "facts" },
      placement && [fact("Type", placement.type), fact("Wanted", wantedWords(placement)), fact("Selected", count(placement.selected)), fact("Bound", count(placement.bound)), fact("Available", count(placement.available)), placement.fulfilled === "False" && fact("Lacks", placement.reason)],
      fact("Spread over", (policy.topologySpreadConstraints ?? []).map((each) => h("div", null, h("code", null, each.topologyKey), ` max skew ${each.maxSkew ?? 1}`))),
      fact("Tolerates", (policy.tolerations ?? []).map((each) => each.key || "everything").join(", ")),
      fact("Rollout", strategy.type === "External" ? "by others" : `${rolling.maxUnavailable ?? "25%"} unavailable, ${rolling.maxSurge ?? "25%"} beyond`),
      fact("Resources", selectors.map((each) => h("div", null, `${each.kind} ${each.name ?? ""}`.trim())))))),
    conditions.length > 0 && card("Conditions", `${conditions.filter((each) => each.status === "True").length} of ${conditions.length} are true`, h("ul", { class: "conditions body" }, conditions.map((each) => h("li", null, h("span", { class: `dot ${{ True: "good", False: "bad", Unknown: "warn" }[each.status] ?? ""}`, title: each.status }), h("span", null, h("b", null, each.type.replace(/^(Cluster)?ResourcePlacement/, ""))), h("span", { class: "when" }, ago(each.lastTransitionTime)), each.message && h("p", null, each.message))))));
  return h("div", { class: "object" }, left, right);
}

function binding(row, steps) {
  const done = [...row.steps].filter((each) => each === "t").length;
  const stepsTitle = steps.map((step, index) => `${step}: ${STEP_WORDS[row.steps[index]]}`).join("\n");
  const state = row.deleting ? ["idle", "being deleted"] : [STATES[row.state] ?? "", row.state];
  return h("tr", { data: { binding: row.cluster } }, h("td", null, cluster(row.cluster)), h("td", null, chip(state, row.resources)),
    h("td", null, h("span", { class: "steps", role: "img", "aria-label": `${done} of ${steps.length} steps done`, title: stepsTitle }, [...row.steps].map((each) => h("i", { class: `step-${each === "-" ? "none" : each}` }))), h("small", null, ` ${stage(row, steps)}`)), h("td", { class: "why" }, row.trouble));
}

function stage(row, steps) {
  if (row.state !== "Bound") return row.state === "Scheduled" ? "waits for its turn" : "waits to be removed";
  const at = [...row.steps].findIndex((each) => each !== "t");
  return at < 0 ? "available" : `${steps[at]} ${STEP_WORDS[row.steps[at]]}`;
}

const decision = (each) => h("tr", { data: { decision: each.cluster } }, h("td", null, cluster(each.cluster)), score(each.affinityScore), score(each.topologySpreadScore), h("td", { class: "why" }, each.reason));
