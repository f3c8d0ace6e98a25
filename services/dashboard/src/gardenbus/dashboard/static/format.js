// Numbers, times and words as people read them.

let skew = 0; // how far this clock is from the server's, ms

export function synchronize(serverNow) {
  if (serverNow) skew = serverNow - Date.now();
}

export const now = () => Date.now() + skew;

export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

export const ago = (instant) => {
  const at = typeof instant === "number" ? instant : Date.parse(instant);
  return Number.isFinite(at) ? span(now() - at) : "";
};

export const until = (instant) => {
  const at = Date.parse(instant);
  return Number.isFinite(at) ? (at <= now() ? "now" : `in ${span(at - now())}`) : "";
};

// Times have 24 hours and a zone, whatever the browser's language: people compare them with logs.
const HOURS = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
export const zone = () => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(new Date()).find((each) => each.type === "timeZoneName").value;
export const clock = (instant) => new Date(instant).toLocaleTimeString("en-GB", { ...HOURS, second: "2-digit", timeZoneName: "short" });
export const hourMinute = (instant) => new Date(instant).toLocaleTimeString("en-GB", HOURS);
export const day = (instant) => new Date(instant).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
export const moment = (instant) => `${day(instant)} ${hourMinute(instant)}`;
export const count = (number) => Number(number ?? 0).toLocaleString("en");
export const many = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;

export const TONES = { succeeded: "good", processing: "busy", pending: "wait", error: "bad", failed: "bad", deleting: "idle", new: "hollow" };
export const KINDS = {
  shoot: "Shoot", seed: "Seed", managedseedset: "ManagedSeedSet", seedautoscaler: "SeedAutoscaler", managedseed: "ManagedSeed",
  cloudprofile: "CloudProfile", namespacedcloudprofile: "NamespacedCloudProfile", project: "Project", configmap: "ConfigMap",
  membercluster: "MemberCluster", clusterresourceplacement: "ClusterResourcePlacement", resourceplacement: "ResourcePlacement",
  clusterresourcebinding: "ClusterResourceBinding", resourcebinding: "ResourceBinding", clusterschedulingpolicysnapshot: "ClusterSchedulingPolicySnapshot",
  schedulingpolicysnapshot: "SchedulingPolicySnapshot", clusterresourcesnapshot: "ClusterResourceSnapshot", resourcesnapshot: "ResourceSnapshot",
  shootstate: "ShootState", secret: "Secret", controllerrevision: "ControllerRevision",
};
export const kindName = (kind) => KINDS[kind] ?? kind.charAt(0).toUpperCase() + kind.slice(1);
const PAGE_OF = { clusterresourceplacement: "placement", resourceplacement: "placement" };
const path = (page, kind, namespace, name) => `#/${page}/${kind}/${encodeURIComponent(namespace || "_")}/${encodeURIComponent(name)}`;
// The page that says most of an object; and the one that all objects have.
export const pathOf = (kind, namespace, name) => path(PAGE_OF[kind] ?? "object", kind, namespace, name);
export const objectPathOf = (kind, namespace, name) => path("object", kind, namespace, name);

// What a seed's health comes to: a tone, and the word for it.
export function health(seed) {
  if (seed.deleting) return ["idle", "being deleted"];
  if (seed.ready === "True" && !seed.visible) return ["warn", "cordoned"];
  if (seed.ready === "True") return seed.lacksBackups ? ["warn", "backups not ready"] : ["good", "ready"];
  if (seed.ready === "") return ["hollow", "not reported yet"];
  return ["bad", seed.ready === "Unknown" ? "gardenlet is silent" : "not ready"];
}

// How full a seed is: one colour for all; what is full says so in words.
export function fill(seed) {
  if (seed.capacity === null) return { share: 0, words: `${count(seed.used)}` };
  const share = seed.capacity > 0 ? seed.used / seed.capacity : 1;
  return { share, words: `${count(seed.used)}/${count(seed.capacity)}${share > 1 ? " over" : share === 1 ? " full" : ""}` };
}

// The same of a manifest, for a page that has no row yet.
export function healthOf({ metadata = {}, spec = {}, status = {} }) {
  const statusOf = (type) => (status.conditions ?? []).find((each) => each.type === type)?.status ?? "";
  const ready = statusOf("GardenletReady");
  const lacksBackups = Boolean(spec.backup) && statusOf("BackupBucketsReady") !== "True";
  const cordoned = Object.keys(metadata.annotations ?? {}).some((name) => name.endsWith("/cordoned-by"));
  return health({ deleting: Boolean(metadata.deletionTimestamp), ready, visible: spec.settings?.scheduling?.visible !== false, cordoned, lacksBackups });
}
