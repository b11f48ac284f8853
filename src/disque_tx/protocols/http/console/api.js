// The client of the API: JSON in and out, problem documents as errors.

const ROOT = "/api/v1";

/** An error of the API, or of the way to it. `title` and `detail` are for people. */
export class Problem extends Error {
  constructor(status, code, title, detail) {
    super(`${title}: ${detail}`);
    Object.assign(this, { status, code, title, detail });
  }
}

async function ask(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, headers, signal, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "OFFLINE", "No answer", "The node cannot be reached. The console goes on trying.");
  }
  const value = await response.json().catch(() => null);
  if (response.ok) return value;
  const { title, code, detail } = value ?? {};
  throw new Problem(response.status, code ?? "ERR", title ?? `Status ${response.status}`, detail ?? "");
}

/** A path of the API; segments are percent-encoded already, as in the `url` of an answer. */
export function at(...segments) {
  return [ROOT, ...segments].join("/");
}

/** The last segment of the `url` of an answer: a name, percent-encoded. */
export function key(url) {
  return url.slice(url.lastIndexOf("/") + 1);
}

/** A percent-encoded name as people read it; as it is, if it is not UTF-8. */
export function plain(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A path with a query; members that are undefined or empty are left out. */
export function query(path, members) {
  const words = Object.entries(members).filter(([, value]) => value !== undefined && value !== "");
  return words.length ? `${path}?${new URLSearchParams(words)}` : path;
}

export const get = (path, signal) => ask("GET", path, undefined, signal);
export const post = (path, body, signal) => ask("POST", path, body, signal);
export const remove = (path) => ask("DELETE", path);
