// The banner of what needs somebody: seeds that are silent, certificates that end within a week, queues that stand still.

import { get, session } from "./api.js";
import { h, icon } from "./dom.js";
import { many, moment, now, pathOf } from "./format.js";
import { live } from "./live.js";

const MINUTE_MS = 60_000;
const WEEK_MS = 7 * 24 * 60 * MINUTE_MS;
const MOST_NAMED = 5;

export const notices = h("div", { class: "banner notices", role: "status", hidden: true });
let queues = []; // what stands still, as the checks have found it
let drawn = "";

function list(rows, words) {
  const links = rows.slice(0, MOST_NAMED).flatMap((row, index) => [index ? ", " : "", h("a", { class: "link", href: pathOf("seed", "", row.name) }, row.name), ` (${words(row)})`]);
  return [...links, rows.length > MOST_NAMED && ` and ${rows.length - MOST_NAMED} more`];
}

function draw() {
  const seeds = [...live.seeds.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const silent = seeds.filter((row) => row.ready === "Unknown" && !row.deleting);
  const ending = seeds.filter((row) => row.certificateEnds && Date.parse(row.certificateEnds) - now() < WEEK_MS);
  const key = JSON.stringify([silent.map((row) => [row.name, row.lastHeartbeat]), ending.map((row) => [row.name, row.certificateEnds]), queues]);
  if (key === drawn) return;
  drawn = key;
  const ends = (row) => `${Date.parse(row.certificateEnds) > now() ? "ends" : "ended"} ${moment(row.certificateEnds)}`;
  const lines = [
    silent.length > 0 && h("li", null, `${many(silent.length, "seed is silent", "seeds are silent")}, and no shoot is placed there: `, list(silent, (row) => (row.lastHeartbeat ? `last heartbeat ${moment(row.lastHeartbeat)}` : "no heartbeat"))),
    ending.length > 0 && h("li", null, `${many(ending.length, "certificate of a gardenlet ends", "certificates of gardenlets end")} within a week: `, list(ending, ends)),
    ...queues.map((words) => h("li", null, h("a", { class: "link", href: "#/operations" }, words))),
  ].filter(Boolean);
  notices.replaceChildren(icon("waiting"), h("ul", null, lines));
  notices.hidden = lines.length === 0;
}

// The checks are for operators. They are made once for all browsers together, and cost too much for more than once a minute.
async function readQueues() {
  if (!session.isOperator || document.hidden) return;
  const found = await get("checks").catch(() => null);
  if (found) queues = found.findings.filter((each) => each.state === "failed" && each.check.startsWith("queue ")).map((each) => `${each.check} stands still: ${each.found}`);
  draw();
}

export function watchNotices() {
  live.addEventListener("changes", ({ detail }) => (detail.reload || detail.seed?.length || detail.gone?.length) && draw());
  setInterval(draw, MINUTE_MS); // a certificate may come within a week of its end while nothing changes
  setInterval(readQueues, MINUTE_MS);
  document.addEventListener("visibilitychange", readQueues);
  readQueues();
}
