// How the landscape itself is: checks, queues of work, rejected messages, services.

import { get, send, session } from "../api.js";
import { empty, h, loading, setText, table } from "../dom.js";
import { ago, clock, count, many } from "../format.js";
import { toast } from "../overlays.js";

const QUEUES_MS = 2000;
const OTHERS_MS = 15000;
const SIGNS = { ok: ["good", "ok"], warning: ["warn", "warning"], failed: ["bad", "failed"], skipped: ["hollow", "skipped"] };
const ORDER = ["failed", "warning", "ok", "skipped"];

export function operationsPage(main) {
  const checks = part("Checks", "checks", drawChecks);
  const queues = part("Queues", "queues", drawQueues);
  const services = part("Services", "services", drawServices);
  const rejected = part("Rejected messages", "rejected", drawRejected);
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Operations"), h("p", { class: "sub" }, "What gardenbus doctor, queue, rejected and status report"))), h("div", { class: "operations" }, h("div", { class: "column" }, checks.element), h("div", { class: "column" }, rejected.element, queues.element, services.element)));
  const all = [checks, queues, services, rejected];
  all.forEach((each) => each.read());
  const timers = [setInterval(queues.read, QUEUES_MS), setInterval(() => [checks, services, rejected].forEach((each) => each.read()), OTHERS_MS)];
  return {
    end() {
      timers.forEach(clearInterval);
      all.forEach((each) => each.end());
    },
  };
}

// A card that is read again and again; while nothing is read it says why.
function part(title, path, draw) {
  const hint = h("span", { class: "hint" });
  const body = h("div", { class: "scrolls" }, loading());
  const element = h("section", { class: "card", data: { part: path } }, h("header", null, h("h2", null, title), hint), body);
  const state = { query: "", hint };
  let isBusy = false;
  let isOver = false;
  async function read() {
    if (isBusy || document.hidden) return;
    isBusy = true;
    try {
      const found = await get(path + state.query);
      if (!isOver && !element.querySelector("[data-keep]")) body.replaceChildren(draw(found, state, read));
    } catch (error) {
      if (!isOver) body.replaceChildren(h("p", { class: "body sub" }, error.message));
    } finally {
      isBusy = false;
    }
  }
  return { element, read, end: () => (isOver = true) };
}

function drawChecks({ findings, state, at }, { hint }) {
  setText(hint, `at ${clock(at)}`);
  const sorted = [...findings].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
  const summary = ORDER.map((each) => [each, findings.filter((finding) => finding.state === each).length]).filter(([, number]) => number);
  return h("div", null, h("p", { class: "choices", data: { worst: state } }, summary.map(([each, number]) => sign(each, `${count(number)} ${SIGNS[each][1]}`))),
    h("ul", { class: "lines checks" }, sorted.map((each) => h("li", { data: { check: each.check } }, sign(each.state), h("b", null, each.check), h("span", null, each.found, each.remedy && h("p", { class: "when" }, each.remedy))))));
}

const sign = (state, words) => h("span", { class: `chip ${SIGNS[state][0]}` }, h("span", { class: `dot ${SIGNS[state][0]}` }), words ?? SIGNS[state][1]);

function drawQueues({ items }) {
  const number = (value) => h("td", { class: "num" }, value === null ? "–" : value);
  return table("Queues", [["Queue"], ["Waiting", "num"], ["In flight", "num"], ["Per second", "num"], ["Again", "num"], ["Later", "num"], ["Listening", "num"], ["Oldest", "num"]], items.map((row) =>
    h("tr", { data: { queue: row.queue } }, h("td", null, h("span", { class: `dot ${row.pending && !row.listening ? "bad" : row.redelivered ? "warn" : "good"}` }), " ", row.queue), number(count(row.pending)), number(count(row.in_flight)), number(row.perSecond === null ? null : row.perSecond.toFixed(1)),
      number(count(row.redelivered)), number(count(row.later)), number(count(row.listening)), number(row.oldest ? ago(row.oldest) : "")))) ;
}

function drawServices({ items }, { hint }) {
  setText(hint, many(items.reduce((sum, each) => sum + each.replicas.length, 0), "process", "processes"));
  return table("Services", [["Service"], ["Version"], ["Replicas", "num"], ["Requests", "num"], ["Errors", "num"], ["Up for"]], items.map((each) => {
    const sum = (field) => count(each.replicas.reduce((total, replica) => total + replica[field], 0));
    return h("tr", { data: { service: each.name } }, h("td", null, h("b", null, each.name)), h("td", null, each.versions.length > 1 ? h("span", { class: "chip warn" }, each.versions.join(", ")) : each.versions[0]), h("td", { class: "num", title: each.replicas.map((replica) => replica.instance).join(", ") }, count(each.replicas.length)),
      h("td", { class: "num" }, sum("requests")), h("td", { class: "num" }, sum("errors")), h("td", null, each.replicas.map((replica) => ago(replica.started)).slice(0, 6).join(", ")));
  }));
}

function drawRejected({ items, older }, state, read) {
  setText(state.hint, "of 7 days, the newest first");
  if (!items.length) return empty("yes", "Nothing was rejected", h("p", null, "A message that no service can take is kept here with its reason."));
  const turn = (query, words) => h("button", { class: "button small", type: "button", onclick: () => { state.query = query; read(); } }, words);
  return h("div", null, h("ul", { class: "lines rejected" }, items.map((each) => rejectedLine(each, read))),
    (older > 0 || state.query) && h("div", { class: "pager" }, state.query && turn("", "Newest"), older > 0 && turn(`?before=${older}`, "Older")));
}

function rejectedLine(each, read) {
  const place = h("div", null);
  const show = h("button", { class: "button small", type: "button", "aria-expanded": "false", "aria-label": `Show message ${each.id}`, onclick: async () => {
    if (place.childElementCount) {
      place.replaceChildren();
      show.setAttribute("aria-expanded", "false");
      return;
    }
    const found = await get(`rejected/${each.id}`).catch((error) => ({ body: error.message }));
    place.replaceChildren(h("pre", { class: "yaml", tabindex: "0", "aria-label": `Message ${each.id}`, data: { keep: true } }, found.body, found.isCut && "\n(the rest was not kept)"));
    show.setAttribute("aria-expanded", "true");
  } }, "Show");
  const replay = session.allowWrites && h("button", { class: "button small", type: "button", "aria-label": `Replay message ${each.id}`, onclick: async () => {
    replay.disabled = true;
    const outcome = await send("POST", `rejected/${each.id}/replay`).catch((error) => ({ state: "failed", message: error.message }));
    const words = { taken: "was taken", queued: "is queued again", sent: "was sent, and not handled yet", rejected: `was rejected again, as ${outcome.repeated}` }[outcome.state] ?? "could not be sent";
    toast(`Message ${each.id} ${words}${outcome.isDuplicate ? " (it had been sent before)" : ""}: ${outcome.message}`, ["failed", "rejected"].includes(outcome.state) ? "bad" : "");
    replay.disabled = false;
    read();
  } }, "Replay");
  return h("li", { data: { rejected: each.id } }, h("div", { class: "words" }, h("b", null, each.object || each.subject), " ", h("span", { class: "chip bad" }, each.reason || "rejected"), h("span", { class: "when", title: each.at }, ` ${ago(each.at)} ago · ${each.subject} · number ${each.id}`)),
    h("div", { class: "choices" }, show, replay), h("p", { class: "why" }, each.message), place);
}
