// The client of the API: JSON in and out, problem documents as errors.

const ROOT = "/api/v1";
// What has not begun to answer by then does not answer.
const LIMIT_MS = 20000;

/** An error of the API, or of the way to it. `title` and `detail` are for people. */
export class Problem extends Error {
  constructor(status, code, title, detail) {
    super(`${title}: ${detail}`);
    Object.assign(this, { status, code, title, detail });
  }
}

async function ask(method, path, body, signal) {
  // What a browser would take for another path must not become another request.
  const target = new URL(path, location.origin);
  if (target.origin !== location.origin || target.pathname + target.search !== path) {
    throw new Problem(0, "PATH", "Nothing was asked", "A name in this address cannot be a part of a path.");
  }
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = new AbortController();
  const stop = () => limit.abort();
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  const timer = setTimeout(stop, LIMIT_MS);
  const options = { method, headers, signal: limit.signal, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let [response, value] = [null, null];
  try {
    response = await fetch(path, options);
    value = await response.json().catch((error) => {
      if (limit.signal.aborted) throw error;
      return null;
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error.name === "AbortError") throw new Problem(0, "TIMEOUT", "No answer", "The node has not answered for 20 s. What was asked of it may have been done.");
    throw new Problem(0, "OFFLINE", "No answer", "The node cannot be reached. The console goes on trying.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
  if (response.ok) return value;
  const { title, code, detail } = value ?? {};
  throw new Problem(response.status, code ?? "ERR", title ?? `Status ${response.status}`, detail ?? "");
}

/** An answer that costs the nodes more than others: it is asked for again only after a time, or when the path is another. */
export function slow(rest_ms) {
  let [asked, due_ms, answer] = ["", 0, null];
  return async (path, signal) => {
    if (path !== asked || performance.now() >= due_ms) {
      answer = await get(path, signal);
      [asked, due_ms] = [path, performance.now() + rest_ms];
    }
    return answer;
  };
}

/** A path of the API; segments are encoded already: by `segment` or `part`, or in the `url` of an answer. */
export function at(...segments) {
  return [ROOT, ...segments].join("/");
}

/** The last segment of the `url` of an answer: a name, percent-encoded. */
export function key(url) {
  return url.slice(url.lastIndexOf("/") + 1);
}

// Browsers take these two for steps in a path, however they are encoded; the API has another form for them.
const DOTS = new Set([".", ".."]);
const ESCAPED = /^=\.\.?$/;
const UNRESERVED = /[A-Za-z0-9_.~-]/;

/** A name as a segment of a path. */
export function segment(name) {
  return DOTS.has(name) ? `=${name}` : encodeURIComponent(name);
}

/** What somebody wrote as a segment of an address: decoded once, and encoded again; `null` if it is none. */
export function part(written) {
  if (ESCAPED.test(written)) return written;
  const byte = (code) => (UNRESERVED.test(String.fromCharCode(code)) ? String.fromCharCode(code) : `%${code.toString(16).toUpperCase().padStart(2, "0")}`);
  try {
    const made = written.replace(/%[0-9a-f]{2}|[^]/giu, (one) => (/^%./.test(one) ? byte(parseInt(one.slice(1), 16)) : encodeURIComponent(one)));
    return made === "" || DOTS.has(made) ? null : made;
  } catch {
    return null; // half of a pair of surrogates
  }
}

/** The name in a segment. Throws a `URIError` if it is not UTF-8. */
function decoded(encoded) {
  return decodeURIComponent(ESCAPED.test(encoded) ? encoded.slice(1) : encoded);
}

/** A segment as people read it; as it is, if it is not UTF-8. */
export function plain(encoded) {
  try {
    return decoded(encoded);
  } catch {
    return encoded;
  }
}

/** The name in a segment as members of a body: text, or Base64 if it is not UTF-8. */
export function member(name, encoded) {
  try {
    return { [name]: decoded(encoded) };
  } catch {
    const bytes = encoded.replace(/%([0-9A-F]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
    return { [`${name}_base64`]: btoa(bytes) };
  }
}

/** Whose figures the pages show, and where what is done on them is done: `cluster`, or `daemon`, the node of this page. */
export const scope = {
  get value() {
    return localStorage.getItem("scope") === "daemon" ? "daemon" : "cluster";
  },
  set value(word) {
    localStorage.setItem("scope", word);
  },
  get everywhere() {
    return this.value === "cluster";
  },
};

/** "On all nodes", or "at this node", as it stands in sentences. */
export function where() {
  return scope.everywhere ? "on all nodes" : "at this node";
}

/** A path with a query that names whose figures are wanted. */
export function scoped(path, members = {}) {
  return query(path, { ...members, scope: scope.value });
}

/** The same, for counts of queues. */
export function counted(path, members = {}) {
  return query(path, { ...members, cluster: scope.everywhere ? 1 : undefined });
}

/** The pattern of names for what was typed: words are looked for anywhere in a name. */
export function pattern(text) {
  return text === "" || /[*?[]/.test(text) ? text : `*${text}*`;
}

/** A path with a query; members that are undefined or empty are left out. */
export function query(path, members) {
  const words = Object.entries(members).filter(([, value]) => value !== undefined && value !== "");
  return words.length ? `${path}?${new URLSearchParams(words)}` : path;
}

export const get = (path, signal) => ask("GET", path, undefined, signal);
export const post = (path, body, signal) => ask("POST", path, body, signal);
export const remove = (path) => ask("DELETE", path);
