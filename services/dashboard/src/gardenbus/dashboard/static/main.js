// The frame: bar, rail, pages by address, keys, connection.

import { begin, send, session } from "./api.js";
import { as, h, icon, setText } from "./dom.js";
import { clock, count, many } from "./format.js";
import { live } from "./live.js";
import { openKeys, openSearch } from "./overlays.js";
import { installKeys } from "./keys.js";
import { notices, watchNotices } from "./notices.js";
import { switchTheme, themeButton } from "./theme.js";
import { eventsPage } from "./views/events.js";
import { clustersPage, placementsPage } from "./views/fleet.js";
import { fleetHome } from "./views/fleethome.js";
import { growthPage } from "./views/growth.js";
import { landscapePage } from "./views/landscape.js";
import { objectPage } from "./views/object.js";
import { operationsPage } from "./views/operations.js";
import { placementPage } from "./views/placement.js";
import { regionPage } from "./views/region.js";
import { seedsPage } from "./views/seeds.js";
import { shootsPage } from "./views/shoots.js";
import { treePage } from "./views/tree.js";
import { unknownPage } from "./views/unknown.js";
import { waitingPage } from "./views/waiting.js";

// `of` names what a page is about: seeds and shoots, a fleet of member clusters, or what only operators see. One that a landscape has not is not offered.
const PAGES = [
  { path: "", name: "Landscape", icon: "map", page: homePage, key: "l" },
  { path: "seeds", name: "Seeds", icon: "clusters", page: seedsPage, key: "d", of: "seeds" },
  { path: "shoots", name: "Shoots", icon: "shoots", page: shootsPage, key: "s", of: "seeds" },
  { path: "waiting", name: "Waiting", icon: "waiting", page: waitingPage, key: "w", of: "seeds" },
  { path: "growth", name: "Growth", icon: "growth", page: growthPage, key: "g", of: "seeds" },
  { path: "tree", name: "Tree", icon: "fleet", page: treePage, key: "t" },
  { path: "placements", name: "Placements", icon: "fleet", page: placementsPage, key: "p", of: "fleet" },
  { path: "clusters", name: "Clusters", icon: "clusters", page: clustersPage, key: "c", of: "fleet" },
  { path: "events", name: "Events", icon: "events", page: eventsPage, key: "e" },
  { path: "operations", name: "Operations", icon: "operations", page: operationsPage, key: "o", of: "operators" },
];

// Pages that are reached from others, each with where it belongs.
const INNER = { object: { page: objectPage, parts: 3 }, region: { page: regionPage, parts: 2, within: "" }, placement: { page: placementPage, parts: 3, within: "placements" } };
const HOMES = { shoot: "shoots", seed: "seeds", managedseedset: "growth", seedautoscaler: "growth", membercluster: "clusters", clusterresourceplacement: "placements", resourceplacement: "placements", clusterresourcebinding: "placements", resourcebinding: "placements" };
const UNKNOWN = { name: "Not found", page: unknownPage(PAGES) };

const hasFleet = () => (live.summary?.clusters ?? 0) + (live.summary?.placements ?? 0) > 0;
const hasSeeds = () => !hasFleet() || live.summary.seeds + live.summary.shoots > 0;

function homePage(parent, at) {
  return (hasSeeds() ? landscapePage : fleetHome)(parent, at);
}

const main = document.getElementById("main");
const status = document.getElementById("status");
const waitingCount = h("span", { class: "count" });
const stateDot = h("span", { class: "dot hollow" });
const stateWords = h("span", { class: "words" }, "connecting");
const lostWords = h("span");
const lost = h("div", { class: "banner lost", role: "status", hidden: true }, icon("waiting"), lostWords);
const readWords = h("span");
const reading = h("div", { class: "banner reading", role: "status", hidden: true }, icon("waiting"), readWords);
let shown = null;

document.getElementById("bar").append(
  h("a", { class: "brand", href: "#/", "aria-label": "Gardenbus, to the landscape" }, h("img", { src: "static/icon.svg", alt: "" }), h("span", null, "Gardenbus")),
  h("button", { class: "find", type: "button", onclick: openSearch, "aria-keyshortcuts": "/" }, icon("search"), "Search", h("kbd", null, "/")),
  h("span", { class: "space" }),
  h("span", { class: "link-state", id: "link-state" }, stateDot, stateWords),
  themeButton(),
  h("button", { class: "icon-button", type: "button", title: "Keys (?)", "aria-label": "Show the keys", onclick: openKeys }, icon("keyboard")),
);
const links = PAGES.map(({ path, name, icon: sign }) => h("a", { href: `#/${path}` }, icon(sign), h("span", null, name), path === "waiting" ? waitingCount : null));
const foot = h("p", { class: "foot" });
document.getElementById("rail").append(...links, foot);

function show() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, ...rest] = path.split("/").map(decoded);
  const inner = INNER[first]?.parts <= rest.length ? INNER[first] : null;
  const chosen = inner ? { name: rest.at(-1), ...inner } : (rest.length ? null : PAGES.find((each) => each.path === first)) ?? UNKNOWN;
  shown?.end?.();
  main.replaceChildren(lost, reading, notices);
  shown = chosen.page(main, { path: rest, query: new URLSearchParams(query), address: path }) ?? {};
  document.title = `${chosen.name} · Gardenbus`;
  offer();
  const current = chosen === UNKNOWN ? null : inner ? inner.within ?? HOMES[rest[0]] : first;
  links.forEach((link, index) => (PAGES[index].path === current ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
  document.querySelector(".rail [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // a phone's rail may be longer than it is wide
  scrollTo(0, 0);
  setText(status, `${chosen.name} page`);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody typed a per cent sign
  }
}

// Links to the pages of what the landscape has; the home page turns when the first seed or the first cluster comes.
let home = "";
function offer() {
  const has = { seeds: hasSeeds(), fleet: hasFleet(), operators: session.isOperator };
  links.forEach((link, index) => (link.hidden = !(has[PAGES[index].of] ?? true)));
  const name = has.seeds ? "Landscape" : "Fleet";
  if (home === name) return;
  home = name;
  PAGES[0].name = name;
  setText(links[0].querySelector("span"), name);
  if (shown && !location.hash.replace(/^#\/?/, "")) show();
}

let pending = [];
live.addEventListener("changes", ({ detail }) => {
  pending.push(detail);
  if (pending.length > 1) return;
  const later = document.hidden ? (work) => setTimeout(work, 1000) : requestAnimationFrame;
  later(() => {
    const batches = pending;
    pending = [];
    offer();
    reading.hidden ||= live.summary.synced;
    setText(waitingCount, live.summary.waiting ? count(live.summary.waiting) : "");
    waitingCount.title = many(live.summary.waiting, "shoot waits", "shoots wait");
    shown?.update?.(batches);
  });
});
live.addEventListener("state", () => {
  lost.hidden = live.state !== "lost";
  if (live.state === "lost") setText(lostWords, `No updates for ${Math.max(1, Math.round((Date.now() - live.lastBeatAt) / 1000))} s, connecting again. What you see is old: it is how things were at ${clock(live.lastBeatAt)}.`);
  as(stateDot, `dot ${{ live: "good", lost: "bad" }[live.state] ?? "hollow"}`);
  setText(stateWords, { live: "live", lost: "old", connecting: "connecting" }[live.state]);
  setText(status, { live: "Connected", lost: "No updates any more; what you see is old" }[live.state] ?? "");
});
// A dashboard that has just started reads all shoots; numbers, seeds and what waits come first, from the store's indexes.
function showReading() {
  const sum = live.summary;
  reading.hidden = !sum || sum.synced;
  if (reading.hidden) return;
  const part = sum.shoots > sum.shootsRead ? `${count(sum.shootsRead)} of ${many(sum.shoots, "shoot")}` : many(sum.shootsRead, "shoot");
  setText(readWords, `The dashboard has just started, and has read ${part} so far. Until it has read all, lists of shoots and the search are not complete.`);
}
setInterval(() => {
  showReading();
  shown?.tick?.();
}, 1000);

installKeys({ pages: PAGES, switchTheme, openKeys, openSearch });
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
});

async function logOut() {
  await send("POST", "logout");
  location.assign("login");
}

async function start() {
  try {
    await begin();
  } catch {
    // the stream will say that there is no connection; reading works without a session
  }
  setText(foot, `${session.prefix} · ${session.allowWrites ? "changes allowed" : "read-only"}`);
  if (session.user) foot.append(h("br"), session.user, " · ", h("button", { class: "plain", type: "button", onclick: logOut }, "log out"));
  show();
  watchNotices();
  live.start();
}
start();
