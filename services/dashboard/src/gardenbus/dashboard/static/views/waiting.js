// Who waits for a seed: why, since when, and when it is tried again.

import { get, send, session } from "../api.js";
import { empty, h, loading, setText } from "../dom.js";
import { ago, count, many, pathOf, until } from "../format.js";
import { toast } from "../overlays.js";

const SHOWN = 200;
const REFRESH_MS = 2000;

export function waitingPage(main) {
  const tally = h("p", { class: "sub", role: "status" });
  const place = h("div", null, loading());
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Waiting for a seed"), tally)), place);
  let timer = 0;
  let isOver = false;
  let items = [];
  let ticks = [];

  async function read() {
    timer = 0;
    const response = await get("waiting").catch(() => null);
    if (isOver || !response) return;
    items = response.items;
    const total = response.total ?? items.length;
    setText(tally, total ? `${many(total, "shoot")}, the longest waiting first${total > Math.min(items.length, SHOWN) ? ` (${count(Math.min(items.length, SHOWN))} shown)` : ""}` : "");
    draw();
  }
  function draw() {
    if (!items.length) {
      place.replaceChildren(h("div", { class: "card" }, empty("yes", "Nobody waits", h("p", null, "Every shoot that was ordered has a seed. One that fits nowhere would stand here, with the rule that turned the seeds away."))));
      return;
    }
    ticks = [];
    place.replaceChildren(h("ul", { class: "lines waiting card" }, items.slice(0, SHOWN).map(line)));
  }
  function line(item) {
    const since = h("span");
    const next = h("span");
    const tick = () => {
      setText(since, `for ${ago(item.since)}${item.attempts ? ` · ${many(item.attempts, "attempt")}` : ""}`);
      setText(next, item.queued ? "is being looked at" : item.nextAttempt ? `again ${until(item.nextAttempt)}` : "when something changes");
    };
    tick();
    ticks.push(tick);
    const retry = session.allowWrites && h("button", { class: "button small", type: "button", onclick: async (event) => {
      event.target.disabled = true;
      await send("POST", `shoots/${encodeURIComponent(item.namespace)}/${encodeURIComponent(item.name)}/retry`).then(() => toast(`${item.name} is tried again`), (error) => toast(error.message, "bad"));
      event.target.disabled = false;
    } }, "Retry now");
    return h("li", { data: { shoot: `${item.namespace}/${item.name}` } }, h("a", { class: "name link", href: pathOf("shoot", item.namespace, item.name), "data-walk": true }, item.name, " ", h("small", null, item.namespace)),
      h("p", { class: "why" }, item.message.replace(/^Failed to schedule Shoot: /, "")), h("div", { class: "times" }, h("b", null, since), next, retry));
  }
  read();
  return {
    update() {
      if (!timer) timer = setTimeout(read, REFRESH_MS);
    },
    tick: () => ticks.forEach((tick) => tick()),
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
