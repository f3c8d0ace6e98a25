// A decision, drawn: how many seeds were left after each rule, how the rest ranks, and what stood against the others.

import { get } from "./api.js";
import { h, icon, meter } from "./dom.js";
import { ago, count, many, pathOf, until } from "./format.js";
import { pager } from "./pager.js";

const RULES = {
  usable: "ready, visible, and staying", cloudprofile: "there is such a profile", project: "there is such a project", provider: "a provider type that the profile allows",
  "cloudprofile-selector": "the profile's seed selector", "shoot-selector": "the shoot's seed selector", taints: "taints that the shoot tolerates", capacity: "room for one more",
  "zonal-control-plane": "three zones, where a zone may fail", zones: "the workers' zones", networks: "networks that do not overlap", "access-restrictions": "the required access restrictions",
  "dns-domain": "a default domain for the shoot's", "emergency-stop": "reconciles at all", strategy: "near enough, by the scheduler's strategy", circular: "does not stand on itself",
};
const MOST_RANKED = 12;
const TONES = 6;

export function decision(response) {
  const considered = response.considered;
  const parts = [outcomeOf(response, considered)];
  if (!considered) {
    parts.push(h("p", { class: "sub" }, response.unanswered ?? "Its scheduler gives no reasons."));
    return h("div", null, parts);
  }
  const ranking = considered.ranking ?? [];
  const rejected = considered.rejected ?? [];
  const against = rejected.reduce((sum, each) => sum + each.total, 0);
  const ranked = considered.ranked ?? ranking.length;
  const total = ranked + against;
  if (response.recorded?.funnel) parts.push(h("h3", { class: "subhead" }, "When it was placed"), funnel(response.recorded.funnel, response.recorded.considered ?? 0, response.recorded.left));
  parts.push(h("h3", { class: "subhead" }, response.seed ? "If it were placed now" : "From all seeds to one"), funnel(considered.funnel ?? [], Math.max(total, considered.funnel?.[0] ? considered.funnel[0].left + considered.funnel[0].rejected : 0), ranked));
  if (ranking.length) parts.push(h("h3", { class: "subhead" }, "Ranking"), rankingOf(ranking, ranked, response.seed, considered.scores ?? []));
  if (against) parts.push(h("h3", { class: "subhead" }, `Why not (${many(against, "seed")})`), rejections(rejected, response.shoot));
  return h("div", null, parts);
}

function outcomeOf(response, considered) {
  if (response.seed) {
    const recorded = response.recorded?.seed === response.seed ? response.recorded : null;
    const taken = recorded && (recorded.allocatable == null ? `${recorded.used} shoots on it` : `${recorded.used} of ${recorded.allocatable} places taken`);
    const why = recorded && [h("div", null, `Chosen ${ago(recorded.at)} ago by ${recorded.strategy}: ${many(recorded.left ?? recorded.eligible, "seed")} of ${count(recorded.considered)} fitted; ${recorded.distance == null ? "" : `at distance ${recorded.distance}, `}with ${taken}.`),
      recorded.runnerUp && h("div", null, `Next in line: ${recorded.runnerUp.seed ?? recorded.runnerUp}.`)];
    return box("good", "yes", [h("b", null, "It is on ", h("a", { class: "link", href: pathOf("seed", "", response.seed) }, response.seed), "."), why]);
  }
  if (considered?.skipped) return box("", "waiting", [`Its scheduler does not place it: ${considered.skipped}`]);
  if (considered?.wouldChoose) return box("busy", "waiting", [`Now it would be placed on ${considered.wouldChoose}.`]);
  const wakes = response.wakesOn?.length > 0 && h("ul", { class: "wakes" }, response.wakesOn.map((each) => h("li", null, typeof each === "string" ? each : each.message ?? each.kind)));
  const next = response.nextAttempt ? ` Next attempt ${until(response.nextAttempt)}.` : "";
  return box("bad", "no", [h("div", null, h("b", null, headline(considered?.message ?? response.message ?? "It waits for a seed.")), h("div", null, response.since ? `It has waited for ${ago(response.since)}.` : "", next), wakes && h("div", null, "What would unblock it:", wakes))]);
}

// Who said no, seed by seed, stands below ("Why not") and in the last operation, word for word.
const headline = (message) => message.replace(/^(\d+\/\d+ seeds are eligible): \{.*\}$/s, "$1");

const box = (tone, sign, words) => h("div", { class: `assessment ${tone}` }, icon(sign), h("div", null, words));

function funnel(steps, total, left) {
  const share = (number) => (total ? (100 * number) / total : 0);
  const row = (name, why, number, out, isNone) => h("li", { class: isNone ? "none" : "", data: { rule: name } }, h("span", { class: "rule" }, h("b", null, name), why && h("small", null, why)),
    h("span", { class: "track" }, h("i", { "width%": share(number) })), h("span", { class: "out" }, h("b", null, count(number)), out));
  return h("ol", { class: "funnel" }, row("all seeds", "", total, " seeds"),
    steps.map((step) => row(step.rule, RULES[step.rule] ?? step.description, step.left, ` (−${count(step.rejected)})`, step.left === 0)),
    !steps.length && left === total && row("all fit", "", left, ""));
}

function rankingOf(ranking, total, chosen, scores) {
  const rows = ranking.slice(0, MOST_RANKED).map((each) => {
    const capacity = each.capacity ?? each.allocatable;
    const used = each.usage ?? each.used ?? 0;
    const share = capacity ? used / capacity : 0;
    return h("tr", null, h("td", { class: "num" }, each.place ?? each.rank), h("td", null, h("a", { class: "link", href: pathOf("seed", "", each.seed) }, each.seed), each.seed === chosen && h("span", { class: "chip good" }, "here")),
      h("td", { class: "num" }, each.distance ?? "–"), scores.length > 0 && h("td", null, pointsOf(each, scores)), h("td", null, capacity == null ? count(used) : [`${count(used)}/${count(capacity)}`, meter(share, "taken")]));
  });
  const more = total - rows.length;
  return h("div", null, h("table", { class: "plain-table" }, h("thead", null, h("tr", null, h("th", { class: "num" }, "#"), h("th", null, "Seed"), h("th", { class: "num" }, "Distance"), scores.length > 0 && h("th", null, "Sum"), h("th", null, "Taken"))), h("tbody", null, rows)),
    scores.length > 0 && h("p", { class: "sub points-legend" }, scores.map((each, index) => h("span", null, h("i", { class: `tone-${index % TONES}` }), `${each.name}*${each.weight}${each.requested ? "" : " (not requested by this shoot)"}`))),
    more > 0 && h("p", { class: "sub" }, `and ${count(more)} more`));
}

// The sum of a seed as one bar, a part for each score of the profile: of all points that a seed could have.
function pointsOf(ranked, scores) {
  const most = 100 * scores.reduce((sum, each) => sum + each.weight, 0);
  const points = scores.map((each, index) => each.weight * (ranked.scores?.[index] ?? 0));
  const words = scores.map((each, index) => `${each.name} ${each.weight}*${ranked.scores?.[index] ?? 0}`).join(", ");
  return [count(ranked.sum ?? 0), h("span", { class: "meter stacked", role: "img", title: words, "aria-label": words }, points.map((each, index) => each > 0 && h("i", { class: `tone-${index % TONES}`, "width%": (100 * each) / most })))];
}

// By rule: how many seeds for which reason, and the seeds themselves, a page at a time.
function rejections(groups, shoot) {
  return h("div", { class: "against" }, groups.map(({ rule, total, reasons, items }) => {
    const list = h("ul");
    const show = (rows) => list.replaceChildren(...rows.map((each) => h("li", null, h("a", { class: "link", href: pathOf("seed", "", each.seed) }, each.seed), h("span", null, each.detail))));
    const turn = pager(items.length, `seeds (${rule})`, async (offset) => {
      const page = await get(`explain/${shoot.split("/").map(encodeURIComponent).join("/")}/rejections?${new URLSearchParams({ rule, offset: Math.max(0, offset), limit: items.length })}`).catch(() => null);
      if (!page?.items.length) return;
      show(page.items);
      turn.show(page.offset, page.items.length, page.total);
    });
    show(items);
    turn.show(0, items.length, total);
    const counted = reasons.reduce((sum, each) => sum + each.seeds, 0);
    return h("details", { open: groups.length === 1 && total < 8, data: { rule } }, h("summary", null, h("b", null, rule), h("span", { class: "chip" }, many(total, "seed"))),
      reasons.length > 0 && h("ul", { class: "reasons" }, reasons.map((each) => h("li", null, h("b", null, many(each.seeds, "seed")), h("span", null, each.detail))), counted < total && h("li", null, h("b", null, many(total - counted, "seed")), h("span", null, "other reasons"))), list, turn.element);
  }));
}

// Whether a seed is usable, by rule, and whom it could take.
export function seedDecision(response) {
  const rules = (response.rules ?? []).map((each) => h("li", null, h("span", { class: `dot ${each.ok ? "good" : "bad"}` }), h("b", null, each.rule), h("span"), each.message && h("p", null, each.message)));
  const waiting = response.waiting ?? [];
  return h("div", null, box(response.usable ? "good" : "bad", response.usable ? "yes" : "no", [response.usable ? "It takes new shoots." : "It takes no new shoots."]),
    rules.length > 0 && h("ul", { class: "conditions rules" }, rules),
    waiting.length > 0 && [h("h3", { class: "subhead" }, `Shoots that wait and would fit (${count(waiting.length)})`),
      h("ul", null, waiting.slice(0, 20).map((each) => h("li", null, h("a", { class: "link", href: pathOf("shoot", each.namespace, each.name) }, `${each.namespace}/${each.name}`))))]);
}
