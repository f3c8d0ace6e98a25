// Events as lines.

import { h } from "./dom.js";
import { ago, clock, count, kindName, pathOf } from "./format.js";

export function eventLine(event, { about = true } = {}) {
  return h("li", { class: "event" }, h("span", { class: `dot ${event.type === "Warning" ? "warn" : "good"}`, title: event.type }),
    h("span", null, h("b", null, event.reason), event.count > 1 && h("span", { class: "about" }, ` ×${count(event.count)}`), " ",
      about && h("a", { class: "link about", href: pathOf(event.kind, event.namespace, event.name), "data-walk": true }, `${kindName(event.kind)} ${event.namespace ? `${event.namespace}/` : ""}${event.name}`)),
    h("span", { class: "when", title: event.at ? `${clock(event.at)}, by ${event.by}` : event.by }, ago(event.at)),
    h("span", { class: "message" }, event.message));
}
