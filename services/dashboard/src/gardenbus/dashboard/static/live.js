// What the page knows of the landscape, kept current by the stream of changes. It survives outages: the browser (or
// this module, when nothing was heard for too long) connects again and goes on where it was.

import { get } from "./api.js";
import { synchronize } from "./format.js";

const SILENT_MS = 4500; // a beat comes every 2 s
const OPENING_MS = 15000; // a server that reads a large landscape may take its time
const AGAIN_MS = [500, 1000, 2000, 4000, 8000];
const MOST_EVENTS = 500;

const keyOf = (row) => `${row.namespace ?? ""}/${row.name}`;

class Live extends EventTarget {
  state = "connecting"; // connecting, live, lost
  lastBeatAt = Date.now();
  summary = null;
  seeds = new Map();
  sets = new Map();
  autoscalers = new Map();
  events = [];
  #source = null;
  #last = "";
  #failures = 0;
  #watch = null;
  #timer = null;
  #missed = null; // batches that come while the rows are being read, which may be older; null at other times

  start() {
    this.#open();
    addEventListener("online", () => this.#again(0));
  }

  #open() {
    this.#source?.close();
    if (this.#missed) this.#last = ""; // the rows have not been read: there is nothing that could be resumed
    this.#missed = null;
    const source = (this.#source = new EventSource(`api/changes${this.#last ? `?last=${encodeURIComponent(this.#last)}` : ""}`));
    const on = (name, take) => source.addEventListener(name, (event) => {
      if (source !== this.#source) return;
      if (event.lastEventId) this.#last = event.lastEventId;
      this.lastBeatAt = Date.now();
      this.#alive();
      take(JSON.parse(event.data));
    });
    on("hello", (hello) => (hello.start === "reload" ? this.#load() : this.#turn("live")));
    on("changes", (batch) => (this.#missed ? this.#missed.push(batch) : this.#take(batch)));
    on("beat", (beat) => this.#beat(beat));
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) get("session").catch(() => {}); // one that has ended leads to the login
      if (source === this.#source) this.#again(AGAIN_MS[Math.min(this.#failures++, AGAIN_MS.length - 1)]);
    };
    this.#alive(OPENING_MS);
  }

  #alive(within = SILENT_MS) {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#again(0), within);
  }

  #again(delay) {
    this.#turn("lost");
    this.#source?.close();
    clearTimeout(this.#watch);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#open(), delay);
  }

  async #load() {
    const missed = (this.#missed = []);
    try {
      const [landscape, seeds, growth, events] = await Promise.all(["landscape", "seeds", "growth", "events"].map((path) => get(path)));
      if (missed !== this.#missed) return; // connected again meanwhile
      synchronize(landscape.now);
      this.summary = landscape.summary;
      this.seeds = new Map(seeds.items.map((row) => [row.name, row]));
      this.sets = new Map(growth.sets.map((row) => [keyOf(row), row]));
      this.autoscalers = new Map(growth.autoscalers.map((row) => [keyOf(row), row]));
      this.events = events.items;
      this.#missed = null;
      this.#turn("live");
      this.#notify({ reload: true });
      for (const batch of missed) this.#take(batch);
    } catch {
      if (missed === this.#missed) this.#again(AGAIN_MS[Math.min(this.#failures++, AGAIN_MS.length - 1)]);
    }
  }

  #take(batch) {
    this.summary = batch.summary;
    for (const row of batch.seed ?? []) this.seeds.set(row.name, row);
    for (const row of batch.managedseedset ?? []) this.sets.set(keyOf(row), row);
    for (const row of batch.seedautoscaler ?? []) this.autoscalers.set(keyOf(row), row);
    for (const [kind, namespace, name] of batch.gone) {
      if (kind === "seed") this.seeds.delete(name);
      if (kind === "managedseedset") this.sets.delete(`${namespace}/${name}`);
      if (kind === "seedautoscaler") this.autoscalers.delete(`${namespace}/${name}`);
    }
    if (batch.events.length) {
      const fresh = new Map(batch.events.map((event) => [`${event.kind}/${event.namespace}/${event.id}`, event]));
      const kept = this.events.filter((event) => !fresh.has(`${event.kind}/${event.namespace}/${event.id}`));
      this.events = [...[...fresh.values()].reverse(), ...kept].slice(0, MOST_EVENTS);
    }
    this.#turn("live");
    this.#notify(batch);
  }

  #beat(beat) {
    synchronize(beat.now);
    for (const [name, at] of Object.entries(beat.heartbeats)) {
      const seed = this.seeds.get(name);
      if (seed) seed.heartbeat = at;
    }
    if (this.state !== "live" && this.summary && !this.#missed) this.#turn("live");
  }

  #turn(state) {
    if (state === "live") this.#failures = 0;
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  #notify(batch) {
    this.dispatchEvent(new CustomEvent("changes", { detail: batch }));
  }
}

export const live = new Live();
