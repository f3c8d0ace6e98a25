// Who waits for a seed, by cause: how many, since when, and when each is tried again. A group shows a page at a time.

import { get, send, session } from "../api.js";
import { empty, failed, h, loading, setText } from "../dom.js";
import { ago, count, many, pathOf, until } from "../format.js";
import { live } from "../live.js";
import { toast } from "../overlays.js";
import { pager } from "../pager.js";

const PAGE = 25;
const GROUPS = 25;
const OPEN_AT_FIRST = 200; // groups are open at first while so many shoots wait altogether, of more the largest
const REFRESH_MS = 2000;
const RETRY_MS = 3000;

export function waitingPage(main, { query }) {
  const wanted = { search: query.get("search") ?? "" };
  const countText = h("span", { class: "count-text", role: "status" });
  const place = h("div", { class: "causes" }, loading());
  const search = h("input", { class: "field grow", type: "search", placeholder: "Filter by name, namespace, scheduler or cause…  (f)", "aria-label": "Filter shoots that wait", value: wanted.search, oninput: (event) => changed(event.target.value) });
  const turn = pager(GROUPS, "causes", (offset) => { first = offset; read(); });
  main.append(h("div", { class: "head" }, h("div", null, h("h1", null, "Waiting for a seed"), h("p", { class: "sub" }, "By what stands in the way, the longest waiting first"))), h("div", { class: "filters", role: "search" }, search, countText), place, turn.element);
  const groups = new Map(); // cause → its part of the page
  let first = 0;
  let timer = 0;
  let generation = 0;
  let isOver = false;

  function changed(words) {
    wanted.search = words;
    first = 0;
    history.replaceState(null, "", `#/waiting${words ? `?${new URLSearchParams(wanted)}` : ""}`);
    clearTimeout(timer);
    timer = setTimeout(read, 150);
  }
  async function read() {
    timer = 0;
    const mine = ++generation;
    const response = await get(`waiting?${new URLSearchParams({ ...wanted, offset: first, limit: GROUPS })}`).catch((error) => error);
    if (isOver || mine !== generation) return;
    if (response instanceof Error) {
      if (live.state !== "lost") place.replaceChildren(failed(response));
      timer ||= setTimeout(read, RETRY_MS);
      return;
    }
    const unread = live.summary && !live.summary.synced ? live.summary.waiting - response.total : 0;
    const more = unread > 0 && !wanted.search ? `; ${count(unread)} more, whose cause is not read yet` : "";
    setText(countText, more || response.total ? `${many(response.total, "shoot")}, ${many(response.groups, "cause")}${more}` : "");
    turn.show(first, response.items.length, response.groups);
    if (!response.items.length) {
      groups.clear();
      if (!live.summary?.synced) {
        timer ||= setTimeout(read, REFRESH_MS);
        return place.replaceChildren(loading());
      }
      place.replaceChildren(h("div", { class: "card" }, wanted.search ? empty("search", "No matching pending shoots", h("p", null, "Clear the filter to see all.")) : empty("yes", "No pending shoots", h("p", null, "Every shoot that was ordered has a seed. One that fits nowhere would stand here, with the rule that turned the seeds away."))));
      return;
    }
    const here = new Set(response.items.map((each) => each.cause));
    for (const cause of groups.keys()) here.has(cause) || groups.delete(cause);
    for (const each of response.items) groups.has(each.cause) || groups.set(each.cause, group(each.cause, wanted, response.total <= OPEN_AT_FIRST || !groups.size));
    const parts = response.items.map((each) => groups.get(each.cause));
    parts.forEach((part, index) => part.show(response.items[index]));
    if (parts.some((part, index) => part.element !== place.children[index]) || place.children.length !== parts.length) place.replaceChildren(...parts.map((part) => part.element));
  }
  read();
  return {
    update(batches) {
      const isAboutShoots = batches.some((batch) => batch.reload || batch.manyShoots || batch.shoot || batch.gone?.some(([kind]) => kind === "shoot"));
      if (isAboutShoots && !timer) timer = setTimeout(read, REFRESH_MS);
    },
    tick: () => groups.forEach((part) => part.tick()),
    end() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

// One cause: its number of shoots, and, when it is open, a page of them.
function group(cause, wanted, isOpen) {
  const number = h("span", { class: "chip wait" });
  const oldest = h("span", { class: "hint" });
  const list = h("ul", { class: "lines waiting" });
  const turn = pager(PAGE, "shoots", (offset) => { first = offset; read(); });
  const element = h("details", { class: "card cause", open: isOpen, data: { cause }, ontoggle: () => element.open && read() }, h("summary", null, h("b", null, cause), number, oldest), list, turn.element);
  let first = 0;
  let generation = 0;
  let ticks = [];
  let since = "";

  async function read() {
    const mine = ++generation;
    const response = await get(`waiting/shoots?${new URLSearchParams({ ...wanted, cause, offset: first, limit: PAGE })}`).catch((error) => error);
    if (mine !== generation) return;
    if (response instanceof Error) return live.state === "lost" || list.replaceChildren(h("li", { role: "alert" }, response.message));
    if (!response.items.length && first) {
      first = Math.max(0, Math.ceil(response.total / PAGE) - 1) * PAGE;
      return response.total ? read() : undefined;
    }
    ticks = [];
    list.replaceChildren(...response.items.map((item) => line(item, ticks)));
    turn.show(first, response.items.length, response.total);
  }
  return {
    element,
    show(found) {
      setText(number, count(found.shoots));
      number.title = many(found.shoots, "shoot");
      since = found.oldest;
      this.tick();
      if (element.open) read();
    },
    tick() {
      setText(oldest, `the first for ${ago(since)}`);
      ticks.forEach((tick) => tick());
    },
  };
}

const isDefault = (scheduler) => !scheduler || scheduler === "default-scheduler";

function line(item, ticks) {
  const since = h("span");
  const next = h("span");
  const tick = () => {
    setText(since, `for ${ago(item.created)}`);
    setText(next, item.queued ? "is being scheduled" : item.nextAttempt ? `again ${until(item.nextAttempt)}` : "when something changes");
  };
  tick();
  ticks.push(tick);
  const retry = session.allowWrites && h("button", { class: "button small", type: "button", "aria-label": `Retry ${item.name} now`, onclick: async (event) => {
    event.target.disabled = true;
    await send("POST", `shoots/${encodeURIComponent(item.namespace)}/${encodeURIComponent(item.name)}/retry`).then(() => toast(`${item.name} is tried again`), (error) => toast(error.message, "bad"));
    event.target.disabled = false;
  } }, "Retry now");
  return h("li", { data: { shoot: `${item.namespace}/${item.name}` } }, h("a", { class: "name link", href: pathOf("shoot", item.namespace, item.name), "data-walk": true }, item.name, " ", h("small", null, item.namespace), isDefault(item.scheduler) ? null : h("small", null, ` · scheduler ${item.scheduler}`)),
    h("span", { class: "why" }, item.brief.startsWith("0/") ? item.brief : ""), h("div", { class: "times" }, h("b", null, since), next, retry));
}
