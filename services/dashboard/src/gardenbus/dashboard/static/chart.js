// Steps over time: how many seeds were wanted and how many there were.

import { h, s } from "./dom.js";

const narrow = matchMedia("(max-width: 760px)"); // drawn smaller there, not scaled down: its words stay readable
const HEIGHT = 190;
const EDGE = { left: 30, right: 12, top: 12, bottom: 24 };

export function historyChart(samples, { least, most, end }) {
  const width = narrow.matches ? 360 : 720;
  const known = samples.filter((each) => each.desired !== null).map((each) => ({ ...each, at: Date.parse(each.at) }));
  if (!known.length) return h("p", { class: "sub" }, "Its history begins with its first look.");
  const start = Math.min(known[0].at, end - 60000);
  const top = Math.max(1, most, ...known.map((each) => Math.max(each.desired, each.current ?? 0)));
  const x = (at) => EDGE.left + ((at - start) / (end - start)) * (width - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const steps = (field) => {
    let path = "";
    let last = null;
    for (const each of known) {
      const value = each[field];
      if (value === null || value === undefined) continue;
      path += last === null ? `M${x(each.at)} ${y(value)}` : `H${x(each.at)}V${y(value)}`;
      last = value;
    }
    return last === null ? "" : `${path}H${x(end)}`;
  };
  const line = (value, kind) => s("line", { class: kind, x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) });
  const every = Math.max(1, Math.ceil(top / 5));
  const values = Array.from({ length: Math.floor(top / every) + 1 }, (_, index) => index * every);
  const desired = steps("desired");
  const last = known.at(-1);
  const changes = known.filter((each, index) => index > 0 && each.desired !== known[index - 1].desired);
  const time = (at, anchor) => s("text", { x: x(at), y: HEIGHT - 6, "text-anchor": anchor }, new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Replicas over time: ${last.desired} wanted, ${last.current ?? "unknown"} there now, between ${least} and ${most}` },
    values.map((value) => [line(value, "rule"), s("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(value))]),
    line(least, "bound"), line(most, "bound"),
    desired && s("path", { class: "area", d: `${desired}V${y(0)}H${x(known[0].at)}Z` }),
    s("path", { class: "current", d: steps("current") }), s("path", { class: "desired", d: desired }),
    changes.map((each) => s("circle", { class: "mark", cx: x(each.at), cy: y(each.desired), r: 4 }, s("title", null, `${new Date(each.at).toLocaleTimeString()}: ${each.desired}${each.reason ? `, ${each.reason}` : ""}`))),
    time(start, "start"), time(end, "end"));
}
