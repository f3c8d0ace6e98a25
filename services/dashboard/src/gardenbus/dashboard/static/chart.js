// Steps over time: how many seeds were wanted and how many there were; how many shoots a seed had.

import { h, s } from "./dom.js";
import { clock, day, hourMinute, moment } from "./format.js";

const narrow = matchMedia("(max-width: 760px)"); // drawn smaller there, not scaled down: its words stay readable
const HEIGHT = 190;
const EDGE = { left: 30, right: 12, top: 12, bottom: 24 };

export function historyChart(samples, { least, most, end }) {
  const width = narrow.matches ? 360 : 720;
  const recorded = samples.filter((each) => each.desired !== null).map((each) => ({ ...each, at: Date.parse(each.at) }));
  if (!recorded.length) return h("p", { class: "sub" }, "Its history begins with its first look.");
  const start = Math.min(recorded[0].at, end - 60000);
  const top = Math.max(1, most, ...recorded.map((each) => Math.max(each.desired, each.current ?? 0)));
  const x = (at) => EDGE.left + ((at - start) / (end - start)) * (width - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const steps = (field) => {
    let path = "";
    let last = null;
    for (const each of recorded) {
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
  const last = recorded.at(-1);
  const changes = recorded.filter((each, index) => index > 0 && each.desired !== recorded[index - 1].desired);
  const time = (at, anchor) => s("text", { x: x(at), y: HEIGHT - 6, "text-anchor": anchor }, hourMinute(at));
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Replicas over time: ${last.desired} wanted, ${last.current ?? "unknown"} there now, between ${least} and ${most}` },
    values.map((value) => [line(value, "rule"), s("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(value))]),
    line(least, "bound"), line(most, "bound"),
    desired && s("path", { class: "area", d: `${desired}V${y(0)}H${x(recorded[0].at)}Z` }),
    s("path", { class: "current", d: steps("current") }), s("path", { class: "desired", d: desired }),
    changes.map((each) => s("circle", { class: "mark", cx: x(each.at), cy: y(each.desired), r: 4 }, s("title", null, `${clock(each.at)}: ${each.desired}${each.reason ? `, ${each.reason}` : ""}`))),
    time(start, "start"), time(end, "end"));
}

const FILL = { width: 360, height: 110, left: 30, right: 4, top: 8, bottom: 20 };

export function fillChart({ samples, capacity, now: end }) {
  if (!samples.length) return h("p", { class: "sub" }, "Its history begins now.");
  const start = Math.min(samples[0].at, end - 60000);
  const most = Math.max(1, ...samples.map((each) => each.used), capacity !== null && capacity < 3 * Math.max(...samples.map((each) => each.used), 1) ? capacity : 0);
  const x = (at) => FILL.left + ((at - start) / (end - start)) * (FILL.width - FILL.left - FILL.right);
  const y = (value) => FILL.height - FILL.bottom - (value / most) * (FILL.height - FILL.top - FILL.bottom);
  const path = samples.map((each, index) => (index ? `H${x(each.at)}V${y(each.used)}` : `M${x(each.at)} ${y(each.used)}`)).join("") + `H${x(end)}`;
  const text = (words, at, row, anchor) => s("text", { x: at, y: row, "text-anchor": anchor }, words);
  const time = hourMinute;
  const line = (value, kind) => s("line", { class: kind, x1: FILL.left, x2: FILL.width - FILL.right, y1: y(value), y2: y(value) });
  return s("svg", { class: "chart fill", viewBox: `0 0 ${FILL.width} ${FILL.height}`, role: "img", "aria-label": `Shoots over time: ${samples[0].used} at ${time(samples[0].at)}, ${samples.at(-1).used} now${capacity === null ? "" : `, of ${capacity} places`}` },
    line(0, "rule"), line(most, most === capacity ? "bound" : "rule"), text("0", FILL.left - 6, y(0) + 4, "end"), text(String(most), FILL.left - 6, y(most) + 4, "end"),
    s("path", { class: "area", d: `${path}V${y(0)}H${x(samples[0].at)}Z` }), s("path", { class: "desired", d: path }), text(time(start), FILL.left, FILL.height - 4, "start"), text("now", FILL.width - FILL.right, FILL.height - 4, "end"));
}

const LINES = { width: 360, height: 130, left: 34, right: 6, top: 8, bottom: 20 };
const DAY_MS = 86400000;

// Lines over the same instants, with gaps where nothing is recorded; each thing that happened is a line from top to bottom.
export function linesChart({ title, unit, lines }, at, changes) {
  const [start, end] = [at[0], at.at(-1)];
  const most = Math.max(1, ...lines.flatMap((line) => line.values.filter((value) => value !== null)));
  const x = (instant) => LINES.left + ((instant - start) / Math.max(1, end - start)) * (LINES.width - LINES.left - LINES.right);
  const y = (value) => LINES.height - LINES.bottom - (value / most) * (LINES.height - LINES.top - LINES.bottom);
  const path = (values) => {
    let drawn = "";
    let isOpen = false;
    values.forEach((value, index) => {
      if (value !== null) drawn += isOpen ? `H${x(at[index]).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(at[index]).toFixed(1)} ${y(value).toFixed(1)}h.5`;
      isOpen = value !== null;
    });
    return drawn;
  };
  const text = (words, left, row, anchor) => s("text", { x: left, y: row, "text-anchor": anchor }, words);
  const rule = (value) => s("line", { class: "rule", x1: LINES.left, x2: LINES.width - LINES.right, y1: y(value), y2: y(value) });
  const time = (instant) => (end - start > 2 * DAY_MS ? day(instant) : hourMinute(instant));
  const last = (line) => line.values.findLast((value) => value !== null);
  const shown = (value) => (unit === "s" ? `${value} s` : String(value));
  const marks = changes.map((each) => s("line", { class: `happened ${each.kind}`, x1: x(Date.parse(each.at)), x2: x(Date.parse(each.at)), y1: LINES.top, y2: LINES.height - LINES.bottom }, s("title", null, `${moment(each.at)}: ${each.kind} ${each.name} ${each.text}`)));
  const label = `${title}: ${lines.map((line) => `${line.name} ${shown(last(line))}`).join(", ")}${changes.length ? `; ${changes.length} changes are marked` : ""}`;
  return [
    s("svg", { class: "chart lines-chart", viewBox: `0 0 ${LINES.width} ${LINES.height}`, role: "img", "aria-label": label },
      rule(0), rule(most), text("0", LINES.left - 6, y(0) + 4, "end"), text(shown(most), LINES.left - 6, y(most) + 4, "end"), marks,
      lines.map((line, index) => s("path", { class: `line-${index}`, d: path(line.values) })), text(time(start), LINES.left, LINES.height - 4, "start"), text(time(end), LINES.width - LINES.right, LINES.height - 4, "end")),
    h("div", { class: "legend" }, lines.map((line, index) => h("span", { title: line.name }, h("i", { class: `swatch swatch-${index}` }), `${line.name} ${shown(last(line))}`))),
  ];
}
