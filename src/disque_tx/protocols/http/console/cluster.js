// What the frame knows of the cluster: which nodes there are, which of them answer, and where their consoles are.

import { at, get, query } from "/console/api.js";
import { duration } from "/console/format.js";

const LOOPBACK = /^(localhost|127\.|\[::1\])/;

export const known = { nodes: [], missing: [], rows: [], me: "", members: 1 };

/** The address of a node for people: as others reach it, or its ID where nobody knows that. */
export function address(node) {
  return node.address.startsWith(":") ? `port ${node.address.slice(1)}` : node.address;
}

/** The name of a node by its ID. */
export function name(id) {
  const node = known.nodes.find((one) => one.id === id);
  return node && node.address ? address(node) : id.slice(0, 8);
}

/** Find out anew. */
export async function look(signal) {
  const [{ nodes }, figures] = await Promise.all([
    get(at("nodes"), signal),
    get(query(at("figures"), { scope: "cluster" }), signal),
  ]);
  const members = nodes.filter((node) => !node.flags.includes("handshake"));
  const answered = new Set(figures.rows.map((row) => row.node));
  Object.assign(known, {
    nodes, rows: figures.rows,
    missing: members.filter((node) => !answered.has(node.id)),
    members: members.length,
    me: members.find((node) => node.flags.includes("myself"))?.id ?? "",
  });
}

/** What this node knows of the others without asking them: to which it is connected, and which have failed. */
function links(nodes) {
  return JSON.stringify(nodes.map(({ id, link, flags }) => [id, link, flags]));
}

/** Whether a node came, left, or lost its connection to this one since it was last looked: by `nodes` as they are now. */
export function changed(nodes) {
  return links(nodes) !== links(known.nodes);
}

/** Which node does not answer, and for how long. */
function absent(node) {
  const pong_ms = Number(node.pong_received);
  return `${address(node)} ${pong_ms ? `has not answered for ${duration(Math.max(1, Math.round((Date.now() - pong_ms) / 1000)))}` : "does not answer"}`;
}

/** How many nodes are there and which are missing, in words; whether all answer. */
export function summary() {
  const [all, lost] = [known.members, known.missing.length];
  const count = `${all} node${all === 1 ? "" : "s"}`;
  if (!lost) return { good: true, short: count, long: all === 1 ? "This node is alone." : `All ${count} answer.` };
  const named = known.missing.slice(0, 3).map(absent).join("; ");
  return { good: false, short: `${all - lost} of ${count}`, long: `${all - lost} of ${count}: ${named}${lost > 3 ? `; and ${lost - 3} more` : ""}.` };
}

/** The host of a node, as its address names it. */
function host(node) {
  const text = node.address.slice(0, node.address.lastIndexOf(":"));
  return text.includes(":") ? `[${text.replace(/[[\]]/g, "")}]` : text;
}

/** Where the consoles of a node can be opened from here; of several those first that are reached in the same way as this one. */
export function consoles(id) {
  const row = known.rows.find((one) => one.node === id);
  const node = known.nodes.find((one) => one.id === id);
  const found = (row?.consoles ?? []).map((url) => {
    const own = id === known.me ? location.hostname : node ? host(node) : "";
    return own || !url.includes("//*:") ? url.replace("//*:", `//${own}:`) : "";
  });
  const local = LOOPBACK.test(location.hostname);
  return found.filter((url) => url && (local || !LOOPBACK.test(url.split("//")[1])))
    .sort((a, b) => b.startsWith(location.protocol) - a.startsWith(location.protocol));
}

/** The consoles of the other nodes that answered last. */
export function others() {
  return known.rows.filter((row) => row.node !== known.me).map((row) => consoles(row.node)[0]).filter(Boolean);
}
