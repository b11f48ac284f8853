// Who is connected: workers, each once however many connections it has, and other clients.

import { at, get, scoped } from "/console/api.js";
import { name as nodeName } from "/console/cluster.js";
import { button, card, empty, h, put } from "/console/dom.js";
import { bytes, count, duration, many } from "/console/format.js";
import { Table } from "/console/table.js";

const PAGE = 1000;
const DOING = { b: "waits for a job", c: "is being closed", A: "is being closed" };

const plain = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** What a worker reports in the name of its connection: disque-worker/NAME/SLOTS/HELD/QUEUES. */
function worker(row) {
  const parts = row.name.split("/");
  if (parts.length !== 5 || parts[0] !== "disque-worker" || !/^\d+$/.test(parts[2]) || !/^\d+$/.test(parts[3])) return null;
  const queues = parts[4].split(",").map((queue) => (queue ? plain(queue) : "…"));
  return { name: plain(parts[1]), slots: parts[2], held: parts[3], queues: queues.join(", ") };
}

/** Connections of one worker as one row: what the connection that was used last says, and where it connects from, and to. */
function joined(rows) {
  const found = new Map();
  for (const row of rows) {
    const said = worker(row);
    if (!said) continue;
    const hosts = [row.addr.slice(0, row.addr.lastIndexOf(":"))];
    const one = { ...said, hosts, nodes: [row.node], idle: Number(row.idle), age: Number(row.age) };
    const known = found.get(said.name);
    if (!known) {
      found.set(said.name, one);
      continue;
    }
    const latest = known.idle <= one.idle ? known : one;
    found.set(said.name, {
      ...latest, hosts: [...new Set([...known.hosts, ...hosts])], nodes: [...new Set([...known.nodes, row.node])],
      age: Math.max(known.age, one.age),
    });
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export default function clients(app) {
  let offset = 0;
  const workers = new Table("Workers", [
    { title: "Worker", class: "name", text: (row) => row.name },
    { title: "Holds (jobs)", num: true, text: (row) => count(row.held) },
    { title: "At a time (jobs)", num: true, text: (row) => count(row.slots) },
    { title: "Serves", class: "wide", text: (row) => row.queues },
    { title: "From", class: "mono", minor: true, text: (row) => row.hosts.join(", ") },
    { title: "Nodes", minor: true, text: (row) => row.nodes.map(nodeName).join(", ") },
    { title: "Heard from", num: true, text: (row) => `${duration(row.idle)} ago` },
    { title: "Connected for", num: true, minor: true, text: (row) => duration(row.age) },
  ], { key: (row) => row.name });
  const noworkers = empty("No workers", "Programs that do jobs are listed here if they use the workers of this package:", "disque work shop.tasks:handlers");
  const others = new Table("Other clients", [
    { title: "Client", class: "name", text: (row) => row.name || "(no name)" },
    { title: "Address", class: "mono", text: (row) => row.addr },
    { title: "Activity", minor: true, text: (row) => DOING[[...row.flags].find((flag) => DOING[flag])] ?? "" },
    { title: "Last command", text: (row) => row.cmd },
    { title: "Idle", num: true, text: (row) => duration(row.idle) },
    { title: "Connected for", num: true, minor: true, text: (row) => duration(row.age) },
    { title: "Output buffer", num: true, minor: true, text: (row) => bytes(row.omem) },
    { title: "Node", minor: true, text: (row) => nodeName(row.node) },
    { title: "ID", num: true, minor: true, text: (row) => row.id },
  ], { key: (row) => `${row.node} ${row.id}` });
  const range = h("span", {});
  const back = button("Previous", () => { offset -= PAGE; app.refresh(); }, { class: "small" });
  const forth = button("Next", () => { offset += PAGE; app.refresh(); }, { class: "small" });
  const pager = h("div", { class: "pager" }, range, h("span", { class: "spring" }), back, forth);
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Workers and clients")),
    card("Workers", null, workers.node, noworkers), card("Other clients", null, others.node, pager));

  async function refresh(signal) {
    const answer = await get(scoped(at("clients"), { limit: PAGE, offset }), signal);
    const found = joined(answer.clients);
    workers.update(found);
    workers.node.hidden = !found.length;
    noworkers.hidden = found.length > 0;
    others.update(answer.clients.filter((row) => !worker(row)));
    put(range, answer.total > PAGE ? `Connections ${count(offset + 1)} to ${count(offset + answer.clients.length)} of ${count(answer.total)}` : many(answer.total, "connection"));
    back.hidden = forth.hidden = answer.total <= PAGE;
    back.disabled = offset === 0;
    forth.disabled = offset + PAGE >= answer.total;
  }
  return { title: "Workers and clients", node, refresh, every_s: 5 };
}
