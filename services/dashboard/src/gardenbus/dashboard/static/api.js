// Questions to the server, answered as JSON.

export class RequestRejected extends Error {}

export const session = { allowWrites: false, isOperator: true, token: null, prefix: "garden", user: "" };

async function bodyOf(response) {
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) location.assign("login"); // the session has ended
  if (!response.ok) throw new RequestRejected(body.error?.message ?? `HTTP ${response.status}`);
  return body;
}

export const get = async (path, signal) => bodyOf(await fetch(`api/${path}`, { signal, headers: { accept: "application/json" } }));

export async function send(method, path, body) {
  const headers = { "content-type": "application/json", "x-gardenbus-token": session.token ?? "" };
  return bodyOf(await fetch(`api/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
}

export async function begin() {
  Object.assign(session, await get("session"));
}

export const objectPath = (kind, namespace, name) => `object/${kind}/${encodeURIComponent(namespace || "_")}/${encodeURIComponent(name)}`;
