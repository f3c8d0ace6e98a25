// The page of one object: how it stands, why, what is around it, what happened to it, and its manifest.

import { get, objectPath, send, session } from "../api.js";
import { fillChart } from "../chart.js";
import { decision, seedDecision } from "../decision.js";
import { empty, h, icon, loading, meter, table as plainTable } from "../dom.js";
import { eventLine } from "../eventlist.js";
import { TONES, ago, clock, count, fill, health, healthOf, kindName, pathOf } from "../format.js";
import { historyCard } from "../history.js";
import { live } from "../live.js";
import { requestAnnotation, confirmAction, confirmDeletion, toast } from "../overlays.js";
import { ShootTable, shootCount } from "../table.js";
import { yamlView } from "../yaml.js";

const REFRESH_MS = 1200;
const SEEDS_MS = 5000;
const OF_FLEETS = new Set(["membercluster", "clusterresourceplacement", "resourceplacement", "clusterresourcebinding", "resourcebinding", "clusterschedulingpolicysnapshot", "schedulingpolicysnapshot"]);
const card = (title, hint, ...body) => h("section", { class: "card" }, h("header", null, h("h2", null, title), hint && h("span", { class: "hint" }, hint)), body);
const fact = (name, value) => (value === undefined || value === null || value === "" ? null : [h("dt", null, name), h("dd", null, value)]);

export function objectPage(main, { path: [kind, space, ...rest] }) {
  const name = rest.join("/");
  const namespace = space === "_" ? "" : space;
  const place = h("div", null, loading());
  main.append(place);
  let isOver = false;
  let timer = 0;
  let isUrgent = false;
  let isWaiting = false;
  let table = null;
  let isOpen = false;
  const history = kind === "seed" ? historyCard("seed", name) : kind === "managedseedset" ? historyCard("managedseedset", `${namespace}/${name}`) : null;

  const list = kind === "seed" ? h("section", { class: "card seed-shoots" }) : null;
  if (list) {
    const hint = h("span", { class: "hint" });
    table = new ShootTable({ seed: name }, { counted: (total) => { hint.textContent = shootCount(total); list.hidden = total === 0; } });
    list.append(h("header", null, h("h2", null, "Shoots here"), hint), table.element);
    list.hidden = true;
  }

  function readIn(milliseconds, urgent) {
    if (timer && (isUrgent || !urgent)) return;
    clearTimeout(timer);
    isUrgent = urgent;
    timer = setTimeout(read, milliseconds);
  }

  async function read() {
    timer = 0;
    try {
      const [found, why, filled, outlook] = await Promise.all([get(objectPath(kind, namespace, name)), explained(), fillHistory(), setOutlook()]);
      if (!isOver) draw(found, why, filled, outlook);
    } catch (error) {
      if (isOver || live.state === "lost") return;
      place.replaceChildren(h("div", { class: "card" }, empty("search", `${kindName(kind)} ${name} not found`, h("p", null, error.message), h("a", { class: "button", href: "#/" }, "To the landscape"))));
    }
  }
  async function explained() {
    if (kind === "shoot") return get(`explain/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`).catch((error) => ({ unanswered: error.message }));
    return kind === "seed" ? get(`explain-seed/${encodeURIComponent(name)}`).catch(() => null) : null;
  }

  async function setOutlook() {
    return kind === "managedseedset" ? get(`sets/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`).catch(() => null) : null;
  }

  async function fillHistory() {
    return kind === "seed" ? get(`seeds/${encodeURIComponent(name)}/fill`).catch(() => null) : null;
  }

  function draw({ object, yaml, related, events, moves }, why, filled, outlook) {
    const { metadata = {}, spec = {}, status = {} } = object;
    isWaiting = kind === "shoot" && !spec.seedName;
    const opened = new Set([...place.querySelectorAll("details[open] > summary b")].map((each) => each.textContent));
    const isManifestOpen = isOpen;
    const manifest = h("details", { class: "card wide", ontoggle: (event) => (isOpen = event.target.open) }, h("summary", { class: "manifest-head" }, h("b", null, "Manifest"), h("button", { class: "button small", type: "button", onclick: (event) => copy(event, yaml) }, "Copy YAML")));
    if (isManifestOpen) manifest.open = true;
    manifest.addEventListener("toggle", () => manifest.open && !manifest.querySelector("pre") && manifest.append(yamlView(yaml)));
    if (isManifestOpen) manifest.append(yamlView(yaml));
    const last = status.lastOperation && kind !== "seed" && operation(status.lastOperation, status.lastErrors);
    if (moves?.some((move) => !move.isTakenBack && Date.parse(move.at) > Date.parse(why?.recorded?.at))) why = { ...why, recorded: null }; // of a seed that it left since
    const decided = kind === "shoot" && why && card("Decision", why.considered?.strategy && `strategy ${why.considered.strategy}`, h("div", { class: "body" }, decision(why)));
    const left = h("div", { class: "column" },
      moves?.length > 0 && moved(moves, status),
      list,
      outlook && [scaling(outlook), replicas(outlook)],
      history?.element,
      spec.seedName ? [last, decided] : [decided, last], // of one that waits, why is what is asked first
      kind === "seed" && why && card("Would it take a shoot?", null, h("div", { class: "body" }, seedDecision(why))),
      conditions([...(status.conditions ?? []), ...(status.constraints ?? [])]),
      card("Events", events.length ? `${count(events.length)} in 24 hours` : "", events.length ? h("ul", { class: "lines" }, events.slice(0, 60).map((event) => eventLine(event, { about: false }))) : h("div", { class: "body sub" }, "None in the last 24 hours.")));
    const right = h("div", { class: "column" }, filled && card("Shoots over time", "since the dashboard's first visitor", h("div", { class: "body" }, fillChart(filled))), card("Facts", null, h("div", { class: "body" }, h("dl", { class: "facts" }, facts(kind, metadata, spec, status)))),
      related.length > 0 && card("Related objects", null, h("ul", { class: "lines" }, related.map((each) => h("li", null, h("span", { class: "when" }, `${each.role} `), h("a", { class: "link", href: pathOf(each.kind, each.namespace, each.name), "data-walk": true }, `${kindName(each.kind)} ${each.name}`))))));
    place.replaceChildren(head(kind, namespace, name, object), h("div", { class: "object" }, left, right, manifest));
    for (const summary of place.querySelectorAll("details > summary b")) {
      if (opened.has(summary.textContent)) summary.closest("details").open = true;
    }
  }

  read();
  return {
    update(batches) {
      table?.update(batches);
      const mine = batches.some((batch) => batch.reload || (kind === "managedseedset" && ((batch.seedautoscaler ?? []).length > 0 || (batch.seed ?? []).some((row) => row.managed))) || batch.manyShoots || (batch.fleet && OF_FLEETS.has(kind)) || (batch[kind] ?? []).some((row) => row.name === name && (row.namespace ?? "") === namespace) || batch.gone?.some((each) => each[0] === kind && each[1] === namespace && each[2] === name) || batch.events?.some((event) => event.kind === kind && event.name === name && event.namespace === namespace));
      if (mine) readIn(REFRESH_MS, true);
      else if (isWaiting && batches.some((batch) => batch.seed?.length || batch.gone?.some((each) => each[0] === "seed"))) readIn(SEEDS_MS, false); // why it waits is of the seeds
    },
    tick: () => table?.tick(),
    end() {
      isOver = true;
      clearTimeout(timer);
      table?.end();
      history?.end();
    },
  };
}

function head(kind, namespace, name, object) {
  const { metadata = {}, spec = {}, status = {} } = object;
  const seed = kind === "seed" ? live.seeds.get(name) : null;
  const chips = [];
  if (metadata.deletionTimestamp) chips.push(["idle", "being deleted"]);
  if (kind === "seed" && !metadata.deletionTimestamp) chips.push(seed ? health(seed) : healthOf(object));
  if (kind === "shoot") {
    const state = (status.lastOperation?.state ?? "new").toLowerCase();
    chips.push(spec.seedName ? [TONES[state] ?? "", state] : state === "pending" ? ["wait", "waits for a seed"] : ["", "new"]);
    if (status.seedName && spec.seedName && status.seedName !== spec.seedName) chips.push(["busy", `moving to ${spec.seedName}`]);
  }
  return h("div", { class: "head" }, h("div", null, h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: kind === "shoot" ? "#/shoots" : "#/" }, kindName(kind)), namespace && ["/", h("a", { href: `#/shoots?namespace=${encodeURIComponent(namespace)}` }, namespace)]),
    h("div", { class: "titled" }, h("h1", null, name), chips.map(([tone, words]) => h("span", { class: `chip ${tone}` }, h("span", { class: `dot ${tone}` }), words)))), session.allowWrites && actions(kind, namespace, name, spec, metadata.annotations));
}

function actions(kind, namespace, name, spec, annotations) {
  const button = (words, work, risky) => h("button", { class: `button ${risky ? "risky" : ""}`, type: "button", onclick: async (event) => {
    event.target.disabled = true;
    try {
      const done = await work();
      if (done) toast(done);
    } catch (error) {
      toast(error.message, "bad");
    }
    event.target.disabled = false;
  } }, words);
  const isOpen = spec.settings?.scheduling?.visible !== false;
  const path = encodeURIComponent(name);
  const isConfirmed = annotations?.["confirmation.gardener.cloud/deletion"] === "true";
  // First what it would do, as the API has tried it; then once, on the object as it was seen.
  async function act(action, words, more = {}) {
    const to = `actions/${action}/${kind}/${encodeURIComponent(namespace || "_")}/${path}`;
    const { does, shown } = await send("POST", to, { dryRun: true, ...more });
    if (!(await confirmAction(`${action[0].toUpperCase()}${action.slice(1).replace("-", " ")} ${kindName(kind)} ${name}?`, does))) return null;
    const done = await send("POST", to, { shown, ...more });
    return done.words ?? words;
  }
  return h("div", { class: "actions" },
    kind === "seed" && (isOpen ? button("Cordon…", () => act("cordon", `${name} takes no new shoots`)) : button("Uncordon…", () => act("uncordon", `${name} takes new shoots again`))),
    kind === "seed" && button("Drain…", () => act("drain", `${name} is being drained`), true),
    button("Annotate…", async () => {
      const wanted = await requestAnnotation(kind, name);
      return wanted && act("annotate", `${name} is annotated`, wanted);
    }),
    ["shoot", "project"].includes(kind) && !isConfirmed && button("Confirm deletion…", () => act("confirm-deletion", `${name} may be deleted`)),
    kind === "shoot" && button("Retry", async () => (await send("POST", `shoots/${encodeURIComponent(namespace)}/${path}/retry`), `${name} is tried again`)),
    button("Delete…", async () => (await confirmDeletion(kind, name)) && (await send("DELETE", objectPath(kind, namespace, name), { confirm: name }), `${name} is being deleted`), true));
}

// A set: what it does next and why, how far its template is, and its replicas as seeds.
function scaling({ rollout, next, autoscalers }) {
  const done = rollout.isDone ? `all ${count(rollout.replicas)} seeds have the template` : `${count(rollout.updated)} of ${count(rollout.replicas)} seeds have the new template (${rollout.update})`;
  return card("Scaling and rollout", null, h("div", { class: "body scaling" }, h("dl", { class: "facts" }, fact("Next", next), fact("Rollout", [done, !rollout.isDone && meter(rollout.replicas ? rollout.updated / rollout.replicas : 0, "busy", done)]),
    autoscalers.map((each) => fact("Autoscaler", [h("a", { class: "link", href: pathOf("seedautoscaler", "garden", each.name) }, each.name), h("ul", null, each.why.map((words) => h("li", null, words)))])))));
}

const REPLICAS = [["Seed"], ["State"], ["Shoots", "num"], ["Hosted by"], ["Heartbeat", "num"]];

function replicas({ replicas: all, total }) {
  const rows = all.map((each) => {
    const full = each.seed && fill(each.seed);
    return h("tr", { data: { replica: each.name } }, h("td", null, h("a", { class: "link name", href: pathOf("seed", "", each.name), "data-walk": true }, each.name)),
      h("td", null, h("span", { class: `chip ${each.tone}`, title: each.condition }, h("span", { class: `dot ${each.tone}` }), each.seed ? health(each.seed)[1] : each.words), each.tone === "bad" && each.condition && h("small", null, ` ${each.condition}`)),
      h("td", { class: "num" }, full ? full.words : "–", each.troubles > 0 && h("small", null, `, ${count(each.troubles)} not well`)),
      h("td", null, h("a", { class: "link", href: pathOf("shoot", each.namespace, each.name) }, `Shoot ${each.name}`), h("small", null, ` ${each.hostWords}`)), h("td", { class: "num" }, each.seed?.heartbeat ? `${ago(each.seed.heartbeat)} ago` : "none"));
  });
  return card("Replicas", total > all.length ? `${count(all.length)} of ${count(total)}` : count(total), rows.length ? h("div", { class: "scrolls" }, plainTable("Replicas", REPLICAS, rows)) : h("div", { class: "body sub" }, "None yet."));
}

// The way of a shoot that was moved between seeds, the latest move first.
function moved(moves, status) {
  const seed = (name) => h("a", { class: "link", href: pathOf("seed", "", name) }, name);
  const { type, state: how } = status.lastOperation ?? {};
  const isRestoring = type === "Restore" && how !== "Succeeded";
  const state = (move, index) => (move.isTakenBack ? ["", "cancelled"] : index === 0 && (status.seedName !== move.to || isRestoring) ? ["busy", "under way"] : ["good", "done"]);
  return card("Moved", moves.length > 1 ? `${count(moves.length)} times in 24 hours` : "", h("ul", { class: "lines moves" }, moves.map((move, index) => {
    const [tone, words] = state(move, index);
    return h("li", null, h("span", null, seed(move.before), " → ", seed(move.to)), " ", h("span", { class: `chip ${tone}` }, words), h("span", { class: "when", title: move.at }, ` ${ago(move.at)} ago, by ${move.user}`));
  })));
}

function operation(last, errors = []) {
  const tone = TONES[(last.state ?? "").toLowerCase()] ?? "busy";
  return card("Last operation", last.lastUpdateTime && `${ago(last.lastUpdateTime)} ago`, h("div", { class: "body operation" }, h("div", { class: "words" }, h("b", null, `${last.type} ${last.state}`), h("span", null, `${last.progress ?? 0} %`)), meter((last.progress ?? 0) / 100, tone, "Progress"),
    h("p", null, last.description), errors.map((each) => h("p", { class: "chip bad" }, each.description))));
}

function conditions(all) {
  if (!all.length) return null;
  const tone = { True: "good", False: "bad", Progressing: "busy", Unknown: "warn" };
  return card("Conditions", `${all.filter((each) => each.status === "True").length} of ${all.length} are true`, h("ul", { class: "conditions body" }, all.map((each) => h("li", null, h("span", { class: `dot ${tone[each.status] ?? ""}`, title: each.status }), h("span", null, h("b", null, each.type), " ", each.status !== "True" && h("span", { class: "about" }, `${each.status} · ${each.reason ?? ""}`)),
    h("span", { class: "when", title: each.lastTransitionTime ? clock(each.lastTransitionTime) : "" }, ago(each.lastTransitionTime)), each.message && h("p", null, each.message)))));
}

function facts(kind, metadata, spec, status) {
  const link = (to, name) => name && h("a", { class: "link", href: pathOf(to, "", name) }, name);
  const row = kind === "seed" ? live.seeds.get(metadata.name) : null;
  const full = row && fill(row);
  const own = {
    shoot: () => [fact("Seed", link("seed", spec.seedName) ?? "none"), spec.seedName !== status.seedName && fact("Still on", link("seed", status.seedName)), fact("Provider", spec.provider?.type), fact("Region", spec.region), fact("Purpose", spec.purpose), fact("Kubernetes", spec.kubernetes?.version), fact("Profile", spec.cloudProfile?.name ?? spec.cloudProfileName),
      fact("Scheduler", spec.schedulerName), fact("Workers", (spec.provider?.workers ?? []).map((each) => `${each.name} ${each.minimum}–${each.maximum}`).join(", ")), fact("High availability", spec.controlPlane?.highAvailability?.failureTolerance?.type)],
    seed: () => [fact("Provider", spec.provider?.type), fact("Region", spec.provider?.region), fact("Zones", (spec.provider?.zones ?? []).join(", ")), full && fact("Taken", [full.words, meter(full.share, "taken")]), row?.heartbeat && fact("Last heartbeat", `${ago(row.heartbeat)} ago`),
      fact("Taints", (spec.taints ?? []).map((each) => each.key).join(", ")), fact("Restrictions", (spec.accessRestrictions ?? []).map((each) => each.name).join(", ")), fact("Open", spec.settings?.scheduling?.visible === false ? "no: cordoned or hidden" : "yes"), fact("Gardenlet", status.gardener?.version ?? status.gardener?.name)],
  }[kind];
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => !key.startsWith("name.seed.gardener.cloud/"));
  return [own?.(), fact("Created", metadata.creationTimestamp && `${ago(metadata.creationTimestamp)} ago`), fact("By", metadata.annotations?.["gardener.cloud/created-by"]), fact("Generation", metadata.generation && `${metadata.generation}${status.observedGeneration ? `, ${status.observedGeneration} observed` : ""}`), fact("Version", metadata.resourceVersion), fact("Finalizers", (metadata.finalizers ?? []).join(", ")),
    labels.length > 0 && fact("Labels", labels.map(([key, value]) => h("div", null, h("code", null, `${key}=${value}`))))];
}

async function copy(event, text) {
  event.preventDefault();
  try {
    await navigator.clipboard.writeText(text);
    toast("The manifest is copied");
  } catch {
    toast("The browser does not let this page copy", "bad");
  }
}
