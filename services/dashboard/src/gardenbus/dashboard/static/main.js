// The frame: bar, rail, pages by address, keys, connection.

import { begin, session } from "./api.js";
import { as, h, icon, setText } from "./dom.js";
import { count, many } from "./format.js";
import { live } from "./live.js";
import { openKeys, openSearch } from "./overlays.js";
import { installKeys } from "./keys.js";
import { switchTheme, themeButton } from "./theme.js";
import { eventsPage } from "./views/events.js";
import { clustersPage, placementsPage } from "./views/fleet.js";
import { growthPage } from "./views/growth.js";
import { landscapePage } from "./views/landscape.js";
import { objectPage } from "./views/object.js";
import { placementPage } from "./views/placement.js";
import { shootsPage } from "./views/shoots.js";
import { waitingPage } from "./views/waiting.js";

const PAGES = [
  { path: "", name: "Landscape", icon: "map", page: landscapePage, key: "l" },
  { path: "shoots", name: "Shoots", icon: "shoots", page: shootsPage, key: "s" },
  { path: "waiting", name: "Waiting", icon: "waiting", page: waitingPage, key: "w" },
  { path: "growth", name: "Growth", icon: "growth", page: growthPage, key: "g" },
  { path: "placements", name: "Placements", icon: "fleet", page: placementsPage, key: "p" },
  { path: "events", name: "Events", icon: "events", page: eventsPage, key: "e" },
];

// Pages that are reached from others, each with where it belongs.
const INNER = {
  object: { page: objectPage },
  placement: { page: placementPage, within: "placements" },
  clusters: { name: "Member clusters", page: clustersPage, within: "placements" },
};
const HOMES = { shoot: "shoots", seed: "", managedseedset: "growth", seedautoscaler: "growth", membercluster: "placements", clusterresourceplacement: "placements", resourceplacement: "placements", clusterresourcebinding: "placements", resourcebinding: "placements" };

const main = document.getElementById("main");
const status = document.getElementById("status");
const waitingCount = h("span", { class: "count" });
const stateDot = h("span", { class: "dot hollow" });
const stateWords = h("span", { class: "words" }, "connecting");
const lost = h("div", { class: "lost", role: "status", hidden: true }, icon("waiting"), "Connection lost, retrying. What you see is how it was.");
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
  const [first, ...rest] = path.split("/").map(decodeURIComponent);
  const inner = INNER[first];
  const chosen = inner ? { name: rest.at(-1), ...inner } : PAGES.find((each) => each.path === first) ?? PAGES[0];
  shown?.end?.();
  main.replaceChildren(lost);
  shown = chosen.page(main, { path: rest, query: new URLSearchParams(query) }) ?? {};
  document.title = `${chosen.name} · Gardenbus`;
  const current = inner ? inner.within ?? HOMES[rest[0]] : first;
  links.forEach((link, index) => (PAGES[index].path === current ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
  scrollTo(0, 0);
  setText(status, `${chosen.name} page`);
}

let pending = [];
live.addEventListener("changes", ({ detail }) => {
  pending.push(detail);
  if (pending.length > 1) return;
  const later = document.hidden ? (work) => setTimeout(work, 1000) : requestAnimationFrame;
  later(() => {
    const batches = pending;
    pending = [];
    setText(waitingCount, live.summary.waiting ? count(live.summary.waiting) : "");
    waitingCount.title = many(live.summary.waiting, "shoot waits", "shoots wait");
    shown?.update?.(batches);
  });
});
live.addEventListener("state", () => {
  lost.hidden = live.state !== "lost";
  as(stateDot, `dot ${{ live: "good", lost: "warn" }[live.state] ?? "hollow"}`);
  setText(stateWords, { live: "live", lost: "retrying", connecting: "connecting" }[live.state]);
  setText(status, { live: "Connected", lost: "Connection lost, retrying" }[live.state] ?? "");
});
setInterval(() => shown?.tick?.(), 1000);

installKeys({ pages: PAGES, switchTheme, openKeys, openSearch });
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
});

async function start() {
  try {
    await begin();
  } catch {
    // the stream will say that there is no connection; reading works without a session
  }
  setText(foot, `${session.prefix} · ${session.allowWrites ? "changes allowed" : "read-only"}`);
  show();
  live.start();
}
start();
